package driver

import (
	"context"
	"net"
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
	redis   *redis.Client       // nil before the first subscription, like the next two
	pubsub  *redis.PubSub
	stop    context.CancelFunc
	conn    net.Conn // the newest
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
			l.redis = redis.NewClient(l.node.options(l.dial, 1))
			l.pubsub, l.stop = l.redis.Subscribe(ctx), stop
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

// dial connects, so that close can end a handshake that hangs, during which go-redis keeps everybody waiting.
func (l *listener) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.node.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	l.conn = conn
	return conn, nil
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
		default:
			l.dropped(err)
			quiet = false
			if failures++; failures > 1 {
				select {
				case <-ctx.Done():
				case <-time.After(listenAgain):
				}
			}
		}
	}
}

// hear waits for the next message, and has time to connect before. A connection that is silent once more after a ping is given up: go-redis
// does so for a deadline of the context, not for its own timeout.
func (l *listener) hear(ctx context.Context, quiet bool) (any, error) {
	if quiet {
		return l.pubsub.ReceiveTimeout(untilTime(time.Now().Add(listenIdle)), 0)
	}
	return l.pubsub.ReceiveTimeout(until{ctx, time.Now().Add(listenIdle + connectTime)}, listenIdle)
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

// dropped tells of every channel that was on.
func (l *listener) dropped(err error) {
	_, why := classify(err, core.Call{})
	var events []core.Event
	l.mu.Lock()
	for channel, on := range l.on {
		if on {
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
	conn := l.conn
	l.mu.Unlock()
	if l.pubsub == nil {
		return
	}
	l.stop()
	if conn != nil {
		conn.Close()
	}
	l.pubsub.Close()
	l.redis.Close()
}
