package driver

import (
	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/core"
)

// Now reads the clock of every lease: monotonic, and counting while the machine is suspended.
func Now() core.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("driver: CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
	}
	return core.Time(now.Nano() / 1000)
}
