package driver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core"
)

// pipeline is a batch of calls on its way, with the memory that it needs, which is used again.
type pipeline struct {
	batch   []queued
	cmds    []redis.Cmd
	args    []any        // of all commands
	values  []core.Value // of all replies
	answers []core.Answer
	events  []core.Event
}

// The pipelines that nobody uses, and those for one call by its own caller, whose memory is small.
var (
	pipelines = sync.Pool{New: func() any { return new(pipeline) }}
	singles   = sync.Pool{New: func() any { return new(pipeline) }}
)

// refuse answers calls that could not be sent.
func (p *pipeline) refuse(n *node, failure error) {
	for _, q := range p.batch {
		p.answered(core.Answer{Call: q.ID, Fault: core.Refused, Cause: n.redact(cause(failure, q.Call))})
	}
}

// send sends the batch and takes the answers. What waited too long is not sent.
func (p *pipeline) send(n *node) {
	now := time.Now()
	last := now
	live := p.batch[:0]
	for _, q := range p.batch {
		if q.deadline.After(now) {
			live = append(live, q)
			if q.deadline.After(last) {
				last = q.deadline
			}
		} else {
			p.answered(core.Answer{Call: q.ID, Fault: core.Refused, Cause: timeoutCause(q.Call) + ", not sent"})
		}
	}
	if len(live) == 0 {
		return
	}
	ctx, stop := context.WithDeadline(context.Background(), last) // with a timer: see within
	defer stop()
	p.commands(ctx, live)
	pipe := n.redis.Pipeline()
	for i := range p.cmds {
		pipe.Process(ctx, &p.cmds[i])
	}
	_, failure := pipe.Exec(ctx)
	for i, q := range live {
		cmd := &p.cmds[i]
		if cmd.Err() == nil && cmd.Val() == nil {
			cmd.SetErr(failure) // of the handshake, which go-redis does not set
		}
		p.answered(n.answer(q.Call, cmd, &p.values))
	}
}

// commands makes the commands of calls.
func (p *pipeline) commands(ctx context.Context, calls []queued) {
	count := 0
	for i := range calls {
		count += len(calls[i].Args)
	}
	p.args = slices.Grow(p.args, count) // so that it does not move
	for i := range calls {
		begin := len(p.args)
		p.args = arguments(p.args, calls[i].Args)
		p.cmds = append(p.cmds, *redis.NewCmd(ctx, p.args[begin:]...))
	}
}

func (p *pipeline) answered(a core.Answer) { p.answers = append(p.answers, a) }

// outcome is the answers as events.
func (p *pipeline) outcome() []core.Event {
	for i := range p.answers {
		p.events = append(p.events, &p.answers[i])
	}
	return p.events
}

// reset forgets everything but the memory.
func (p *pipeline) reset() {
	clear(p.batch)
	clear(p.cmds)
	clear(p.args)
	clear(p.values)
	clear(p.answers)
	p.batch, p.cmds, p.args, p.values, p.answers, p.events =
		p.batch[:0], p.cmds[:0], p.args[:0], p.values[:0], p.answers[:0], p.events[:0]
}
