// Command go is the benchmark's peer in Go: one contestant that acquires and releases when it is told to.
//
//	go CONTESTANT ADDRESS ACQUIRE RELEASE COMPARE_AND_DELETE
//
// The last three are the SHA-1s of scripts that the server has. The peer first writes a line with its versions. Then
// each line "CALLERS MILLISECONDS" on the standard input is a run, answered by a line "PAIRS NANOSECONDS".
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// setup is what a peer is started with.
type setup struct {
	address          string // host:port
	acquire, release string // the SHA-1s of libredlock's scripts
	compareAndDelete string // and that of the script which everybody else releases with
}

// worker is one goroutine's part of a run.
type worker struct {
	pairs int          // that one round makes
	round func() error // acquires and releases
}

// contestant makes the workers of a run with so many callers.
type contestant func(callers int) []worker

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("5 arguments expected, not %d", len(args))
	}
	prepare := contestants[args[0]]
	if prepare == nil {
		return fmt.Errorf("no contestant is called %q", args[0])
	}
	contest, err := prepare(setup{address: args[1], acquire: args[2], release: args[3], compareAndDelete: args[4]})
	if err != nil {
		return err
	}
	fmt.Println(versions())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var callers, milliseconds int
		if _, err := fmt.Sscan(lines.Text(), &callers, &milliseconds); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		pairs, elapsed, err := measure(contest(callers), time.Duration(milliseconds)*time.Millisecond)
		if err != nil {
			return err
		}
		fmt.Println(pairs, elapsed.Nanoseconds())
	}
	return lines.Err()
}

func versions() string {
	text := runtime.Version()
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			switch module.Path {
			case "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4":
				text += ", " + strings.Split(module.Path, "/")[2] + " " + module.Version
			}
		}
	}
	return text
}

// measure lets the workers work for a time; a lone one on this goroutine.
func measure(workers []worker, length time.Duration) (pairs int, elapsed time.Duration, err error) {
	start := time.Now()
	if len(workers) == 1 {
		pairs, err = workers[0].work(start, length)
		return pairs, time.Since(start), err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			made, failure := w.work(start, length)
			mu.Lock()
			defer mu.Unlock()
			pairs += made
			if failure != nil {
				err = failure
			}
		})
	}
	all.Wait()
	return pairs, time.Since(start), err
}

func (w worker) work(start time.Time, length time.Duration) (pairs int, err error) {
	for time.Since(start) < length {
		if err := w.round(); err != nil {
			return pairs, err
		}
		pairs += w.pairs
	}
	return pairs, nil
}
