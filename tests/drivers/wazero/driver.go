// Package wazero drives redlock.wasm by the line protocol of tests/drivers/README.md: the plugin runs on wazero, and core/driver does what
// a host owes it.
package wazero

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/driver"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/serve"
	"github.com/libredlock/libredlock/tests/internal/wasmhost"
)

// Serve answers the requests that it reads from in until in ends.
func Serve(in io.Reader, out io.Writer) error {
	module, err := wasmhost.Module()
	if err != nil {
		return err
	}
	host, err := wasmhost.Linear(module, wasmhost.Options{})
	if err != nil {
		return err
	}
	s := &server{
		Server:  serve.New(out, "wazero", "hammer"),
		host:    host,
		clients: map[string]*client{},
		holds:   map[string]*driver.Hold{},
	}
	return s.Run(in, s.answer)
}

// server is the state of one driver.
type server struct {
	*serve.Server
	host *wasmhost.Host

	mu      sync.Mutex // of the maps, both by the runner's names
	clients map[string]*client
	closed  []*client
	holds   map[string]*driver.Hold
}

// client is one that was opened, and what its machine lives in.
type client struct {
	*driver.Driver
	machine *wasmhost.Machine
}

// closedMost is how many closed clients the runner may still ask something. The instances of older ones are
// ended: each takes some MB, and there are hundreds.
const closedMost = 10

// close closes a client.
func (s *server) close(c *client) error {
	err := c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.closed, c) {
		s.closed = append(s.closed, c)
	}
	if len(s.closed) > closedMost {
		s.closed[0].machine.Close()
		s.closed = s.closed[1:]
	}
	return asError(err)
}

func (s *server) client(r *line.Line) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[r.Get("client")]
}

func (s *server) hold(r *line.Line) *driver.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[r.Get("held")]
}

func (s *server) answer(ctx context.Context, r *line.Line) *line.Line {
	reply := &line.Line{ID: r.ID, Word: core.OK.String()}
	if err := s.do(ctx, r, reply); err != nil {
		reply.Word, reply.Fields = "NO_STATUS", nil // which no scenario expects
		message := err.Error()
		var failure *core.Error
		if errors.As(err, &failure) {
			reply.Word, message = failure.Status.String(), failure.Message
			for _, node := range failure.Nodes {
				message += "\n" + node.String()
			}
		}
		reply.Add("message", message)
	}
	return reply
}

func (s *server) do(ctx context.Context, r, reply *line.Line) error {
	switch r.Word {
	case "open":
		return s.open(r)
	case "renew", "release", "remaining":
		hold := s.hold(r)
		if hold == nil {
			return fmt.Errorf("no such hold")
		}
		return onHold(ctx, hold, r, reply)
	}
	client := s.client(r)
	if client == nil {
		return fmt.Errorf("no such client")
	}
	switch r.Word {
	case "acquire", "try_acquire":
		return s.acquire(ctx, client, r, reply)
	case "inspect":
		return inspect(ctx, client, r, reply)
	case "force_release":
		return asError(client.Do(ctx, &core.ForceRelease{Kind: kindOf(r), Name: r.Get("name"), Digest: r.Get("digest")}).Err)
	case "close":
		return s.close(client)
	}
	return fmt.Errorf("no verb %q", r.Word)
}

// asError keeps nil from becoming an error that is not nil.
func asError(err *core.Error) error {
	if err == nil {
		return nil
	}
	return err
}

func (s *server) open(r *line.Line) error {
	opened := &client{}
	config := driver.Config{
		Nodes: r.All("node"), Prefix: r.Get("prefix"), Language: "wazero",
		NewMachine: func(c core.Config) (driver.Machine, *core.Error) {
			instance, err := s.host.New()
			if err != nil {
				return nil, &core.Error{Status: core.Internal, Message: err.Error()}
			}
			var wrong *core.Error
			opened.machine, wrong = wasmhost.Open(instance, c)
			if wrong != nil {
				instance.Close()
			}
			return opened.machine, wrong
		},
	}
	var err error
	if config.NodeTimeout, err = duration(r, "node_timeout_ms", 0); err != nil {
		return err
	}
	if config.UnavailableAfter, err = duration(r, "unavailable_after_ms", 0); err != nil {
		return err
	}
	var failure *core.Error
	if opened.Driver, failure = driver.Open(config); failure != nil {
		return failure
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[r.Get("client")] = opened
	return nil
}

func (s *server) acquire(ctx context.Context, client *client, r, reply *line.Line) error {
	event, err := acquisition(r)
	if err != nil {
		return err
	}
	result := client.Do(ctx, event)
	if result.Err != nil {
		return result.Err
	}
	hold, name := result.Hold, r.Get("held")
	s.mu.Lock()
	s.holds[name] = hold
	s.mu.Unlock()
	reply.Add("token", hold.Token)
	reply.AddInt("fence", hold.Fence)
	if kindOf(r) == core.Semaphore {
		reply.AddInt("slot", int64(hold.Slot))
	}
	reply.AddInt("remaining_ms", hold.Remaining().Milliseconds())
	hold.OnLost(func(cause string) {
		lost := &line.Line{ID: line.Unasked, Word: "lost"}
		lost.Add("held", name)
		lost.Add("cause", cause)
		go s.Send(lost) // OnLost must not be blocked
	})
	return nil
}

// acquisition makes the event of a request. What the request leaves out is left out here.
func acquisition(r *line.Line) (*core.Acquire, error) {
	a := &core.Acquire{
		Kind: kindOf(r), Name: r.Get("name"), Metadata: r.Get("metadata"),
		Fencing: toggle(r, "fencing"), AutoRenew: toggle(r, "auto_renew"), Queue: toggle(r, "queue"),
	}
	if r.Word == "acquire" {
		a.Wait = core.Forever
	}
	for key, field := range map[string]*core.Duration{
		"ttl_ms": &a.TTL, "wait_ms": &a.Wait, "max_hold_ms": &a.MaxHold,
		"retry_delay_ms": &a.Retry.Delay, "retry_jitter_ms": &a.Retry.Jitter,
	} {
		if _, found := r.Lookup(key); found {
			d, err := duration(r, key, 0)
			if err != nil {
				return nil, err
			}
			*field = core.Duration(d.Microseconds())
		}
	}
	tries, err1 := r.Int("max_tries", 0)
	permits, err2 := r.Int("permits", 0)
	a.Retry.MaxTries, a.Permits = int(tries), int(permits)
	return a, cmp.Or(err1, err2)
}

func kindOf(r *line.Line) core.Kind {
	if r.Get("kind") == "semaphore" {
		return core.Semaphore
	}
	return core.Mutex
}

func toggle(r *line.Line, key string) core.Toggle {
	switch r.Get(key) {
	case "on":
		return core.On
	case "off":
		return core.Off
	}
	return core.Default
}

func onHold(ctx context.Context, hold *driver.Hold, r, reply *line.Line) error {
	switch r.Word {
	case "renew":
		ttl, err := duration(r, "ttl_ms", 0)
		if err != nil {
			return err
		}
		if err := hold.Renew(ctx, ttl); err != nil {
			return err
		}
	case "release":
		return asError(hold.Release())
	}
	reply.AddInt("remaining_ms", hold.Remaining().Milliseconds())
	return nil
}

func inspect(ctx context.Context, client *client, r, reply *line.Line) error {
	result := client.Do(ctx, &core.Inspect{Kind: kindOf(r), Name: r.Get("name")})
	if result.Err != nil {
		return result.Err
	}
	reply.Add("kind", r.Get("kind"))
	reply.AddInt("fence", result.Inspection.Fence)
	reply.AddInt("queue_length", result.Inspection.QueueLength)
	for _, holder := range result.Inspection.Holders {
		reply.Add("who", holder.Who)
		reply.Add("digest", holder.Digest)
		ttl := int64(-1)
		if holder.TTL != core.Forever {
			ttl = int64(holder.TTL / core.Millisecond)
		}
		reply.AddInt("ttl_ms", ttl)
		reply.AddInt("nodes", int64(holder.Nodes))
		if kindOf(r) == core.Semaphore {
			reply.AddInt("slot", int64(holder.Slot))
		}
	}
	return nil
}

func duration(r *line.Line, key string, absent time.Duration) (time.Duration, error) {
	ms, err := r.Int(key, absent.Milliseconds())
	return time.Duration(ms) * time.Millisecond, err
}
