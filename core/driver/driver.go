// Package driver runs a core.Machine over go-redis. It is what the front doors of
// Go (core/redlock) and C (capi) share; it is not meant for applications.
//
// A caller that is alone steps the machine itself, sends its command and reads the reply on its own
// goroutine. Beyond a few at once, requests gather in the driver's inbox and are stepped together (step.go),
// and commands gather in the node's queue and leave as pipelines (node.go).
package driver

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
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
	// NewMachine makes the machine: core.New if it is nil. Tests put core behind a boundary in its place.
	NewMachine func(core.Config) (Machine, *core.Error)
}

// Driver is one client.
type Driver struct {
	config Config
	nodes  []*node

	lastOp atomic.Uint64
	inbox  inbox

	mu       sync.Mutex // guards what follows and every Step
	machine  Machine
	requests map[core.OpID]*request
	holds    map[core.OpID]*Hold
	timer    *time.Timer
	armed    core.Time // when the timer fires at the latest
	closed   bool
	failure  *core.Error // the machine panicked: all that comes is answered with this
}

// Machine is core.Machine, or what stands for it in tests.
type Machine interface {
	Step(now core.Time, event core.Event) core.Effects
}

// Result is how a request ended. Err is nil if it ended in OK.
type Result struct {
	Op         core.OpID
	Err        *core.Error
	Hold       *Hold            // of an acquire
	Inspection *core.Inspection // of an inspect
}

// request is one that has no result yet. What may change is guarded by the driver's mutex.
type request struct {
	acquire  *core.Acquire // nil if it is another request
	release  core.OpID     // the hold that it releases, if it is a release
	finished bool
	result   Result
	ready    chan struct{} // gets one element when it is finished, if somebody waits
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
	newMachine := config.NewMachine
	if newMachine == nil {
		newMachine = func(c core.Config) (Machine, *core.Error) { return core.New(c) }
	}
	machine, err := newMachine(core.Config{
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
	return core.Who(host, os.Getpid(), language)
}

// Do makes a request and waits for its end. When ctx ends first the request is cancelled.
// Seed and Wall of an Acquire are filled in.
func (d *Driver) Do(ctx context.Context, event core.Request) Result {
	r := requests.Get().(*request)
	defer requests.Put(r)
	*r = request{ready: r.ready}
	d.prepare(r, d.Reserve(1), event)
	if d.quiet() {
		if d.doAlone(r, event, patience(ctx, event)) {
			return r.result
		}
	} else {
		r.waited = true
		d.post(posted{r, event})
	}
	if ctx.Done() == nil { // a select costs more
		<-r.ready
		return r.result
	}
	select {
	case <-r.ready:
	case <-ctx.Done():
		d.Cancel(r.result.Op)
		<-r.ready
	}
	return r.result
}

// quiet tells whether a caller may do its call itself: with one node that is not busy no other goroutine is needed.
func (d *Driver) quiet() bool { return len(d.nodes) == 1 && d.nodes[0].quiet() }

// doAlone steps a request and does its calls as long as nobody else is needed for that. It tells whether the
// request has its result; if not, r.ready will tell when it has.
func (d *Driver) doAlone(r *request, event core.Event, patience core.Duration) (finished bool) {
	next := posted{r, event}
	p := singles.Get().(*pipeline)
	defer singles.Put(p)
	if r.acquire != nil {
		seed(r.acquire)
	}
	for {
		w := newWork()
		d.mu.Lock()
		d.stepLocked(stepTime(), next, w)
		p.reset()
		client := d.alone(r, w, patience)
		finished = r.finished
		r.waited = client == nil && !finished
		d.mu.Unlock()
		if client == nil {
			d.perform(w)
			return finished
		}
		call := w.calls[0]
		w.free()
		next = posted{event: d.nodes[0].do(call, client, p)}
	}
}

// alone tells by which client the maker of a request does itself the one call that this work is; nil if it may not. Whoever
// has less patience than the call, or has its result and would do it for others, lets it take its own time elsewhere.
func (d *Driver) alone(r *request, w *work, patience core.Duration) *redis.Client {
	if len(w.calls) != 1 || len(w.finished)+len(w.told) > 0 || w.other || w.calls[0].Timeout > patience || r.finished {
		return nil
	}
	return d.nodes[0].enter()
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

// Submission is a request that nobody waits for.
type Submission struct {
	Op      core.OpID // of Reserve
	Request core.Request
	Done    func(Result) // called exactly once, from any goroutine, possibly before Submit returns; must not block
}

// Submit makes requests and returns at once.
func (d *Driver) Submit(all ...Submission) {
	batch := make([]posted, len(all))
	for i, s := range all {
		r := &request{done: s.Done}
		d.prepare(r, s.Op, s.Request)
		batch[i] = posted{r, s.Request}
	}
	d.post(batch...)
}

// Reserve gives n ids for requests, the first of them; the others follow it.
func (d *Driver) Reserve(n int) core.OpID { return core.OpID(d.lastOp.Add(uint64(n))-uint64(n)) + 1 }

// Cancel ends an acquire or renew that has not ended yet with CANCELED.
func (d *Driver) Cancel(op core.OpID) { d.post(posted{event: &core.Cancel{Op: op}}) }

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

// prepare gives a request its id.
func (d *Driver) prepare(r *request, op core.OpID, event core.Request) {
	switch e := event.(type) {
	case *core.Acquire:
		r.acquire = e
	case *core.Release:
		r.release = e.Hold
	}
	r.result.Op = op
	event.SetOp(op)
}
