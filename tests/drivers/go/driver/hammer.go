package driver

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/line"
)

// hammer takes the lock as often as it can and bumps a counter that nothing but the lock protects.
func hammer(ctx context.Context, client *redlock.Client, r, reply *line.Line) error {
	seconds, err := r.Int("seconds", 1)
	if err != nil {
		return err
	}
	lock, err := lockOf(client, r)
	if err != nil {
		return err
	}
	counter, err := mapCounter(r.Get("counter"))
	if err != nil {
		return err
	}
	defer unix.Munmap(counter)
	file, err := os.OpenFile(r.Get("log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	log := bufio.NewWriter(file)
	defer log.Flush() // also of what was noted before a failure

	grants := int64(0)
	for until := time.Now().Add(time.Duration(seconds) * time.Second); grants == 0 || time.Now().Before(until); grants++ {
		held, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		begin := boottime()
		value := binary.LittleEndian.Uint64(counter)
		runtime.Gosched()
		binary.LittleEndian.PutUint64(counter, value+1)
		end := boottime()
		fence := held.Fence()
		if err := held.Release(); err != nil {
			return err
		}
		fmt.Fprintln(log, begin, end, fence)
	}
	reply.AddInt("grants", grants)
	return nil
}

func mapCounter(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return unix.Mmap(int(file.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func boottime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}
