package driver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/libredlock/libredlock/core"
)

const (
	maxAlone     = 4   // callers that use a connection of their own at the same time
	maxPipelines = 8   // pipelines under way; both measured, see docs/rationale.md
	maxBatch     = 512 // calls a pipeline

	connectTime  = 5 * time.Second       // for a connection and its handshake
	connectPause = 50 * time.Millisecond // after a failure, before the next
)

// node sends calls to one Redis.
type node struct {
	driver   *Driver
	index    int
	endpoint endpoint
	redis    *redis.Client
	alone    *redis.Client // for the only caller; redis too unless its reads are to block
	listener *listener

	mu         sync.Mutex
	callers    int // that use a connection of their own
	pipelines  int
	connecting bool      // one of them makes a connection
	failure    error     // of the last connection that could not be made
	failed     time.Time // when that was
	opening    bool      // somebody makes the connection of alone
	openAfter  time.Time // when that may be tried again
	queue      []queued
	shared     context.Context // of calls by a lone caller: see within
	sharedEnd  time.Time
	endShared  context.CancelFunc
}

// queued is a call that waits for a pipeline.
type queued struct {
	core.Call
	deadline time.Time
}

func newNode(d *Driver, index int, e endpoint) *node {
	n := &node{driver: d, index: index, endpoint: e}
	n.redis = redis.NewClient(n.options(n.dial, maxAlone+maxPipelines))
	n.alone = n.redis
	if d.config.BlockingReads && len(d.config.Nodes) == 1 {
		n.alone = redis.NewClient(n.options(n.dialBlocking, 1))
	}
	n.listener = newListener(n)
	n.endShared = func() {}
	return n
}

func (n *node) options(dial dialer, connections int) *redis.Options {
	return &redis.Options{
		Network:  n.endpoint.network,
		Addr:     n.endpoint.address,
		Username: n.endpoint.username,
		Password: n.endpoint.password,
		DB:       n.endpoint.db,
		Protocol: 2,
		Dialer:   dial,
		// The machine decides what to do about a failure: nothing below it may send a command twice.
		MaxRetries:    -1,
		DialerRetries: 1,
		// Every call has its own deadline, in its context.
		ContextTimeoutEnabled: true,
		ReadTimeout:           -1,
		WriteTimeout:          -1,
		DialTimeout:           connectTime,
		PoolTimeout:           connectTime,
		PoolSize:              connections,
		PipelinePoolSize:      -1, // pipelines use the same connections
		ConnMaxIdleTime:       -1, // a lock's next call should find its connection
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
		OnConnect: n.connected,
	}
}

func (n *node) close() {
	n.listener.close()
	n.alone.Close()
	n.redis.Close() // a second Close does nothing
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endShared()
}

// until is a context with a deadline of its own and no timer for it: it is done when its parent is.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

func untilTime(at time.Time) context.Context { return until{context.Background(), at} }

// within gives a context for a call that may take so long. While a connection is there its deadline counts, which needs no
// timer; but if that turns out to be dead, go-redis makes another and looks at nothing but Done meanwhile. Since this is
// rare, calls share what is done, up to an eighth late, and its timer.
func (n *node) within(timeout time.Duration) (context.Context, context.CancelFunc) {
	at := time.Now().Add(timeout)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sharedEnd.Before(at) {
		n.sharedEnd = at.Add(timeout / 8)
		n.shared, n.endShared = context.WithDeadline(context.Background(), n.sharedEnd)
	}
	if n.sharedEnd.Sub(at) > timeout/8 { // it is that of calls that may take longer
		return context.WithDeadline(context.Background(), at)
	}
	return until{n.shared, at}, func() {}
}

// quiet tells whether there is a place for a caller with a connection of its own.
func (n *node) quiet() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.callers < maxAlone && len(n.queue) == 0
}

// enter takes one of these places and tells where it is; nil if there is none, or
// no connection that waits to be used.
func (n *node) enter() *redis.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.callers >= maxAlone || len(n.queue) > 0 {
		return nil
	}
	client := n.redis
	if n.callers+n.pipelines == 0 && n.alone != n.redis {
		if hasIdle(n.alone) {
			client = n.alone
		} else if !n.opening && time.Now().After(n.openAfter) {
			n.opening = true
			go n.openAlone()
		}
	}
	if client == n.redis && !hasIdle(client) {
		return nil
	}
	n.callers++
	return client
}

// openAlone makes the connection of a lone caller, for the next time that there is one.
func (n *node) openAlone() {
	err := n.alone.Ping(untilTime(time.Now().Add(connectTime))).Err()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opening = false
	if err != nil {
		n.openAfter = time.Now().Add(connectTime)
	}
}

func hasIdle(client *redis.Client) bool { return client.PoolStats().IdleConns > 0 }

// do makes one call, after enter, with the memory of a pipeline.
func (n *node) do(call core.Call, client *redis.Client, p *pipeline) core.Event {
	ctx, stop := n.within(timeout(call))
	p.batch = append(p.batch, queued{Call: call})
	p.commands(ctx, p.batch)
	client.Process(ctx, &p.cmds[0])
	stop()
	n.mu.Lock()
	n.callers--
	n.mu.Unlock()
	p.answered(n.answer(call, &p.cmds[0], &p.values))
	return p.outcome()[0]
}

// enqueue lets those of the calls that are for this node wait for the next pipeline, without blocking.
func (n *node) enqueue(calls []core.Call) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range calls {
		if calls[i].Node == n.index {
			n.queue = append(n.queue, queued{calls[i], now.Add(timeout(calls[i]))})
		}
	}
	if len(n.queue) > 0 && n.pipelines < maxPipelines {
		n.pipelines++
		go n.run()
	}
}

// run sends pipelines until nothing waits.
func (n *node) run() {
	p := pipelines.Get().(*pipeline)
	defer pipelines.Put(p)
	for {
		failure, ok := n.connect()
		if !ok {
			return
		}
		n.mu.Lock()
		if len(n.queue) == 0 {
			n.pipelines--
			n.mu.Unlock()
			return
		}
		count := min(len(n.queue), maxBatch)
		p.batch = append(p.batch, n.queue[:count]...)
		n.queue = slices.Delete(n.queue, 0, count)
		n.mu.Unlock()
		if failure != nil {
			p.refuse(n, failure)
		} else {
			p.send(n)
		}
		n.driver.step(p.outcome()...)
		p.reset()
	}
}

// connect sees to it that there is a connection, in its own time: if it took that of a call, a node whose handshake
// is slow would be tried for ever and never reached. If somebody else is at it, this pipeline ends.
func (n *node) connect() (failure error, ok bool) {
	n.mu.Lock()
	if hasIdle(n.redis) {
		n.mu.Unlock()
		return nil, true
	}
	if n.connecting {
		n.pipelines--
		n.mu.Unlock()
		return nil, false
	}
	if n.failure != nil && time.Since(n.failed) < connectPause {
		defer n.mu.Unlock()
		return n.failure, true
	}
	n.connecting = true
	n.mu.Unlock()
	err := n.redis.Ping(untilTime(time.Now().Add(connectTime))).Err()
	if err != nil && isReply(err) && !isFull(err) {
		err = nil // the server is there; what it has against us it will say to the calls too
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connecting = false
	n.failure, n.failed = err, time.Now()
	return err, true
}

func timeout(call core.Call) time.Duration { return time.Duration(call.Timeout) * time.Microsecond }

// arguments appends those of a call, as go-redis takes them.
func arguments(to []any, args []string) []any {
	for i := range args {
		to = append(to, &args[i]) // a pointer, since a string as any would be one allocation each
	}
	return to
}

// answer tells the machine what became of a call. The values of the reply are appended to a slice.
func (n *node) answer(call core.Call, cmd *redis.Cmd, values *[]core.Value) core.Answer {
	if err := cmd.Err(); err != nil && err != redis.Nil {
		fault, cause := classify(err, call)
		return core.Answer{Call: call.ID, Fault: fault, Cause: n.redact(cause)}
	}
	begin := len(*values)
	*values = flatten(*values, cmd.Val())
	return core.Answer{Call: call.ID, Reply: (*values)[begin:]}
}

// flatten appends a reply's values; what no script of ours replies becomes a string, which makes no sense to the machine.
func flatten(values []core.Value, reply any) []core.Value {
	list, ok := reply.([]any)
	if !ok {
		return append(values, core.Value{IsString: true})
	}
	for _, element := range list {
		switch v := element.(type) {
		case int64:
			values = append(values, core.Value{Int: v})
		case string:
			values = append(values, core.Value{Str: v, IsString: true})
		default:
			values = append(values, core.Value{IsString: true})
		}
	}
	return values
}

// redact takes the password out of a text that a server or library made.
func (n *node) redact(text string) string {
	if n.endpoint.password != "" {
		text = strings.ReplaceAll(text, n.endpoint.password, "***")
	}
	return text
}
