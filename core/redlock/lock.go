package redlock

import (
	"cmp"
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

// WithAutoRenew turns automatic renewal on or off. Default on: the lease is extended after each third of the ttl until
// the release. Off is a fixed lease.
func WithAutoRenew(on bool) Option { return func(r *core.Acquire) { r.AutoRenew = toggle(on) } }

// WithQueue turns waiting to be told of a release on or off: with one node in a FIFO queue with direct hand-over, with several
// by asking again, at random, when it is published. Default on. Off polls, and tells nobody; see WithRetry.
func WithQueue(on bool) Option { return func(r *core.Acquire) { r.Queue = toggle(on) } }

// WithRetry sets how a lock WithQueue(false) polls, else it is ErrInvalid: after a refusal it asks again when delay (1 ms to 1 h) and
// at random up to jitter (1 h at most) have passed, and gives up with ErrHeld or ErrUnavailable when it has asked maxTries times.
// 0 is the default: 50 ms, as long as the delay, no limit but that of the wait.
func WithRetry(delay, jitter time.Duration, maxTries int) Option {
	return func(r *core.Acquire) {
		r.Retry = core.Retry{Delay: micros(delay), Jitter: micros(jitter), MaxTries: maxTries}
	}
}

// WithMaxHold limits how long the lock is held, 100 ms or more since the grant: then it is lost. Default 0, no limit.
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

// micros keeps what is too short to be said from becoming 0, which means the default.
func micros(d time.Duration) core.Duration {
	if d != 0 && d.Microseconds() == 0 {
		return core.Duration(max(-1, min(1, d)))
	}
	return core.Duration(d.Microseconds())
}

// Mutex describes a lock that one holder at a time has: a name of 1 to 1024 bytes of UTF-8 and options.
func (c *Client) Mutex(name string, options ...Option) *Lock {
	return c.lock(core.Acquire{Kind: core.Mutex, Name: name}, options)
}

// Semaphore describes a lock that up to so many holders have at a time, 1 to 10,000: each has a slot of its own, 0 to
// permits - 1, and on one node the lowest that is free. Whoever asks says how many permits there are: with more, others may
// enter at once, and with fewer, those who hold one finish.
func (c *Client) Semaphore(name string, permits int, options ...Option) *Lock {
	return c.lock(core.Acquire{Kind: core.Semaphore, Name: name, Permits: cmp.Or(permits, -1)}, options)
}

func (c *Client) lock(request core.Acquire, options []Option) *Lock {
	lock := &Lock{client: c, request: request}
	for _, option := range options {
		option(&lock.request)
	}
	return lock
}

// Acquire waits for the lock until ctx ends, or the tries of WithRetry are used up. A ctx with a deadline that passes gives ErrTimeout if someone
// else held the lock, ErrUnavailable if too few nodes answered; both match context.DeadlineExceeded then. A call that is on
// its way to a single node, and known to be up, is not interrupted by a cancellation: it ends by the node timeout.
func (l *Lock) Acquire(ctx context.Context) (*Held, error) {
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return nil, &Error{Status: core.Timeout, Message: "the context's deadline had passed before", context: err}
	}
	deadline, limited := ctx.Deadline()
	if !limited {
		return l.acquire(ctx, core.Forever)
	}
	// The machine ends the wait at the deadline, with the better reason; the context is for cancellation.
	waiting, cancel := withoutDeadline(ctx)
	defer cancel()
	held, err := l.acquire(waiting, max(micros(time.Until(deadline)), 1))
	if err, ok := err.(*Error); ok && err.context == nil && !time.Now().Before(deadline) {
		err.context = context.DeadlineExceeded
	}
	return held, err
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

// Do acquires, calls f with a context that ends when the lock is lost, and releases. Its error is that of the acquire, or
// f's own, joined with one that matches ErrLost if the lock was lost. A release that could not be
// confirmed is only logged: f has done its work.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context, held *Held) error) (err error) {
	held, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	body, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held.Context(), func() { cancel(context.Cause(held.Context())) })()
	defer func() { // also if f panics
		released := held.Release()
		if errors.Is(released, ErrUnavailable) {
			l.client.logger.Warn("redlock: a release could not be confirmed", "name", held.Name(), "error", released)
			released = nil
		}
		err = errors.Join(err, released)
	}()
	return f(body, held)
}

// Held is a lock that is ours. It alone renews and releases it; it is safe for concurrent use.
type Held struct {
	hold    *driver.Hold
	client  *Client
	cleanup runtime.Cleanup

	mu       sync.Mutex
	context  context.Context // made when it is first asked for: most holders never do
	end      context.CancelCauseFunc
	released bool
}

func newHeld(c *Client, hold *driver.Hold) *Held {
	held := &Held{hold: hold, client: c}
	held.cleanup = runtime.AddCleanup(held, c.collected, hold)
	return held
}

// collected releases a hold whose Held was garbage-collected.
func (c *Client) collected(hold *driver.Hold) {
	if _, lost := hold.Lost(); !lost {
		c.logger.Warn("redlock: a lock was garbage-collected unreleased; releasing it", "name", hold.Name)
	}
	c.driver.Submit(driver.Submission{Op: c.driver.Reserve(1), Request: hold.Ending(), Done: func(driver.Result) {}})
}

// Name is the lock's name, without the client's prefix.
func (h *Held) Name() string { return h.hold.Name }

// Token is the value that stands in Redis.
func (h *Held) Token() string { return h.hold.Token }

// Fence is the fencing token: larger than that of every earlier holder of the name. 0 without fencing.
func (h *Held) Fence() uint64 { return uint64(h.hold.Fence) }

// Slot is which of a semaphore's permits this is, from 0; 0 for other kinds. Fencing tokens increase for each slot on its own.
func (h *Held) Slot() int { return h.hold.Slot }

// Remaining is how long the lock is certainly ours; 0 once it is lost or released.
func (h *Held) Remaining() time.Duration { return h.hold.Remaining() }

// heldKey is where the context of a hold keeps the Held.
type heldKey struct{}

// Context ends when the lock is lost, with a cause that matches ErrLost, or released, with one that
// matches ErrNotHeld. As long as it is in use the lock is not garbage-collected.
func (h *Held) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.context == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		h.context, h.end = ctx, cancel
		if h.released {
			cancel(errReleased)
		} else { // the callback must not refer to the Held
			h.hold.OnLost(func(cause string) { cancel(&Error{Status: core.Lost, Message: cause}) })
		}
	}
	return context.WithValue(h.context, heldKey{}, h)
}

var errReleased = &Error{Status: core.NotHeld, Message: "it was released"}

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
	err := h.hold.Release()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	if h.end != nil {
		h.end(errReleased)
	}
	return wrap(err)
}
