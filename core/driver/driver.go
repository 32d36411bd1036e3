// Package driver runs a core.Machine over go-redis. It is what the front doors of
// Go (core/redlock) and C (capi) share; it is not meant for applications.
//
// Whoever has an event for the machine takes the driver's mutex, steps, copies the effects out, lets go of
// the mutex and carries them out: a caller that is alone sends its command and reads the reply on
// its own goroutine. Beyond a few at once, commands wait in the node's queue and leave as pipelines (node.go).
package driver

import (
	"context"
	"crypto/rand"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core"
)

// Config describes a client.
type Config struct {
	Nodes            []string // URLs
	Prefix           string
	Language         string // of the caller, shown by Inspect
	NodeTimeout      time.Duration
	UnavailableAfter time.Duration
	// BlockingReads lets a lone caller's thread wait for the reply itself, without Go's poller: for callers that come
	// from C with threads of their own. In a Go program it would keep other goroutines from running.
	BlockingReads bool
	// OnHealth is called for health notices. It must not block. May be nil.
	OnHealth func(core.Notice)
	// OnSocket is called with every socket opened (true) and about to be closed (false). May be nil.
	OnSocket func(fd int, open bool)
}

// Driver is one client.
type Driver struct {
	config Config
	nodes  []*node

	mu       sync.Mutex // guards what follows and every Step
	machine  stepper
	lastOp   core.OpID
	requests map[core.OpID]*request
	holds    map[core.OpID]*Hold
	timer    *time.Timer
	armed    core.Time // when the timer fires at the latest
	closed   bool
	failure  *core.Error // the machine panicked: all that comes is answered with this
}

// stepper is the machine; tests of the driver put their own in its place.
type stepper interface {
	Step(now core.Time, event core.Event) core.Effects
}

// Result is how a request ended. Err is nil if it ended in OK.
type Result struct {
	Op         core.OpID
	Err        *core.Error
	Hold       *Hold            // of an acquire
	Inspection *core.Inspection // of an inspect
}

// request is one that has no result yet. All but done is guarded by the driver's mutex.
type request struct {
	acquire  *core.Acquire // nil if it is another request
	release  core.OpID     // the hold that it releases, if it is a release
	finished bool
	result   Result
	ready    chan struct{} // tells whoever waits to look again
	waited   bool          // somebody waits
	done     func(Result)  // called when finished, without the mutex; nil if somebody waits
}

// Open checks the configuration. It does not connect: the first request does.
func Open(config Config) (*Driver, *core.Error) {
	d := &Driver{
		config:   config,
		requests: map[core.OpID]*request{},
		holds:    map[core.OpID]*Hold{},
		armed:    core.Never,
	}
	d.timer = time.AfterFunc(time.Hour, d.tick)
	d.timer.Stop()
	addresses := make([]string, len(config.Nodes))
	for i, text := range config.Nodes {
		endpoint, err := parseURL(i, text)
		if err != nil {
			d.disconnect()
			return nil, err
		}
		for j, other := range d.nodes {
			if other.endpoint.sameServer(endpoint) {
				d.disconnect()
				return nil, &core.Error{Status: core.Invalid, Message: "nodes " + strconv.Itoa(j) + " and " + strconv.Itoa(i) +
					" are the same server (" + endpoint.address + "): each node must be an independent one"}
			}
		}
		d.nodes = append(d.nodes, newNode(d, i, endpoint))
		addresses[i] = endpoint.address
	}
	machine, err := core.New(core.Config{
		Nodes:            addresses,
		Prefix:           config.Prefix,
		Who:              who(config.Language),
		NodeTimeout:      core.Duration(config.NodeTimeout.Microseconds()),
		UnavailableAfter: core.Duration(config.UnavailableAfter.Microseconds()),
	})
	if err != nil {
		d.disconnect()
		return nil, err
	}
	d.machine = machine
	return d, nil
}

// who names this process: host, pid and language.
func who(language string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	host = core.Escape(host)
	return host[:min(len(host), 64)] + "/" + strconv.Itoa(os.Getpid()) + "/" + core.Escape(language)
}

// Do makes a request and waits for its end. When ctx ends first the request is cancelled.
// Seed and Wall of an Acquire are filled in.
func (d *Driver) Do(ctx context.Context, event core.Request) Result {
	r := requests.Get().(*request)
	defer requests.Put(r)
	*r = request{ready: r.ready}
	patience := patience(ctx, event)
	work := d.begin(r, event)
	for {
		if call, client := d.alone(r, work, patience); client != nil {
			// One call to one node that is not busy: no other goroutine is needed.
			work = d.step(d.nodes[call.Node].do(call, client))
			continue
		}
		d.perform(work)
		work.calls, work.ready, work.done = nil, nil, nil
		if !d.mustWait(r) {
			return r.result
		}
		if ctx.Done() == nil { // a select costs more
			<-r.ready
			continue
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			work = d.step(&core.Cancel{Op: r.result.Op})
			ctx = context.WithoutCancel(ctx)
			patience = 0
		}
	}
}

// requests are used again, by Do: most of what a call leaves to the garbage collector would be these.
var requests = sync.Pool{New: func() any { return &request{ready: make(chan struct{}, 1)} }}

// patience is how long the caller itself may be blocked by one call.
func patience(ctx context.Context, event core.Request) core.Duration {
	most := core.Forever
	if e, ok := event.(*core.Acquire); ok && e.Wait > 0 {
		most = e.Wait
	}
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, core.Duration(time.Until(deadline).Microseconds()))
	}
	return most
}

// Submit makes a request and returns at once. done is called exactly once, from any goroutine,
// possibly before Submit returns; it must not block.
func (d *Driver) Submit(event core.Request, done func(Result)) core.OpID {
	r := &request{done: done}
	work := d.begin(r, event)
	op := r.result.Op
	d.perform(work)
	return op
}

// Cancel ends an acquire or renew that has not ended yet with CANCELED.
func (d *Driver) Cancel(op core.OpID) { d.perform(d.step(&core.Cancel{Op: op})) }

// Close ends every wait with CLOSED, releases every hold and closes the connections.
// A second Close is CLOSED.
func (d *Driver) Close() *core.Error {
	result := d.Do(context.Background(), &core.Close{})
	if result.Err == nil || result.Err.Status == core.Internal {
		d.disconnect()
	}
	return result.Err
}

func (d *Driver) disconnect() {
	for _, n := range d.nodes {
		n.close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.timer.Stop()
}

// begin steps the request.
func (d *Driver) begin(r *request, event core.Request) (w work) {
	if e, ok := event.(*core.Acquire); ok {
		r.acquire = e
		rand.Read(e.Seed[:]) // never fails: crypto/rand ends the process instead
		e.Wall = time.Now().UnixMicro()
	}
	if e, ok := event.(*core.Release); ok {
		r.release = e.Hold
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastOp++
	r.result.Op = d.lastOp
	event.SetOp(d.lastOp)
	d.requests[d.lastOp] = r
	if d.failure != nil {
		d.finish(&core.Outcome{Op: d.lastOp, Status: core.Internal, Message: d.failure.Message}, &w)
		return w
	}
	d.stepLocked(Now(), event, &w)
	return w
}

// alone takes out the one call that this work is, if its maker may do it itself, and tells by which client; else nil. Whoever
// has less patience than the call, or has its result and would do it for others, lets it take its own time elsewhere.
func (d *Driver) alone(r *request, w work, patience core.Duration) (core.Call, *redis.Client) {
	if len(d.nodes) != 1 || len(w.calls) != 1 || len(w.ready)+len(w.done) > 0 || w.other || w.calls[0].Timeout > patience {
		return core.Call{}, nil
	}
	d.mu.Lock()
	finished := r.finished
	d.mu.Unlock()
	if finished {
		return core.Call{}, nil
	}
	return w.calls[0], d.nodes[0].enter()
}

// mustWait tells whether a request has no result yet; then r.ready tells when to look again.
func (d *Driver) mustWait(r *request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.waited = !r.finished
	return r.waited
}
