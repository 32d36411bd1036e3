package faults_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// TestConnectionBreaksAfterTheSet: the reply is lost, the key is not. The first undo removes it.
func TestConnectionBreaksAfterTheSet(t *testing.T) {
	server := testredis.Start(t)
	warm(t, server)
	client := open(t, redlock.Config{Nodes: []string{testredis.Dying(t, server, testredis.CutAfter, 1).URL}})
	_, err := client.Mutex("x", redlock.WithTTL(time.Minute)).TryAcquire(context.Background())
	require.ErrorIs(t, err, redlock.ErrUnavailable)
	requireNoKeys(t, cleanupLimit, server)
}

// TestUndoIsRepeated: the first undo is lost too; another comes after a second.
func TestUndoIsRepeated(t *testing.T) {
	server := testredis.Start(t)
	warm(t, server)
	proxy := testredis.StartProxy(t, server)
	var undos atomic.Int64
	proxy.Hook(func(args []string) testredis.Fault {
		switch {
		case calls(args, script.MutexAcquire):
			return testredis.CutAfter
		case calls(args, script.MutexUndo) && undos.Add(1) == 1:
			return testredis.CutBefore
		}
		return testredis.Pass
	})
	client := open(t, redlock.Config{Nodes: []string{proxy.URL}})
	_, err := client.Mutex("x", redlock.WithTTL(time.Minute)).TryAcquire(context.Background())
	require.ErrorIs(t, err, redlock.ErrUnavailable)
	require.Equal(t, []string{"x"}, keysLeft(server), "the first undo never arrived")
	requireNoKeys(t, 2*time.Second, server)
	require.GreaterOrEqual(t, undos.Load(), int64(2))
}

// TestSetLandsAfterItsUndo: the SET was under way all the time, on a connection that the client
// has given up, and overtaken by its own undo on another one.
func TestSetLandsAfterItsUndo(t *testing.T) {
	server := testredis.Start(t)
	warm(t, server)
	proxy := testredis.StartProxy(t, server)
	undone, land := make(chan struct{}), make(chan struct{})
	var undos atomic.Int64
	proxy.Hook(func(args []string) testredis.Fault {
		switch {
		case calls(args, script.MutexAcquire):
			<-land
		case calls(args, script.MutexUndo) && undos.Add(1) == 1:
			defer close(undone)
		}
		return testredis.Pass
	})
	client := open(t, redlock.Config{Nodes: []string{proxy.URL}, NodeTimeout: 100 * time.Millisecond})
	_, err := client.Mutex("x", redlock.WithTTL(time.Minute)).TryAcquire(context.Background())
	require.ErrorIs(t, err, redlock.ErrUnavailable)
	closed(t, undone, 2*time.Second, "the first undo")
	close(land)
	require.Eventually(t, func() bool { return len(keysLeft(server)) == 1 }, 500*time.Millisecond, time.Millisecond,
		"the late SET does not land")
	requireNoKeys(t, 2*time.Second, server)
}

// TestLateGrantOfAMinority: a node's grant arrives when the lock has long been acquired, or released.
func TestLateGrantOfAMinority(t *testing.T) {
	servers := testredis.StartN(t, 3)
	warm(t, servers...)
	links, urls := proxies(t, servers)
	client := open(t, redlock.Config{Nodes: urls, NodeTimeout: 300 * time.Millisecond})
	held, err := client.Mutex("warm").Acquire(context.Background())
	require.NoError(t, err)
	require.NoError(t, held.Release())
	requireNoKeys(t, cleanupLimit, servers...)

	for name, beforeRelease := range map[string]bool{"before": true, "after": false} {
		land := make(chan struct{})
		links[2].Hook(func(args []string) testredis.Fault {
			if calls(args, script.MutexAcquire) {
				<-land
			}
			return testredis.Pass
		})
		held, err = client.Mutex(name, redlock.WithTTL(time.Minute)).Acquire(context.Background())
		require.NoError(t, err)
		if beforeRelease {
			close(land)
			require.Eventually(t, func() bool { return len(keysLeft(servers[2])) == 1 }, time.Second, time.Millisecond)
			require.NoError(t, held.Release())
		} else {
			require.NoError(t, held.Release())
			close(land)
		}
		requireNoKeys(t, 2*time.Second, servers...)
	}
}

// TestScriptsForgotten: every operation finds the server without its script.
func TestScriptsForgotten(t *testing.T) {
	ctx := context.Background()
	servers := testredis.StartN(t, 3)
	flush := func() {
		for _, s := range servers {
			s.Do("SCRIPT", "FLUSH")
		}
	}
	for _, urls := range [][]string{{servers[0].URL}, testredis.URLs(servers)} {
		client := open(t, redlock.Config{Nodes: urls})
		for range 10 {
			flush()
			held, err := client.Mutex("x").Acquire(ctx)
			require.NoError(t, err)
			flush()
			require.NoError(t, held.Renew(ctx, 20*time.Second))
			flush()
			inspection, err := client.Inspect(ctx, "x")
			require.NoError(t, err)
			require.Len(t, inspection.Holders, 1)
			flush()
			require.NoError(t, held.Release())
		}
		requireNoKeys(t, cleanupLimit, servers...)
	}
}

// TestAllConnectionsKilled: every operation finds its connection broken.
func TestAllConnectionsKilled(t *testing.T) {
	ctx := context.Background()
	servers := testredis.StartN(t, 3)
	kill := func() {
		for _, s := range servers {
			s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}
	}
	for _, urls := range [][]string{{servers[0].URL}, testredis.URLs(servers)} {
		client := open(t, redlock.Config{Nodes: urls})
		for range 10 {
			kill()
			limited, stop := context.WithTimeout(ctx, 5*time.Second)
			held, err := client.Mutex("x").Acquire(limited)
			stop()
			require.NoError(t, err)
			kill()
			require.NoError(t, held.Renew(ctx, 20*time.Second))
			kill()
			require.NoError(t, held.Release())
		}
		requireNoKeys(t, 2*time.Second, servers...)
	}
}

// TestNodesFarAway: connecting takes longer than the node timeout, a call does not. The first attempts
// may fail, but not all of them.
func TestNodesFarAway(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("nodes=%d", nodes), func(t *testing.T) {
			servers := testredis.StartN(t, nodes)
			links, urls := proxies(t, servers)
			for _, p := range links {
				p.Delay(50 * time.Millisecond) // 100 ms there and back
			}
			client := open(t, redlock.Config{Nodes: urls, NodeTimeout: 180 * time.Millisecond})
			ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
			defer stop()
			held, err := client.Mutex("x").Acquire(ctx)
			require.NoError(t, err)
			require.NoError(t, held.Release())
			requireNoKeys(t, 5*time.Second, servers...)
		})
	}
}

// TestCloseTellsTheLoss: closing releases what is held, and its holder is told.
func TestCloseTellsTheLoss(t *testing.T) {
	server := testredis.Start(t)
	client, err := redlock.Open(context.Background(), redlock.Config{Nodes: []string{server.URL}})
	require.NoError(t, err)
	held, err := client.Mutex("x").Acquire(context.Background())
	require.NoError(t, err)
	require.NoError(t, client.Close())
	closed(t, held.Context().Done(), time.Second, "the loss")
	require.ErrorIs(t, context.Cause(held.Context()), redlock.ErrLost)
	require.Zero(t, held.Remaining())
	require.Empty(t, keysLeft(server))
}
