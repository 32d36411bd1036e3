// Command demo lets a Python, a Node, a C and a Go program fight over one lock, shows live who
// holds it, and checks afterwards that the lock kept its promises.
//
// The four programs (in workers/) are separate processes. Each waits for the lock, reads a
// plain file with a number, works a little, writes the number plus one and releases: without
// a lock most of these updates would be lost. Redis is embedded, or what REDLOCK_NODES names.
//
// It exits with 1 if an update was lost, two programs held at once, a fencing token did not
// increase, a program failed or never got the lock, or a key stayed behind.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A setup is where the demo finds and leaves its files, and how long it runs.
type setup struct {
	root     string // of the checkout
	build    string // has lib/ with the libraries and demo/ with the compiled workers
	output   string // folder for the counter and the picture
	python   string // the interpreters
	node     string
	duration time.Duration //
	nodes    []string      // URLs; none: an embedded Redis
}

var errBroken = errors.New("a promise of the lock was broken")

func main() {
	var s setup
	flag.StringVar(&s.root, "root", ".", "root of the checkout")
	flag.StringVar(&s.python, "python", "python3", "Python interpreter")
	flag.StringVar(&s.node, "node", "node", "Node.js interpreter")
	flag.DurationVar(&s.duration, "for", 8*time.Second, "how long they fight")
	flag.Parse()
	s.build = filepath.Join(s.root, "build")
	s.output = filepath.Join(s.build, "demo")
	if nodes := os.Getenv("REDLOCK_NODES"); nodes != "" {
		s.nodes = strings.Split(nodes, ",")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends this program at once; the workers then see the end of their input
	err := run(ctx, s, os.Stdout)
	switch {
	case errors.Is(err, errBroken):
		os.Exit(1) // the report has said it
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	case ctx.Err() != nil:
		os.Exit(130)
	}
}

func run(ctx context.Context, s setup, out io.Writer) error {
	counter := filepath.Join(s.output, "counter")
	if err := os.WriteFile(counter, []byte("0\n"), 0o644); err != nil {
		return err
	}
	servers, err := openServers(ctx, s.nodes)
	if err != nil {
		return err
	}
	defer servers.close()

	fmt.Fprintf(out, "Python, Node, C and Go fight over one lock for %v, on %s.\n\n", s.duration, servers)
	name := "redlock-demo:" + rand.Text()
	workers := []worker{
		{language: python, command: []string{s.python, filepath.Join(s.root, "tests", "demo", "workers", "python", "worker.py")},
			env: []string{"PYTHONPATH=" + filepath.Join(s.root, "bindings", "python", "src"),
				"REDLOCK_LIBRARY=" + filepath.Join(s.build, "lib", "libredlock.so")}},
		{language: node, command: []string{s.node, filepath.Join(s.root, "tests", "demo", "workers", "node", "worker.js")},
			env: []string{"REDLOCK_WASM=" + filepath.Join(s.build, "redlock.wasm")}},
		{language: c, command: []string{filepath.Join(s.build, "demo", "worker-c")}},
		{language: golang, command: []string{filepath.Join(s.build, "demo", "worker-go")}},
	}
	for i := range workers {
		workers[i].command = append(workers[i].command, name, counter)
		// Not as an argument: a URL may have a password in it, and everybody sees arguments.
		workers[i].env = append(workers[i].env, "REDLOCK_NODES="+strings.Join(servers.urls, ","))
	}

	screen := newScreen(out)
	events, failures := race(ctx, workers, s.duration, screen.show)
	screen.end()
	if ctx.Err() != nil {
		fmt.Fprint(out, "Stopped early.\n\n")
	}

	// What follows must also happen after a Ctrl-C.
	left, err := servers.sweep(context.WithoutCancel(ctx), name)
	if err != nil {
		failures = append(failures, fmt.Errorf("cannot look for keys left behind: %w", err))
	}
	count, err := readCounter(counter)
	if err != nil {
		failures = append(failures, err)
	}
	result := judge(historyOf(events), count, left, failures, ctx.Err() != nil)
	picture := filepath.Join(s.output, "timeline.svg")
	if err := drawTimeline(result.history, picture); err != nil {
		return fmt.Errorf("cannot draw the timeline: %w", err)
	}
	if here, err := filepath.Rel(workingDirectory(), picture); err == nil && !strings.HasPrefix(here, "..") {
		picture = here
	}
	result.print(out, picture)
	if !result.kept() {
		return errBroken
	}
	return nil
}

func readCounter(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func workingDirectory() string {
	folder, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return folder
}
