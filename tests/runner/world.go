package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// callLimit bounds every request: nothing in a scenario takes so long.
const callLimit = 20 * time.Second

// Pool is the running drivers, one for each language; a scenario may need several.
type Pool interface {
	Driver(t testing.TB, name string) *drivers.Driver
}

// World is what one scenario acts on.
type World struct {
	t        testing.TB
	id       string // makes the names that drivers see unique
	main     *drivers.Driver
	pool     Pool
	coverage *Coverage

	nodes    []*node
	clients  map[string]*client
	holds    map[string]*hold
	digests  map[string]string
	tasks    map[string]*task
	lastHold int
}

// node is a server or something that poses as one.
type node struct {
	url    string
	server *testredis.Server // nil: a fake
	proxy  *testredis.Proxy  // nil: none before the server
	paused bool
}

type client struct {
	driver *drivers.Driver
	id     string
}

type hold struct {
	driver *drivers.Driver
	id     string
	kind   string
	token  string
	fence  uint64
}

// task is a request that runs beside the scenario.
type task struct {
	client  *client
	call    *drivers.Call
	kind    string // of the lock
	hold    string // the driver's name for what it acquires
	started time.Time
}

// Run runs a scenario against a driver.
func Run(t testing.TB, s *Scenario, id string, main *drivers.Driver, pool Pool, coverage *Coverage) {
	w := &World{
		t: t, id: id, main: main, pool: pool, coverage: coverage,
		clients: map[string]*client{}, holds: map[string]*hold{}, digests: map[string]string{}, tasks: map[string]*task{},
	}
	for _, step := range s.Steps {
		if err := w.step(step); err != nil {
			t.Errorf("%s: %s\n%v", step.At, step.Text, err)
			break
		}
	}
	for name := range w.tasks {
		if !t.Failed() {
			t.Errorf("%s is started and never awaited", name)
		}
	}
	for name, c := range w.clients {
		if _, err := c.driver.Call(callLimit, "close", line.Field{Key: "client", Value: c.id}); err != nil {
			t.Errorf("closing client %s: %v", name, err)
		}
	}
}

// step does one step. The first word says which.
func (w *World) step(s *Step) error {
	first := s.Words[0].Text
	args := s.Words[1:]
	switch first {
	case "servers":
		return w.servers(args)
	case "server":
		return w.server(s, args)
	case "client":
		return w.open(s, args)
	case "start":
		return w.start(args)
	case "await":
		if len(args) > 0 && args[0].Text == "lost" {
			return w.awaitLost(args[1:])
		}
		return w.await(s, args)
	case "pending":
		return w.pending(args)
	case "cancel":
		return w.cancel(args)
	case "remaining", "fence", "token":
		return w.compare(s.Words)
	case "not":
		return w.notLost(args)
	case "no":
		return w.noKeys(args, w.nodes)
	}
	if w.clients[first] == nil {
		return fmt.Errorf("%q is neither a step nor a client", first)
	}
	return w.request(s)
}

// servers makes the nodes: "servers 3 password=secret" or "servers real hanging refusing".
func (w *World) servers(args []Word) error {
	if w.nodes != nil {
		return fmt.Errorf("there are servers already")
	}
	var options []string
	for _, arg := range args {
		if password, found := strings.CutPrefix(arg.Text, "password="); found {
			options = append(options, "--requirepass", password)
			continue
		}
		kinds := []string{arg.Text}
		if n, err := strconv.Atoi(arg.Text); err == nil {
			kinds = slices.Repeat([]string{"real"}, n)
		}
		for _, kind := range kinds {
			n, err := w.newNode(kind)
			if err != nil {
				return err
			}
			w.nodes = append(w.nodes, n)
		}
	}
	for _, n := range w.nodes {
		switch {
		case n.server == nil && n.url == "": // a real one: last, since its options are known now
			n.server = testredis.Start(w.t, options...)
			n.url = n.server.URL
		case n.url == "proxied":
			n.server = testredis.Start(w.t, options...)
			n.proxy = testredis.StartProxy(w.t, n.server)
			n.url = n.proxy.URL
		}
	}
	return nil
}

func (w *World) newNode(kind string) (*node, error) {
	switch kind {
	case "real":
		return &node{}, nil
	case "proxied":
		return &node{url: "proxied"}, nil
	case "refusing":
		return &node{url: testredis.Refusing(w.t)}, nil
	case "hanging":
		return &node{url: testredis.Hanging(w.t)}, nil
	case "garbage":
		return &node{url: testredis.Garbage(w.t)}, nil
	case "wrong_type":
		return &node{url: testredis.WrongType(w.t)}, nil
	}
	return nil, fmt.Errorf("no kind of server is called %q", kind)
}

// nodeURLs are the nodes of a client: those with these numbers, or URLs in which {0} is
// the address of server 0 and {0.unix} the path of its socket.
func (w *World) nodeURLs(list string) ([]string, error) {
	var urls []string
	if list == "" {
		return urls, nil
	}
	for _, item := range strings.Split(list, ",") {
		if i, err := strconv.Atoi(item); err == nil {
			if i >= len(w.nodes) {
				return nil, fmt.Errorf("there is no server %d", i)
			}
			urls = append(urls, w.nodes[i].url)
			continue
		}
		for i, n := range w.nodes {
			item = strings.ReplaceAll(item, fmt.Sprintf("{%d}", i), strings.TrimPrefix(n.url, "redis://"))
			if n.server != nil {
				item = strings.ReplaceAll(item, fmt.Sprintf("{%d.unix}", i), strings.TrimPrefix(n.server.UnixURL, "unix://"))
			}
		}
		urls = append(urls, item)
	}
	return urls, nil
}

// number finds the server that a step is about.
func (w *World) number(word string) (*node, error) {
	i, err := strconv.Atoi(word)
	if err != nil || i >= len(w.nodes) || w.nodes[i].server == nil {
		return nil, fmt.Errorf("%q is not the number of a real server", word)
	}
	return w.nodes[i], nil
}

func (w *World) hold(name string) (*hold, error) {
	if h := w.holds[name]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("no hold is called %q", name)
}
