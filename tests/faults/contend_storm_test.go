package faults_test

import (
	"testing"
	"time"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

const (
	contenders = 10
	// contendLimit bounds how long a client may go without the lock on several nodes: a hold that is lost costs others its
	// ttl, a message that is lost 1.25 s, and in between 10 clients are to come to agree.
	contendLimit = stormTTL + 3*time.Second
)

// TestStormOnAQuorum: troubles in the middle of a storm of releases that are published on three nodes. They keep what they
// know when they die, as the algorithm asks of them: then no two hold the lock at once.
func TestStormOnAQuorum(t *testing.T) {
	launchers := launchers(t)
	all := make([]*drivers.Driver, contenders)
	for i := range all {
		all[i] = launchers[i%len(launchers)].Start(t)
	}
	everywhere := func(times int, command ...any) func(*storm) {
		return func(s *storm) {
			for range times {
				s.goOn(30)
				for _, server := range s.servers {
					server.Do(command...)
				}
			}
		}
	}
	for _, test := range []struct {
		name    string
		allowed []string
		trouble func(s *storm)
	}{
		{"none", nil, func(s *storm) { s.goOn(200) }},
		{"scripts are forgotten", nil, everywhere(3, "SCRIPT", "FLUSH")},
		// A release that is sent again may meet another connection that is just being closed.
		{"connections are killed", []string{"UNAVAILABLE"}, everywhere(3, "CLIENT", "KILL", "TYPE", "normal")},
		{"subscriptions are killed", nil, everywhere(3, "CLIENT", "KILL", "TYPE", "pubsub")},
		{"each node dies and comes back", []string{"UNAVAILABLE"}, func(s *storm) {
			for _, server := range s.servers {
				s.goOn(30)
				server.Stop()
				s.goOn(30)
				server.Restart()
			}
			s.goOn(30)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStorm(t, all, 1, testredis.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always")...)
			s.allowed, s.limit = test.allowed, contendLimit
			s.run(test.trouble)
			s.verdict()
		})
	}
}
