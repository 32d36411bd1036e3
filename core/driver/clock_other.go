//go:build !linux

package driver

import (
	"sync"
	"time"

	"github.com/libredlock/libredlock/core"
)

var clock struct {
	sync.Mutex
	start time.Time
	last  time.Time
	extra time.Duration // by which the wall clock has run ahead of the monotonic one
}

// Now reads the clock of every lease. The monotonic clock may stand still while the machine is suspended, so
// whatever the wall clock has moved on beyond it counts as elapsed.
func Now() core.Time {
	clock.Lock()
	defer clock.Unlock()
	now := time.Now()
	if clock.start.IsZero() {
		clock.start, clock.last = now, now
	}
	monotonic := now.Sub(clock.last)
	wall := now.Round(0).Sub(clock.last.Round(0))
	if ahead := wall - monotonic; ahead > time.Millisecond {
		clock.extra += ahead
	}
	clock.last = now
	return core.Time((now.Sub(clock.start)+clock.extra)/time.Microsecond) + 1
}

func stepTime() core.Time { return Now() }
