package driver

import (
	"context"
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
)

// node sends calls to one Redis.
type node struct {
	driver   *Driver
	index    int
	endpoint endpoint
	redis    *redis.Client
	listener *listener

	mu        sync.Mutex
	callers   int // that use a connection of their own
	pipelines int
	queue     []queued
}

// queued is a call that waits for a pipeline.
type queued struct {
	core.Call
	deadline time.Time
}

func newNode(d *Driver, index int, e endpoint) *node {
	n := &node{driver: d, index: index, endpoint: e}
	n.redis = redis.NewClient(&redis.Options{
		Network:  e.network,
		Addr:     e.address,
		Username: e.username,
		Password: e.password,
		DB:       e.db,
		Protocol: 2,
		Dialer:   n.dial,
		// The machine decides what to do about a failure: nothing below it may send a command twice.
		MaxRetries:    -1,
		DialerRetries: 1,
		// Every call has its own deadline, in its context.
		ContextTimeoutEnabled: true,
		ReadTimeout:           -1,
		WriteTimeout:          -1,
		DialTimeout:           5 * time.Second,
		PoolTimeout:           5 * time.Second,
		PoolSize:              maxAlone + maxPipelines,
		ConnMaxIdleTime:       -1, // a lock's next call should find its connection
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
		OnConnect: n.connected,
	})
	n.listener = newListener(n)
	return n
}

func (n *node) close() {
	n.listener.close()
	n.redis.Close()
}

// until is a context with a deadline and nothing else: it needs no timer.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

func untilTime(at time.Time) context.Context { return until{context.Background(), at} }

// enter takes one of the places for callers with a connection of their own.
func (n *node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.callers >= maxAlone || len(n.queue) > 0 {
		return false
	}
	n.callers++
	return true
}

// do makes one call, after enter.
func (n *node) do(call core.Call) core.Event {
	ctx := untilTime(time.Now().Add(timeout(call)))
	cmd := command(ctx, call)
	n.redis.Process(ctx, cmd)
	n.mu.Lock()
	n.callers--
	n.mu.Unlock()
	answer := n.answer(call, cmd)
	return &answer
}

// enqueue lets a call wait for the next pipeline, without blocking.
func (n *node) enqueue(call core.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, queued{call, time.Now().Add(timeout(call))})
	if n.pipelines < maxPipelines {
		n.pipelines++
		go n.run()
	}
}

// run sends pipelines until nothing waits.
func (n *node) run() {
	for {
		n.mu.Lock()
		if len(n.queue) == 0 {
			n.pipelines--
			n.mu.Unlock()
			return
		}
		batch := n.queue
		n.queue = nil
		if len(batch) > maxBatch {
			n.queue = append(n.queue, batch[maxBatch:]...)
			batch = batch[:maxBatch]
		}
		n.mu.Unlock()
		n.driver.perform(n.driver.step(n.pipeline(batch)...))
	}
}

// pipeline sends a batch and gives the answers. What waited too long is not sent.
func (n *node) pipeline(batch []queued) []core.Event {
	events := make([]core.Event, 0, len(batch))
	now := time.Now()
	last := now
	live := batch[:0]
	for _, q := range batch {
		if q.deadline.After(now) {
			live = append(live, q)
			if q.deadline.After(last) {
				last = q.deadline
			}
		} else {
			events = append(events, &core.Answer{Call: q.ID, Fault: core.Refused, Cause: timeoutCause(q.Call) + ", not sent"})
		}
	}
	if len(live) == 0 {
		return events
	}
	ctx := untilTime(last)
	cmds := make([]*redis.Cmd, len(live))
	answers := make([]core.Answer, len(live))
	pipe := n.redis.Pipeline()
	for i, q := range live {
		cmds[i] = command(ctx, q.Call)
		pipe.Process(ctx, cmds[i])
	}
	pipe.Exec(ctx)
	for i, q := range live {
		answers[i] = n.answer(q.Call, cmds[i])
		events = append(events, &answers[i])
	}
	return events
}

func timeout(call core.Call) time.Duration { return time.Duration(call.Timeout) * time.Microsecond }

func command(ctx context.Context, call core.Call) *redis.Cmd {
	args := make([]any, len(call.Args))
	for i := range call.Args {
		args[i] = &call.Args[i] // a pointer, since a string as any would be one allocation each
	}
	return redis.NewCmd(ctx, args...)
}

// answer tells the machine what became of a call.
func (n *node) answer(call core.Call, cmd *redis.Cmd) core.Answer {
	if err := cmd.Err(); err != nil && err != redis.Nil {
		fault, cause := classify(err, call)
		return core.Answer{Call: call.ID, Fault: fault, Cause: n.redact(cause)}
	}
	return core.Answer{Call: call.ID, Reply: flatten(cmd.Val())}
}

// flatten turns a reply into values; what no script of ours replies becomes a string, which makes no sense to the machine.
func flatten(reply any) []core.Value {
	list, ok := reply.([]any)
	if !ok {
		return []core.Value{{IsString: true}}
	}
	values := make([]core.Value, len(list))
	for i, element := range list {
		switch v := element.(type) {
		case int64:
			values[i].Int = v
		case string:
			values[i] = core.Value{Str: v, IsString: true}
		default:
			values[i].IsString = true
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
