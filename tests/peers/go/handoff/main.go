// Command handoff is the hand-off benchmark's contestants in Go; see tests/bench/handoff.
//
//	handoff CONTESTANT ADDRESS STATE LOG WORKERS
package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// acquire waits for the lock and gives what releases it.
type acquire func() (release func() error, err error)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "handoff:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("5 arguments expected, not %d", len(args))
	}
	open := contestants[args[0]]
	if open == nil {
		return fmt.Errorf("no contestant is called %q", args[0])
	}
	workers, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	state, err := os.OpenFile(args[2], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(args[3], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	worker, err := open(args[1])
	if err != nil {
		return err
	}
	go func() { // the benchmark ends this process by ending its input
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	fmt.Println("ready")
	b := board{state, log}
	b.await(orderHold)
	var all sync.WaitGroup
	for range workers {
		acquire := worker()
		all.Go(func() {
			fmt.Fprintln(os.Stderr, "handoff:", b.work(acquire))
			os.Exit(1)
		})
	}
	all.Wait()
	return nil
}

// board is what all workers of all processes share.
type board struct{ state, log *os.File }

// What the state says, 8 bytes each: an order of the benchmark's, when the last release was called, and how often the lock was
// acquired; only who has the lock writes the latter two.
const (
	order = iota * 8
	released
	acquired
)

// The orders: hold the lock, and go on taking turns.
const (
	orderHold = 1
	orderRun  = 2
)

func (b board) read(what int64) int64 {
	var value [8]byte
	if _, err := b.state.ReadAt(value[:], what); err != nil {
		panic(err)
	}
	return int64(binary.LittleEndian.Uint64(value[:]))
}

func (b board) write(what, number int64) {
	if _, err := b.state.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(number)), what); err != nil {
		panic(err)
	}
}

// await waits for an order.
func (b board) await(wanted int64) {
	for b.read(order) < wanted {
		time.Sleep(5 * time.Millisecond)
	}
}

// work takes the lock again and again, until it can't, and notes how long each hand-off to it took.
func (b board) work(acquire acquire) error {
	for {
		release, err := acquire()
		if err != nil {
			return err
		}
		now := monotonic()
		if before := b.read(released); before != 0 {
			fmt.Fprintln(b.log, now-before)
		}
		turn := b.read(acquired) + 1
		b.write(acquired, turn)
		b.await(orderRun)
		time.Sleep(10*time.Millisecond + rand.N(20*time.Millisecond))
		b.write(released, monotonic())
		if err := release(); err != nil {
			return err
		}
		for b.read(acquired) == turn { // it is to be handed over: who released it does not take part
			time.Sleep(time.Millisecond)
		}
	}
}

// monotonic is the clock that all processes of a machine share, in ns.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}
