// Command driver holds locks by foreign libraries in Go, by the line protocol of tests/drivers/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/serve"
)

// A library makes locks on some nodes.
type library interface {
	// acquire waits for a lock until ctx ends, or asks once. errHeld: someone else has it.
	acquire(ctx context.Context, name string, ttl time.Duration, once bool) (lock, error)
	close()
}

// A lock is one that is held. Both fail with errNotHeld if it is not any more.
type lock interface {
	renew(ctx context.Context, ttl time.Duration) error
	release(ctx context.Context) error
}

var (
	errHeld    = errors.New("someone else holds it")
	errNotHeld = errors.New("it is not held any more")
)

var libraries = map[string]func(addresses []string) library{
	"redsync":   newRedsync,
	"redislock": newRedislock,
}

func main() {
	s := &server{Server: serve.New(os.Stdout, "go"), clients: map[string]library{}, locks: map[string]lock{}}
	if err := s.Run(os.Stdin, s.answer); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// server is the state of the driver.
type server struct {
	*serve.Server

	mu      sync.Mutex // of the maps, both by the runner's names
	clients map[string]library
	locks   map[string]lock
}

func (s *server) answer(ctx context.Context, r *line.Line) *line.Line {
	reply := &line.Line{ID: r.ID, Word: "OK"}
	if err := s.do(ctx, r); err != nil {
		switch {
		case errors.Is(err, errNotHeld):
			reply.Word = "NOT_HELD"
		case errors.Is(err, context.DeadlineExceeded):
			reply.Word = "TIMEOUT"
		case errors.Is(err, errHeld):
			reply.Word = "HELD"
		default:
			reply.Word = "FAILED"
		}
		reply.Add("message", err.Error())
	}
	return reply
}

func (s *server) do(ctx context.Context, r *line.Line) error {
	switch r.Word {
	case "open":
		open := libraries[r.Get("library")]
		if open == nil {
			return fmt.Errorf("no library %q", r.Get("library"))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clients[r.Get("client")] = open(r.All("node"))
		return nil
	case "acquire", "try_acquire":
		return s.acquire(ctx, r)
	case "close":
		s.client(r).close()
		return nil
	}
	s.mu.Lock()
	held := s.locks[r.Get("held")]
	s.mu.Unlock()
	switch {
	case held == nil:
		return fmt.Errorf("no lock %q", r.Get("held"))
	case r.Word == "renew":
		ttl, err := milliseconds(r, "ttl_ms")
		if err != nil {
			return err
		}
		return held.renew(ctx, ttl)
	case r.Word == "release":
		return held.release(ctx)
	}
	return fmt.Errorf("no verb %q", r.Word)
}

func (s *server) client(r *line.Line) library {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[r.Get("client")]
}

func (s *server) acquire(ctx context.Context, r *line.Line) error {
	ttl, err := milliseconds(r, "ttl_ms")
	if err != nil {
		return err
	}
	once := r.Word == "try_acquire"
	if !once {
		wait, err := milliseconds(r, "wait_ms")
		if err != nil {
			return err
		}
		limited, stop := context.WithTimeout(ctx, wait)
		defer stop()
		ctx = limited
	}
	held, err := s.client(r).acquire(ctx, r.Get("name"), ttl, once)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks[r.Get("held")] = held
	return nil
}

func milliseconds(r *line.Line, key string) (time.Duration, error) {
	ms, err := r.Int(key, 0)
	if err == nil && ms <= 0 {
		err = fmt.Errorf("%s is missing", key)
	}
	return time.Duration(ms) * time.Millisecond, err
}
