// Package faults_test breaks nodes and connections at chosen moments, which needs more
// control than a scenario has, and looks at the Go front door.
package faults_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/tests/internal/testredis"
	"github.com/libredlock/libredlock/tests/runner"
)

// cleanupLimit is how soon the first undo must have cleaned up. It is less than
// the second after which the undo is repeated, so that a repetition can't hide a first one that failed.
const cleanupLimit = 800 * time.Millisecond

func open(t testing.TB, config redlock.Config) *redlock.Client {
	t.Helper()
	client, err := redlock.Open(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// warm makes every node know all scripts, so that an attempt is one call a node.
func warm(t testing.TB, servers ...*testredis.Server) {
	t.Helper()
	for _, s := range servers {
		for _, one := range script.All {
			require.NoError(t, s.Client().ScriptLoad(context.Background(), one.Source).Err())
		}
	}
}

// keysLeft lists what is left on a server but fence counters.
func keysLeft(s *testredis.Server) []string {
	return slices.DeleteFunc(s.Keys(), runner.IsFenceCounter)
}

func requireNoKeys(t testing.TB, limit time.Duration, servers ...*testredis.Server) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for _, s := range servers {
		for len(keysLeft(s)) > 0 {
			require.True(t, time.Now().Before(deadline), "keys are left after %v: %q", limit, keysLeft(s))
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// fence is the counter of a lock whose name has no hash tag.
func fence(name string) string { return "{" + name + "}:redlock:mutex:fence:" + name }

// calls tells whether a command runs a script.
func calls(args []string, s *script.Script) bool {
	return strings.EqualFold(args[0], "EVALSHA") && args[1] == s.SHA
}

// proxies puts one before each server.
func proxies(t testing.TB, servers []*testredis.Server) (all []*testredis.Proxy, urls []string) {
	t.Helper()
	for _, s := range servers {
		p := testredis.StartProxy(t, s)
		all, urls = append(all, p), append(urls, p.URL)
	}
	return all, urls
}

// closed waits for a channel.
func closed(t testing.TB, c <-chan struct{}, limit time.Duration, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(limit):
		require.Fail(t, what+" does not come", "within %v", limit)
	}
}
