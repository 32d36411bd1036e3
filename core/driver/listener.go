package driver

import (
	"context"
	"net"
	"slices"
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
// machine of each that is confirmed, again after a reconnect, and of each that breaks or is refused.
type listener struct {
	node *node

	mu      sync.Mutex
	on      map[string]bool // channels that are wanted: whether they are confirmed
	asked   map[string]bool // channels that the server was asked for, and not to end
	changed map[string]bool // channels of which the server has still to be told
	working bool            // somebody tells it
	redis   *redis.Client   // nil before the first subscription, like the next two
	pubsub  *redis.PubSub
	conn    net.Conn    // the newest
	refused bool        // the server did not allow a channel: it is asked for one at a time
	again   *time.Timer // then the refused ones are asked for again; nil: there are none
	stop    context.CancelFunc
	closed  bool
}

func newListener(n *node) *listener {
	return &listener{node: n, on: map[string]bool{}, asked: map[string]bool{}, changed: map[string]bool{}}
}

// change starts or ends a subscription, without blocking.
func (l *listener) change(sub core.Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sub.On {
		l.on[sub.Channel] = false
	} else {
		delete(l.on, sub.Channel)
	}
	l.changed[sub.Channel] = true
	if !l.working && !l.closed {
		l.working = true
		go l.work()
	}
}

// work tells the server what has changed, all of it at once. A failure is left to receive, which reconnects and
// subscribes to everything that was asked for.
func (l *listener) work() {
	ctx := context.Background()
	for {
		l.mu.Lock()
		if len(l.changed) == 0 || l.closed {
			l.working = false
			l.mu.Unlock()
			return
		}
		begin, end := l.take()
		receive := func() {}
		if l.pubsub == nil && len(begin) > 0 {
			receiving, stop := context.WithCancel(ctx)
			l.redis = redis.NewClient(l.node.options(l.dial, 1))
			l.pubsub, l.stop = l.redis.Subscribe(ctx), stop
			receive = func() { go l.receive(receiving) }
		}
		pubsub, size := l.pubsub, max(1, len(begin))
		if l.refused {
			size = 1 // a command for several channels is refused for one of them
		}
		l.mu.Unlock()
		limited := untilTime(time.Now().Add(listenIdle))
		for some := range slices.Chunk(begin, size) {
			pubsub.Subscribe(limited, some...)
		}
		if len(end) > 0 {
			pubsub.Unsubscribe(limited, end...)
		}
		receive() // now that the first channel is on its way
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

// take empties changed: into channels to subscribe to and others to leave.
func (l *listener) take() (begin, end []string) {
	for channel := range l.changed {
		if _, wanted := l.on[channel]; wanted {
			begin = append(begin, channel)
			l.asked[channel] = true
		} else if l.asked[channel] {
			end = append(end, channel)
			delete(l.asked, channel)
		}
	}
	clear(l.changed)
	slices.Sort(begin)
	return begin, end
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
			l.bearRefusal()
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

// bearRefusal sees to it that the server is asked again: for each channel on its own at once, since it may allow some, then
// from time to time, since the client's rights may change.
func (l *listener) bearRefusal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again == nil && !l.closed {
		after := listenIdle
		if !l.refused {
			after = 0
		}
		l.again = time.AfterFunc(after, l.askAgain)
	}
	l.refused = true
}

// askAgain subscribes to what the server has not confirmed.
func (l *listener) askAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again = nil
	for channel, on := range l.on {
		if !on && l.asked[channel] {
			l.changed[channel] = true
		}
	}
	if len(l.changed) > 0 && !l.working && !l.closed {
		l.working = true
		go l.work()
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
	if l.again != nil {
		l.again.Stop()
	}
	pubsub, conn := l.pubsub, l.conn
	l.mu.Unlock()
	if pubsub == nil {
		return
	}
	l.stop()
	if conn != nil {
		conn.Close()
	}
	pubsub.Close()
	l.redis.Close()
}
