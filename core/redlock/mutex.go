package redlock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/driver"
)

// Lock is a name and how to lock it. It holds nothing itself: acquiring gives a Held.
type Lock struct {
	client  *Client
	request core.Acquire
}

// Option sets how a lock is held.
type Option func(*core.Acquire)

// WithTTL sets the lease, 100 ms to 24 h. Default 10 s.
func WithTTL(ttl time.Duration) Option {
	return func(r *core.Acquire) {
		r.TTL = micros(ttl)
		if ttl == 0 {
			r.TTL = -1 // not the default: whoever says 0 is told the limits
		}
	}
}

// WithFencing turns fencing tokens on or off. Default on.
func WithFencing(on bool) Option { return func(r *core.Acquire) { r.Fencing = toggle(on) } }

// WithAutoRenew turns automatic renewal on or off. This version has none: on is ErrUnsupported.
func WithAutoRenew(on bool) Option { return func(r *core.Acquire) { r.AutoRenew = toggle(on) } }

// WithQueue turns FIFO waiting on or off. This version has none: on is ErrUnsupported.
func WithQueue(on bool) Option { return func(r *core.Acquire) { r.Queue = toggle(on) } }

// WithMaxHold ends automatic renewal after a time. This version has none: other than 0 is ErrUnsupported.
func WithMaxHold(limit time.Duration) Option {
	return func(r *core.Acquire) { r.MaxHold = micros(limit) }
}

// WithMetadata sets a text that Inspect shows of the holder.
func WithMetadata(text string) Option { return func(r *core.Acquire) { r.Metadata = text } }

func toggle(on bool) core.Toggle {
	if on {
		return core.On
	}
	return core.Off
}

func micros(d time.Duration) core.Duration { return core.Duration(d.Microseconds()) }

// Mutex describes a lock that one holder at a time has: a name of 1 to 1024 bytes of UTF-8 and options.
func (c *Client) Mutex(name string, options ...Option) *Lock {
	lock := &Lock{client: c, request: core.Acquire{Kind: core.Mutex, Name: name}}
	for _, option := range options {
		option(&lock.request)
	}
	return lock
}

// Acquire waits for the lock until ctx ends. A ctx with a deadline that passes gives ErrTimeout if someone
// else held the lock, ErrUnavailable if too few nodes answered. A call that is on its
// way to a single node is not interrupted by ctx: it ends by the node timeout.
func (l *Lock) Acquire(ctx context.Context) (*Held, error) {
	if err := ctx.Err(); err != nil {
		return nil, contextError(ctx, err)
	}
	wait := core.Forever
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(micros(time.Until(deadline)), 1)
		var cancel context.CancelFunc
		// The machine ends the wait at the deadline, with the better reason; the context is for cancellation.
		ctx, cancel = withoutDeadline(ctx)
		defer cancel()
	}
	return l.acquire(ctx, wait)
}

// TryAcquire asks once: ErrHeld if someone else holds it.
func (l *Lock) TryAcquire(ctx context.Context) (*Held, error) { return l.acquire(ctx, 0) }

func (l *Lock) acquire(ctx context.Context, wait core.Duration) (*Held, error) {
	request := l.request
	request.Wait = wait
	result, err := l.client.do(ctx, &request)
	if err != nil {
		return nil, err
	}
	return newHeld(l.client, result.Hold), nil
}

// Do acquires, calls f with a context that ends when the lock is lost, and releases. If the lock was lost
// the error matches ErrLost, joined with f's own if it has one.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context, held *Held) error) error {
	held, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	released := false
	defer func() { // f may panic
		if !released {
			held.Release()
		}
	}()
	body, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held.Context(), func() { cancel(context.Cause(held.Context())) })()
	err = f(body, held)
	released = true
	return errors.Join(err, held.Release())
}

// Held is a lock that is ours. It alone renews and releases it; it is safe for concurrent use.
type Held struct {
	hold    *driver.Hold
	client  *Client
	cleanup runtime.Cleanup
	asked   sync.Once // for the context: most holders never do
	context context.Context
}

func newHeld(c *Client, hold *driver.Hold) *Held {
	held := &Held{hold: hold, client: c}
	held.cleanup = runtime.AddCleanup(held, func(hold *driver.Hold) {
		c.logger.Warn("redlock: a lock was garbage-collected unreleased; releasing it", "name", hold.Name)
		hold.SubmitRelease(func(driver.Result) {})
	}, hold)
	return held
}

// Name is the lock's name, without the client's prefix.
func (h *Held) Name() string { return h.hold.Name }

// Token is the value that stands in Redis.
func (h *Held) Token() string { return h.hold.Token }

// Fence is the fencing token: larger than that of every earlier holder of the name. 0 without fencing.
func (h *Held) Fence() uint64 { return uint64(h.hold.Fence) }

// Remaining is how long the lock is certainly ours; 0 once it is lost or released.
func (h *Held) Remaining() time.Duration { return h.hold.Remaining() }

// Context ends when the lock is lost, with a cause that matches ErrLost. It does not end at the release.
func (h *Held) Context() context.Context {
	h.asked.Do(func() {
		var cancel context.CancelCauseFunc
		h.context, cancel = context.WithCancelCause(context.Background())
		h.hold.OnLost(func(cause string) { cancel(&Error{Status: core.Lost, Message: cause}) })
	})
	return h.context
}

// Renew extends the lease to ttl from now; 0 means the ttl that it has. ErrLost: stop the work.
// ErrUnavailable: held until the old deadline, or the new one if that is earlier.
func (h *Held) Renew(ctx context.Context, ttl time.Duration) error {
	_, err := h.client.do(ctx, &core.Renew{Hold: h.hold.ID, TTL: micros(ttl)})
	return err
}

// Release gives the lock back, within the node timeout. Whatever it returns, the lock is not ours
// afterwards. ErrLost: it was not ours any more. ErrUnavailable: too few nodes confirmed; it is
// repeated in the background, and the key's ttl does the rest.
func (h *Held) Release() error {
	h.cleanup.Stop()
	return wrap(h.hold.Release())
}
