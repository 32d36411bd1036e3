package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// servers are the nodes that the lock stands on.
type servers struct {
	urls     []string
	clients  []*redis.Client // of those that answer
	silent   []string        // the addresses of the others
	embedded *miniredis.Miniredis
}

// openServers connects to the given nodes, or starts a Redis in this process if none is given.
func openServers(ctx context.Context, urls []string) (*servers, error) {
	s := &servers{urls: urls}
	if len(urls) == 0 {
		s.embedded = miniredis.NewMiniRedis()
		s.embedded.ClockTTL(true) // leases end by the clock, as on a real server
		if err := s.embedded.StartAddr("127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("cannot start the embedded Redis: %w", err)
		}
		s.urls = []string{"redis://" + s.embedded.Addr()}
	}
	logging.Disable()
	var failures []error
	for i, url := range s.urls {
		options, err := redis.ParseURL(url)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("REDLOCK_NODES: node %d is no URL of a Redis (redis://[user:password@]host[:port][/db])", i)
		}
		client := redis.NewClient(options)
		if err := client.Ping(ctx).Err(); err != nil {
			_ = client.Close()
			s.silent = append(s.silent, options.Addr)
			failures = append(failures, fmt.Errorf("REDLOCK_NODES: node %d (%s): %w", i, options.Addr, err))
			continue
		}
		s.clients = append(s.clients, client)
	}
	if len(s.clients) <= len(s.silent) {
		s.close()
		return nil, errors.Join(failures...)
	}
	return s, nil
}

// String names the servers, without passwords.
func (s *servers) String() string {
	if s.embedded != nil {
		return "an embedded Redis (" + s.embedded.Addr() + ")"
	}
	addresses := make([]string, len(s.clients))
	for i, client := range s.clients {
		addresses[i] = client.Options().Addr
	}
	if len(s.urls) == 1 {
		return "the Redis at " + addresses[0]
	}
	text := fmt.Sprintf("%d Redis servers (%s)", len(s.urls), strings.Join(addresses, ", "))
	if len(s.silent) > 0 {
		text += ", without those that do not answer (" + strings.Join(s.silent, ", ") + ")"
	}
	return text
}

// sweep tells which keys of the lock still stand. The counter of fencing tokens outlives a lock
// by design (it expires after ten minutes); the name is never used again, so it is removed here.
func (s *servers) sweep(ctx context.Context, name string) (left []string, err error) {
	for _, client := range s.clients {
		scan := client.Scan(ctx, 0, "*"+name+"*", 1000).Iterator()
		for scan.Next(ctx) {
			key := scan.Val()
			if !strings.Contains(key, ":fence:") {
				left = append(left, key+" on "+client.Options().Addr)
			}
			if err := client.Del(ctx, key).Err(); err != nil {
				return left, err
			}
		}
		if err := scan.Err(); err != nil {
			return left, err
		}
	}
	return left, nil
}

func (s *servers) close() {
	for _, client := range s.clients {
		_ = client.Close()
	}
	if s.embedded != nil {
		s.embedded.Close()
	}
}
