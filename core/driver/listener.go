package driver

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core"
)

const (
	listenIdle  = 3 * time.Second        // without a message: ask whether the connection lives
	listenAgain = 100 * time.Millisecond // between attempts to connect, after the first
)

// listener is one node's subscriptions, all on one connection that comes with the first of them. It tells the
// machine of each that is confirmed, again after a reconnect, and of each that breaks.
type listener struct {
	node *node

	mu      sync.Mutex
	changes []core.Subscription // not passed to the server yet
	working bool                // somebody passes them
	pubsub  *redis.PubSub       // nil before the first subscription
	stop    context.CancelFunc
	closed  bool
	on      map[string]bool // channels that were asked for: whether they are confirmed
}

func newListener(n *node) *listener { return &listener{node: n, on: map[string]bool{}} }

// change starts or ends a subscription, without blocking.
func (l *listener) change(sub core.Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, sub)
	if !l.working && !l.closed {
		l.working = true
		go l.work()
	}
}

// work passes the changes to the server in their order. A failure is left to receive, which reconnects and
// subscribes to everything that was asked for.
func (l *listener) work() {
	ctx := context.Background()
	for {
		l.mu.Lock()
		if len(l.changes) == 0 || l.closed {
			l.working = false
			l.mu.Unlock()
			return
		}
		sub := l.changes[0]
		l.changes = l.changes[1:]
		if sub.On {
			l.on[sub.Channel] = false
		} else {
			delete(l.on, sub.Channel)
		}
		started := l.pubsub != nil
		if !started {
			receiving, stop := context.WithCancel(ctx)
			l.pubsub, l.stop = l.node.redis.Subscribe(ctx), stop
			defer func() { go l.receive(receiving) }() // once the first channel is on its way
		}
		pubsub := l.pubsub
		l.mu.Unlock()
		limited := untilTime(time.Now().Add(listenIdle))
		if sub.On {
			pubsub.Subscribe(limited, sub.Channel)
		} else {
			pubsub.Unsubscribe(limited, sub.Channel)
		}
	}
}

// receive passes on what the server tells, until the listener is closed. go-redis reconnects and subscribes
// again to everything that was asked for.
func (l *listener) receive(ctx context.Context) {
	quiet := false // asked whether the connection lives, and heard nothing since
	failures := 0  // in a row
	for ctx.Err() == nil {
		message, err := l.hear(ctx, quiet)
		switch {
		case err == nil:
			quiet, failures = false, 0
			l.pass(message)
		case isTimeout(err) && !quiet:
			quiet = true
			l.pubsub.Ping(untilTime(time.Now().Add(listenIdle)))
		case isReply(err):
			l.dropped(err)
			pause(ctx, listenIdle)
			l.askAgain()
		default:
			l.dropped(err)
			quiet = false
			if failures++; failures > 1 {
				pause(ctx, listenAgain)
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// askAgain subscribes to what the server has refused: the client's rights may have changed.
func (l *listener) askAgain() {
	l.mu.Lock()
	var channels []string
	for channel, on := range l.on {
		if !on {
			channels = append(channels, channel)
		}
	}
	l.mu.Unlock()
	if len(channels) > 0 {
		l.pubsub.Subscribe(untilTime(time.Now().Add(listenIdle)), channels...)
	}
}

// hear waits for the next message. A connection that is silent once more after a ping is given up: go-redis
// does so for a deadline of the context, not for its own timeout.
func (l *listener) hear(ctx context.Context, quiet bool) (any, error) {
	if quiet {
		return l.pubsub.ReceiveTimeout(untilTime(time.Now().Add(listenIdle)), 0)
	}
	return l.pubsub.ReceiveTimeout(ctx, listenIdle)
}

func isTimeout(err error) bool {
	return cause(err, core.Call{}) == timeoutCause(core.Call{})
}

func (l *listener) pass(message any) {
	var event core.Event
	switch m := message.(type) {
	case *redis.Message:
		event = &core.Message{Node: l.node.index, Channel: m.Channel, Payload: m.Payload}
	case *redis.Subscription:
		if m.Kind != "subscribe" || !l.confirm(m.Channel) {
			return
		}
		event = &core.Subscribed{Node: l.node.index, Channel: m.Channel}
	default:
		return
	}
	l.node.driver.step(event)
}

// confirm notes that a channel is on; false if nobody wants it any more.
func (l *listener) confirm(channel string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, wanted := l.on[channel]
	if wanted {
		l.on[channel] = true
	}
	return wanted
}

// dropped tells of every channel that was on, and if the server refuses one of those that are not, of these: it does not say which.
func (l *listener) dropped(err error) {
	fault, why := classify(err, core.Call{})
	var events []core.Event
	l.mu.Lock()
	for channel, on := range l.on {
		if on != (fault == core.ErrorReply) {
			l.on[channel] = false
			events = append(events, &core.Dropped{Node: l.node.index, Channel: channel, Cause: l.node.redact(why)})
		}
	}
	l.mu.Unlock()
	l.node.driver.step(events...)
}

func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	pubsub := l.pubsub
	l.mu.Unlock()
	if pubsub != nil {
		l.stop()
		pubsub.Close()
	}
}
