package driver

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/core"
)

// Now reads the clock of every lease: monotonic, and counting while the machine is suspended.
func Now() core.Time { return core.Time(boottime() / 1000) }

// boottime is Now in nanoseconds.
func boottime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("driver: CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
	}
	return now.Nano()
}

// CLOCK_BOOTTIME is the monotonic clock and the time of all suspends. It costs a system call, which the monotonic
// clock does not.
var (
	start     = time.Now()
	suspended atomic.Int64 // boottime less the time since start, in nanoseconds
	looked    atomic.Int64 // time since start at the last look at boottime, in nanoseconds
)

func init() { look() }

// look finds out about suspends. The gap is never found too large, since the second clock is read later.
func look() {
	looked.Store(int64(time.Since(start)))
	gap := boottime() - int64(time.Since(start))
	for known := suspended.Load(); gap > known && !suspended.CompareAndSwap(known, gap); {
		known = suspended.Load()
	}
}

// stepTime is Now for the machine, except that it may miss a suspend of less than a millisecond ago. A lease that counts
// from such a time only ends the sooner; one that has ended is found out by Remaining at once, and by the machine a moment later.
func stepTime() core.Time {
	if int64(time.Since(start))-looked.Load() > int64(time.Millisecond) {
		look()
	}
	return core.Time((int64(time.Since(start)) + suspended.Load()) / 1000)
}
