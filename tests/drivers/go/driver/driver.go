// Package driver drives core/redlock by the line protocol of tests/drivers/README.md.
package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/serve"
)

// Serve answers the requests that it reads from in until in ends.
func Serve(in io.Reader, out io.Writer) error {
	s := &server{
		Server:  serve.New(out, "go", "negative_wait"),
		clients: map[string]*redlock.Client{},
		holds:   map[string]*redlock.Held{},
	}
	return s.Run(in, s.answer)
}

// server is the state of one driver.
type server struct {
	*serve.Server

	mu      sync.Mutex // of the maps, both by the runner's names
	clients map[string]*redlock.Client
	holds   map[string]*redlock.Held
}

func (s *server) client(r *line.Line) *redlock.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[r.Get("client")]
}

func (s *server) held(r *line.Line) *redlock.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[r.Get("held")]
}

// errRequest is a request that makes no sense: a mistake of the runner.
var errRequest = errors.New("bad request to the driver")

func (s *server) answer(ctx context.Context, r *line.Line) *line.Line {
	reply := &line.Line{ID: r.ID}
	err := s.do(ctx, r, reply)
	reply.Word = statusOf(err)
	if err != nil {
		reply.Fields = nil
		reply.Add("message", messageOf(err))
	}
	return reply
}

func (s *server) do(ctx context.Context, r, reply *line.Line) error {
	switch r.Word {
	case "open":
		return s.open(ctx, r)
	case "renew", "release", "remaining":
		held := s.held(r)
		if held == nil {
			return fmt.Errorf("%w: no such hold", errRequest)
		}
		return onHeld(ctx, held, r, reply)
	}
	client := s.client(r)
	if client == nil {
		return fmt.Errorf("%w: no such client", errRequest)
	}
	switch r.Word {
	case "acquire", "try_acquire":
		return s.acquire(ctx, client, r, reply)
	case "inspect":
		return inspect(ctx, client, r, reply)
	case "force_release":
		lock, err := lockOf(client, r)
		if err != nil {
			return err
		}
		return lock.ForceRelease(ctx, r.Get("digest"))
	case "close":
		return client.Close()
	case "hammer":
		return hammer(ctx, client, r, reply)
	}
	return fmt.Errorf("%w: no verb %q", errRequest, r.Word)
}

func (s *server) open(ctx context.Context, r *line.Line) error {
	nodeTimeout, err := duration(r, "node_timeout_ms", 0)
	if err != nil {
		return err
	}
	unavailableAfter, err := duration(r, "unavailable_after_ms", 0)
	if err != nil {
		return err
	}
	client, err := redlock.Open(ctx, redlock.Config{
		Nodes: r.All("node"), Prefix: r.Get("prefix"), NodeTimeout: nodeTimeout, UnavailableAfter: unavailableAfter,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[r.Get("client")] = client
	return nil
}

func (s *server) acquire(ctx context.Context, client *redlock.Client, r, reply *line.Line) error {
	lock, err := lockOf(client, r)
	if err != nil {
		return err
	}
	wait, err := duration(r, "wait_ms", -time.Millisecond)
	if err != nil {
		return err
	}
	var held *redlock.Held
	switch {
	case r.Word == "try_acquire" || wait == 0:
		held, err = lock.TryAcquire(ctx)
	case wait > 0:
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		defer stop()
		fallthrough
	default:
		held, err = lock.Acquire(ctx)
	}
	if err != nil {
		return err
	}
	name := r.Get("held")
	s.mu.Lock()
	s.holds[name] = held
	s.mu.Unlock()
	reply.Add("token", held.Token())
	reply.Add("fence", fmt.Sprint(held.Fence()))
	if r.Get("kind") == "semaphore" {
		reply.AddInt("slot", int64(held.Slot()))
	}
	reply.AddInt("remaining_ms", held.Remaining().Milliseconds())
	context.AfterFunc(held.Context(), func() {
		cause := context.Cause(held.Context())
		if !errors.Is(cause, redlock.ErrLost) {
			return
		}
		lost := &line.Line{ID: line.Unasked, Word: "lost"}
		lost.Add("held", name)
		lost.Add("cause", messageOf(cause))
		s.Send(lost)
	})
	return nil
}

func onHeld(ctx context.Context, held *redlock.Held, r, reply *line.Line) error {
	switch r.Word {
	case "renew":
		ttl, err := duration(r, "ttl_ms", 0)
		if err != nil {
			return err
		}
		if err := held.Renew(ctx, ttl); err != nil {
			return err
		}
	case "release":
		return held.Release()
	}
	reply.AddInt("remaining_ms", held.Remaining().Milliseconds())
	return nil
}

func inspect(ctx context.Context, client *redlock.Client, r, reply *line.Line) error {
	lock, err := lockOf(client, r)
	if err != nil {
		return err
	}
	inspection, err := lock.Inspect(ctx)
	if err != nil {
		return err
	}
	reply.Add("kind", inspection.Kind)
	reply.Add("fence", fmt.Sprint(inspection.Fence))
	reply.Add("queue_length", fmt.Sprint(inspection.QueueLength))
	for _, holder := range inspection.Holders {
		reply.Add("who", holder.Who)
		reply.Add("digest", holder.Digest)
		ttl := holder.TTL.Milliseconds()
		if holder.TTL < 0 {
			ttl = -1
		}
		reply.AddInt("ttl_ms", ttl)
		reply.AddInt("nodes", int64(holder.Nodes))
		if inspection.Kind == "semaphore" {
			reply.AddInt("slot", int64(holder.Slot))
		}
	}
	return nil
}

// lockOf describes the lock of a request. What the request leaves out is left out here.
func lockOf(client *redlock.Client, r *line.Line) (*redlock.Lock, error) {
	var options []redlock.Option
	for key, option := range map[string]func(time.Duration) redlock.Option{
		"ttl_ms": redlock.WithTTL, "max_hold_ms": redlock.WithMaxHold,
	} {
		if _, found := r.Lookup(key); !found {
			continue
		}
		d, err := duration(r, key, 0)
		if err != nil {
			return nil, err
		}
		options = append(options, option(d))
	}
	retry, err := retryOf(r)
	if err != nil {
		return nil, err
	}
	options = append(options, retry)
	for key, option := range map[string]func(bool) redlock.Option{
		"fencing": redlock.WithFencing, "auto_renew": redlock.WithAutoRenew, "queue": redlock.WithQueue,
	} {
		if value, found := r.Lookup(key); found {
			options = append(options, option(value == "on"))
		}
	}
	if metadata, found := r.Lookup("metadata"); found {
		options = append(options, redlock.WithMetadata(metadata))
	}
	name := r.Get("name")
	switch kind := r.Get("kind"); kind {
	case "mutex":
		return client.Mutex(name, options...), nil
	case "semaphore":
		permits, err := r.Int("permits", 1)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRequest, err)
		}
		return client.Semaphore(name, int(permits), options...), nil
	default:
		return nil, fmt.Errorf("%w: no kind %q", errRequest, kind)
	}
}

// retryOf says how a lock polls: all zero, if the request says nothing of it, is the default.
func retryOf(r *line.Line) (redlock.Option, error) {
	delay, err1 := duration(r, "retry_delay_ms", 0)
	jitter, err2 := duration(r, "retry_jitter_ms", 0)
	tries, err3 := r.Int("max_tries", 0)
	if err3 != nil {
		err3 = fmt.Errorf("%w: %w", errRequest, err3)
	}
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	return redlock.WithRetry(delay, jitter, int(tries)), nil
}

func duration(r *line.Line, key string, absent time.Duration) (time.Duration, error) {
	ms, err := r.Int(key, absent.Milliseconds())
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errRequest, err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
