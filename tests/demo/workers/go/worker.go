// One of the demo's programs: ../../main.go says what it does, ../../race.go what it prints.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/core/redlock"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: REDLOCK_NODES=URL,... worker-go NAME COUNTER")
	}
	signal.Ignore(syscall.SIGPIPE) // if nobody reads any more: the lock is still to be released
	if err := work(strings.Split(os.Getenv("REDLOCK_NODES"), ","), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func work(nodes []string, name, counter string) error {
	ctx := context.Background()
	client, err := redlock.Open(ctx, redlock.Config{Nodes: nodes})
	if err != nil {
		return err
	}
	defer client.Close()
	lock := client.Mutex(name, redlock.WithTTL(5*time.Second))
	for inputEnded := watchInput(); !inputEnded(); {
		tell("waiting")
		held, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		tell("acquired", held.Fence())
		if err := bump(counter); err != nil {
			return err
		}
		tell("released")
		if err := held.Release(); err != nil {
			return err
		}
		sleepBetween(5*time.Millisecond, 80*time.Millisecond) // so that a program that waits gets its turn
	}
	return nil
}

func bump(counter string) error {
	text, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	sleepBetween(10*time.Millisecond, 40*time.Millisecond) // the work
	return os.WriteFile(counter, []byte(strconv.Itoa(value+1)+"\n"), 0o644)
}

func sleepBetween(least, most time.Duration) { time.Sleep(least + rand.N(most-least)) }

// tell prints an event, with the time at which it is called.
func tell(kind string, fence ...uint64) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		log.Fatal(err)
	}
	words := []any{kind, now.Nano()}
	for _, f := range fence {
		words = append(words, f)
	}
	fmt.Println(words...)
}

func watchInput() (ended func() bool) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(done)
	}()
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}
