// Package drivers builds and starts the driver of each language and talks to it.
package drivers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libredlock/libredlock/tests/drivers/go/driver"
	"github.com/libredlock/libredlock/tests/drivers/wazero"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/wasmhost"
)

// Names lists every driver.
var Names = []string{"go", "c", "c-async", "python", "python-async", "node", "wazero"}

// LanguageOf is the language of a driver.
func LanguageOf(name string) string {
	language, _, _ := strings.Cut(name, "-")
	return language
}

// startLimit bounds how long a driver may take to say that it is ready.
const startLimit = 30 * time.Second

// Driver is a running driver.
type Driver struct {
	Name string

	lacks []string
	input io.WriteCloser
	ended chan struct{} // closed when its output ended

	mu      sync.Mutex
	last    int
	calls   map[string]*Call
	losses  map[string]chan struct{} // by hold; closed when it is lost
	failure error                    // why it ended, or what it said that makes no sense
}

// Call is a request that was sent.
type Call struct {
	ID    string
	Verb  string
	reply chan *line.Line
}

// Launcher starts a driver, any number of times.
type Launcher struct {
	name    string
	command func() *exec.Cmd                 // of a process
	serve   func(io.Reader, io.Writer) error // in this process, if it is not nil
}

// Prepare builds what a driver needs. A missing tool fails the test if REDLOCK_STRICT is 1, else skips it.
func Prepare(t testing.TB, name string) *Launcher {
	t.Helper()
	switch name {
	case "go":
		return &Launcher{name: name, serve: driver.Serve}
	case "wazero":
		if _, err := wasmhost.Module(); err != nil {
			Missing(t, "%v (./build.sh wasm makes it)", err)
		}
		return &Launcher{name: name, serve: wazero.Serve}
	}
	return PrepareProcess(t, name)
}

// PrepareProcess is Prepare with a process for Go too.
func PrepareProcess(t testing.TB, name string) *Launcher {
	t.Helper()
	return &Launcher{name: name, command: command(t, name)}
}

// Start starts a driver, which ends with the test.
func Start(t testing.TB, name string) *Driver {
	t.Helper()
	return Prepare(t, name).Start(t)
}

// Start starts the driver, which ends with the test.
func (l *Launcher) Start(t testing.TB) *Driver {
	t.Helper()
	if l.serve != nil {
		input, toDriver := io.Pipe()
		fromDriver, output := io.Pipe()
		go func() { output.CloseWithError(l.serve(input, output)) }()
		return start(t, l.name, toDriver, fromDriver, nil)
	}
	cmd := l.command()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("driver %s: %v", l.name, err)
	}
	return start(t, l.name, input, output, cmd)
}

func start(t testing.TB, name string, input io.WriteCloser, output io.Reader, cmd *exec.Cmd) *Driver {
	t.Helper()
	d := &Driver{
		Name: name, input: input, ended: make(chan struct{}),
		calls: map[string]*Call{}, losses: map[string]chan struct{}{},
	}
	ready := make(chan struct{})
	go d.read(output, ready, cmd)
	t.Cleanup(func() {
		input.Close()
		select {
		case <-d.ended:
		case <-time.After(startLimit):
			if cmd != nil {
				cmd.Process.Kill()
			}
			t.Errorf("driver %s does not end at the end of its input", name)
			return
		}
		if err := d.Err(); err != nil {
			t.Errorf("driver %s: %v", name, err)
		}
	})
	select {
	case <-ready:
	case <-d.ended:
		t.Fatalf("driver %s ended at once: %v", name, d.Err())
	case <-time.After(startLimit):
		t.Fatalf("driver %s is not ready after %v", name, startLimit)
	}
	return d
}

// Lacks tells whether the driver said that its language cannot express something.
func (d *Driver) Lacks(what string) bool {
	for _, lacked := range d.lacks {
		if lacked == what {
			return true
		}
	}
	return false
}

// Err is why the driver ended or must not be used any more; nil if all is well.
func (d *Driver) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}

// Send sends a request.
func (d *Driver) Send(verb string, fields ...line.Field) *Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	call := &Call{ID: fmt.Sprint(d.last), Verb: verb, reply: make(chan *line.Line, 1)}
	d.calls[call.ID] = call
	for _, field := range fields {
		if field.Key == "held" && (verb == "acquire" || verb == "try_acquire") {
			d.losses[field.Value] = make(chan struct{})
		}
	}
	request := line.Line{ID: call.ID, Word: verb, Fields: fields}
	if _, err := fmt.Fprintln(d.input, request.String()); err != nil {
		d.fail(fmt.Errorf("it doesn't read: %w", err))
	}
	return call
}

// Await waits for the reply to a request.
func (d *Driver) Await(call *Call, limit time.Duration) (*line.Line, error) {
	select {
	case reply := <-call.reply:
		return reply, nil
	case <-d.ended:
		select {
		case reply := <-call.reply:
			return reply, nil
		default:
			return nil, fmt.Errorf("driver %s ended without an answer to %s: %v", d.Name, call.Verb, d.Err())
		}
	case <-time.After(limit):
		return nil, fmt.Errorf("driver %s has no answer to %s after %v", d.Name, call.Verb, limit)
	}
}

// Call sends a request and waits for its reply.
func (d *Driver) Call(limit time.Duration, verb string, fields ...line.Field) (*line.Line, error) {
	return d.Await(d.Send(verb, fields...), limit)
}

// Lost gives a channel that is closed when the driver tells that a hold is lost.
func (d *Driver) Lost(held string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.losses[held]
}

// read takes in what the driver writes until it ends.
func (d *Driver) read(output io.Reader, ready chan struct{}, cmd *exec.Cmd) {
	defer close(d.ended)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l, err := line.Parse(lines.Text())
		d.mu.Lock()
		switch {
		case err != nil:
			d.fail(err)
		case l.ID != line.Unasked:
			d.replied(l)
		case l.Word == "ready":
			d.lacks = strings.Split(l.Get("lacks"), ",")
			close(ready)
		case l.Word == "lost":
			d.lost(l.Get("held"))
		default:
			d.fail(fmt.Errorf("an unknown message: %s", l))
		}
		d.mu.Unlock()
	}
	err := lines.Err()
	if cmd != nil {
		err = errors.Join(err, cmd.Wait())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.fail(err)
	}
}

func (d *Driver) replied(l *line.Line) {
	call := d.calls[l.ID]
	if call == nil {
		d.fail(fmt.Errorf("a second answer, or one to no request: %s", l))
		return
	}
	delete(d.calls, l.ID)
	call.reply <- l
}

func (d *Driver) lost(held string) {
	loss := d.losses[held]
	if loss == nil {
		d.fail(fmt.Errorf("the loss of no hold: %q", held))
		return
	}
	select {
	case <-loss:
		d.fail(fmt.Errorf("told twice that %q is lost", held))
	default:
		close(loss)
	}
}

func (d *Driver) fail(err error) {
	if d.failure == nil {
		d.failure = err
	}
}
