// Command handoff measures how long it takes from the release of a lock until the next waiter has it, for libredlock and
// for other libraries, each with its defaults.
//
//	./build.sh bench handoff                     # installs what it needs, and runs this
//	./build.sh bench handoff -only redsync,node  # contestants whose names contain one of these
//
// In each contest some workers want one lock: one holds it for 10 to 30 ms (random, so that nobody's polling falls into
// step), notes the time, releases, and asks again when another has got it. Who gets it notes the time too: all processes of a
// machine share CLOCK_MONOTONIC. The workers are in one process, or in one each. Every contestant plays on the same server, which is
// emptied in between.
//
// A count of the commands that clients send (MONITOR, without those within scripts) follows the
// measurement, not to disturb it; so does the count while nothing happens, before it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A contestant is a library as a language has it.
type contestant struct {
	shown    string
	language string // the program that plays it: tests/peers/<language>/handoff
	id       string // what that program calls it
}

var contestants = []contestant{
	{"libredlock (Go)", "go", "libredlock"},
	{"libredlock (Python)", "python", "libredlock"},
	{"libredlock (Node)", "node", "libredlock"},
	{"redsync", "go", "redsync"},
	{"rueidislock", "go", "rueidislock"},
	{"redis-py Lock", "python", "redis-py"},
	{"python-redis-lock", "python", "python-redis-lock"},
	{"node-redlock", "node", "node-redlock"},
	{"redis-semaphore", "node", "redis-semaphore"},
}

// plan is how long things take.
type plan struct {
	handOffs int           // that are measured, if they fit into the limit
	limit    time.Duration // of measuring
	idle     time.Duration // without a release, while commands are counted
}

// warmUp is how many hand-offs at the start do not count.
const warmUp = 10

// A contest is how many wait, and where.
type contest struct {
	waiters int
	apart   bool // a process each
	idle    bool // whether commands are counted while nothing happens
}

var contests = []contest{
	{waiters: 1, apart: true},
	{waiters: 10, apart: true, idle: true},
	{waiters: 100, apart: true},
	{waiters: 1},
	{waiters: 10, idle: true},
	{waiters: 100},
}

func (c contest) title() string { return fmt.Sprintf("%d waiting, %s", c.waiters, where(c.apart)) }

func main() {
	var p plan
	root := flag.String("root", "..", "root of the checkout")
	only := flag.String("only", "", "contestants whose names contain one of these, by commas (default all)")
	most := flag.Int("most", 100, "leave out contests with more waiters")
	flag.IntVar(&p.handOffs, "n", 200, "hand-offs to measure")
	flag.DurationVar(&p.limit, "limit", 6*time.Second, "limit for measuring them")
	flag.DurationVar(&p.idle, "idle", 3*time.Second, "how long to count commands while nothing happens")
	flag.Parse()
	if err := run(*root, *only, *most, p); err != nil {
		fmt.Fprintln(os.Stderr, "handoff:", err)
		os.Exit(1)
	}
}

func run(root, only string, most int, p plan) error {
	shop, err := newWorkshop(root)
	if err != nil {
		return err
	}
	s, err := startServer()
	if err != nil {
		return err
	}
	defer s.stop()
	var r report
	var failures []error
	for _, c := range contests {
		for _, who := range contestants {
			if c.waiters > most || !chosen(who.shown, only) {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s: %s\n", c.title(), who.shown)
			result, err := play(shop, s, c, who, p)
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %s: %w", c.title(), who.shown, err))
				continue
			}
			r = append(r, result)
		}
	}
	r.print(os.Stdout, machine(s.version))
	return errors.Join(failures...)
}

func chosen(name, only string) bool {
	for _, part := range strings.Split(only, ",") {
		if strings.Contains(strings.ToLower(name), strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// A workshop knows the programs.
type workshop struct{ root, build, goProgram string }

func newWorkshop(root string) (workshop, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return workshop{}, err
	}
	w := workshop{root: root, build: filepath.Join(root, "build")}
	w.goProgram = filepath.Join(w.build, "bench", "handoff-go")
	compile := exec.Command("go", "build", "-o", w.goProgram, "./handoff")
	compile.Dir = w.peers("go")
	if said, err := compile.CombinedOutput(); err != nil {
		return w, fmt.Errorf("go build: %w\n%s", err, said)
	}
	for _, needed := range []string{"build/peers/venv", "build/lib/libredlock.so", "build/redlock.wasm", "tests/peers/node/node_modules"} {
		if _, err := os.Stat(filepath.Join(root, needed)); err != nil {
			return w, fmt.Errorf("%s is missing: ./build.sh bench makes it", needed)
		}
	}
	return w, nil
}

func (w workshop) peers(parts ...string) string {
	return filepath.Join(append([]string{w.root, "tests", "peers"}, parts...)...)
}

// command is a program of a language, before its arguments.
func (w workshop) command(language string, args ...string) *exec.Cmd {
	var cmd *exec.Cmd
	switch language {
	case "go":
		cmd = exec.Command(w.goProgram, args...)
	case "python":
		cmd = exec.Command(filepath.Join(w.build, "peers", "venv", "bin", "python"), append([]string{w.peers("python", "handoff.py")}, args...)...)
	default:
		cmd = exec.Command("node", append([]string{w.peers("node", "handoff.js")}, args...)...)
	}
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(w.root, "bindings", "python", "src"),
		"REDLOCK_LIBRARY="+filepath.Join(w.build, "lib", "libredlock.so"),
		"REDLOCK_WASM="+filepath.Join(w.build, "redlock.wasm"))
	return cmd
}
