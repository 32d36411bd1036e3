package driver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libredlock/libredlock/core"
)

// Hold is a lock that was acquired.
type Hold struct {
	ID    core.OpID
	Name  string
	Token string
	Fence int64
	Slot  int // of a semaphore

	driver   *Driver
	deadline atomic.Int64 // core.Time; 0: over

	mu     sync.Mutex
	over   bool   // lost or released
	lost   bool   // lost
	cause  string // of the loss
	onLost []func(cause string)
}

// Remaining is how long the hold is certainly ours; 0 once it is lost or released.
func (h *Hold) Remaining() time.Duration {
	left := core.Time(h.deadline.Load()) - Now()
	return max(0, time.Duration(left)*time.Microsecond)
}

// OnLost calls f once when the hold is lost, at once if it is; never after the release was asked for. f must not block.
func (h *Hold) OnLost(f func(cause string)) {
	h.mu.Lock()
	if !h.over {
		h.onLost = append(h.onLost, f)
	}
	lost, cause := h.lost, h.cause
	h.mu.Unlock()
	if lost {
		f(cause)
	}
}

// extend sets a new deadline, unless the hold is over.
func (h *Hold) extend(deadline core.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.deadline.Store(int64(deadline))
	}
}

// Lost tells whether the hold was lost, and why.
func (h *Hold) Lost() (cause string, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause, h.lost
}

// lose ends the hold, if it was not released, and gives the callbacks to call without a mutex.
func (h *Hold) lose(cause string) (callbacks []func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil
	}
	h.over, h.lost, h.cause = true, true, cause
	h.deadline.Store(0)
	for _, f := range h.onLost {
		callbacks = append(callbacks, func() { f(cause) })
	}
	h.onLost = nil
	return callbacks
}

// end notes that the release is asked for: from here on the hold is not ours, and not told to be lost.
func (h *Hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over, h.onLost = true, nil
	h.deadline.Store(0)
}

// Renew extends the hold to ttl from now; 0 means the ttl that it has.
func (h *Hold) Renew(ctx context.Context, ttl time.Duration) *core.Error {
	return h.driver.Do(ctx, h.Renewal(ttl)).Err
}

// Renewal is the request of Renew, to be submitted.
func (h *Hold) Renewal(ttl time.Duration) core.Request {
	return &core.Renew{Hold: h.ID, TTL: core.Duration(ttl.Microseconds())}
}

// Release gives the lock back. Whatever it returns, the hold is over.
func (h *Hold) Release() *core.Error {
	return h.driver.Do(context.Background(), h.Ending()).Err
}

// Ending is the request of Release, to be submitted: the hold has ended.
func (h *Hold) Ending() core.Request {
	h.end()
	return &core.Release{Hold: h.ID}
}
