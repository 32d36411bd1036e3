// Command bench compares libredlock with what it stands on and with what it competes with: acquire + release of an
// uncontended lock, in pairs a second, in each language, alone and with many callers at once.
//
//	go run ./bench            # in tests/, after ./build.sh lib and python
//	go run ./bench -only go   # one language: go, c, python or asyncio
//
// The limit in each language is "the same scripts": the very commands that libredlock sends, with the same
// arguments, by the client library that is usual there and with nothing around them. For many callers they go in 8
// pipelines whose size is known in advance, which no library that serves independent callers can have.
//
// Machines are noisy, so contestants take turns in short runs (A B C A B C ...), each in a process of its own whose
// connections stay; tables show medians, and ratios are the medians of the ratios within a round. The first round warms
// up and is not counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	var (
		root   = flag.String("root", "..", "root of the checkout")
		only   = flag.String("only", "", "languages to measure, by commas: go, c, python, asyncio (default all)")
		rounds = flag.Int("rounds", 15, "rounds that count")
		length = flag.Duration("run", 250*time.Millisecond, "length of one run")
	)
	flag.Parse()
	if err := run(*root, *only, *rounds, *length); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(root, only string, rounds int, length time.Duration) error {
	ctx := context.Background()
	shop, err := newWorkshop(root)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return missing("redis-server", "apt-get install redis-server")
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	programs, err := shop.programs(chosen)
	if err != nil {
		return err
	}
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()

	var results []*result
	var versions []string
	for _, c := range chosen {
		fmt.Fprintf(os.Stderr, "%s ...\n", c.title)
		r, err := hold(c, programs[c.peer], s, rounds, length)
		if err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
		results = append(results, r)
		if !slices.Contains(versions, r.about) {
			versions = append(versions, r.about)
		}
	}
	costs, err := s.costs(ctx, 2000)
	if err != nil {
		return err
	}
	report{
		facts:   machine(s.version, versions),
		manner:  fmt.Sprintf("medians of %d rounds of %v each, contestants in turns", rounds, length),
		results: results,
		costs:   costs,
	}.print(os.Stdout)
	return nil
}

func newWorkshop(root string) (workshop, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return workshop{}, err
	}
	w := workshop{bench: filepath.Join(root, "tests", "bench"), build: os.Getenv("REDLOCK_BUILD"), python: os.Getenv("REDLOCK_PYTHON")}
	if w.build == "" {
		w.build = filepath.Join(root, "build")
	}
	if w.python == "" {
		w.python = filepath.Join(root, ".venv", "bin", "python")
	}
	return w, nil
}

// choose picks the contests of some languages.
func choose(only string) (chosen []contest, err error) {
	if only == "" {
		return contests, nil
	}
	for _, peer := range strings.Split(only, ",") {
		before := len(chosen)
		for _, c := range contests {
			if c.peer == peer {
				chosen = append(chosen, c)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("-only %s: there are go, c, python and asyncio", peer)
		}
	}
	return chosen, nil
}
