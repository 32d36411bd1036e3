package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// oneWay is how long a command or reply takes through the proxies of these tests: a
// round trip of 10 ms, so that moments a millisecond apart fall on all sides of it.
const oneWay = 5 * time.Millisecond

// TestGivingUpAtAnyMoment sweeps a cancellation and a deadline over an acquire: over connecting, asking and
// answering, with one node and with three. Whatever comes of it, no key is left after the cleanup's round trip.
func TestGivingUpAtAnyMoment(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, connected := range []bool{true, false} {
			for _, deadline := range []bool{true, false} {
				t.Run(fmt.Sprintf("nodes=%d/connected=%t/deadline=%t", nodes, connected, deadline), func(t *testing.T) {
					servers := testredis.StartN(t, nodes)
					warm(t, servers...)
					links, urls := proxies(t, servers)
					for _, p := range links {
						p.Delay(oneWay)
					}
					ends := map[redlock.Status]int{}
					for span := 60 * time.Millisecond; ends[ok] == 0; span *= 2 { // how far depends on the machine
						require.Less(t, span, 5*time.Second, "however late, no acquire succeeds: %v", ends)
						ends = sweep(t, urls, connected, deadline, span)
						requireNoKeys(t, cleanupLimit, servers...)
						t.Logf("given up within %v: %v", span, ends)
					}
					if deadline || nodes > 1 { // a call to the only node is not interrupted: it is answered, or times out
						require.Greater(t, len(ends), 1, "however early, every acquire succeeds")
					}
				})
			}
		}
	}
}

// sweep gives up acquires of many names, each a little later, and counts how they end.
func sweep(t *testing.T, urls []string, connected, deadline bool, span time.Duration) map[redlock.Status]int {
	config := redlock.Config{Nodes: urls, NodeTimeout: 5 * time.Second} // a busy machine is no failing node
	shared := open(t, config)
	if connected {
		held, err := shared.Mutex("first").Acquire(context.Background())
		require.NoError(t, err)
		require.NoError(t, held.Release())
	}
	const count = 40
	var acquires sync.WaitGroup
	var mu sync.Mutex
	ends := map[redlock.Status]int{}
	for i := range count {
		client := shared
		if !connected {
			client = open(t, config)
		}
		acquires.Go(func() {
			ctx, stop := giveUp(deadline, span*time.Duration(i)/count)
			defer stop()
			status := ok
			held, err := client.Mutex(fmt.Sprint("lock", i)).Acquire(ctx)
			if err == nil {
				assert.NoError(t, held.Release())
			} else {
				var failure *redlock.Error
				assert.ErrorAs(t, err, &failure)
				status = failure.Status
			}
			mu.Lock()
			defer mu.Unlock()
			ends[status]++
		})
	}
	acquires.Wait()
	for status := range ends {
		switch name := status.String(); {
		case status == ok, !deadline && name == "CANCELED", deadline && (name == "TIMEOUT" || name == "UNAVAILABLE"):
		default:
			t.Errorf("%v is no answer to giving up", status)
		}
	}
	return ends
}

const ok redlock.Status = 0

// giveUp makes a context that ends after d, by a deadline or a cancellation.
func giveUp(deadline bool, d time.Duration) (context.Context, context.CancelFunc) {
	if deadline {
		return context.WithTimeout(context.Background(), d)
	}
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(d, stop)
	return ctx, stop
}

// TestGrantArrivesAfterGivingUp: the nodes have not even got the request when its caller gives up, and
// grant it when they have executed the undo. As the connections live, the late answers bring another undo at once.
func TestGrantArrivesAfterGivingUp(t *testing.T) {
	for _, deadline := range []bool{true, false} {
		t.Run(fmt.Sprintf("deadline=%t", deadline), func(t *testing.T) {
			servers := testredis.StartN(t, 3)
			warm(t, servers...)
			links, urls := proxies(t, servers)
			client := open(t, redlock.Config{Nodes: urls, NodeTimeout: 5 * time.Second})
			held, err := client.Mutex("warm").Acquire(context.Background())
			require.NoError(t, err)
			require.NoError(t, held.Release())

			land := make(chan struct{})
			var undone sync.WaitGroup
			for _, p := range links {
				undone.Add(1)
				once := sync.OnceFunc(undone.Done)
				p.Hook(func(args []string) testredis.Fault {
					switch {
					case calls(args, script.MutexAcquire):
						<-land
					case calls(args, script.MutexUndo):
						once()
					}
					return testredis.Pass
				})
			}
			ctx, stop := giveUp(deadline, 50*time.Millisecond)
			defer stop()
			_, err = client.Mutex("x", redlock.WithTTL(time.Minute)).Acquire(ctx)
			require.Error(t, err)
			all := make(chan struct{})
			go func() { undone.Wait(); close(all) }()
			closed(t, all, 3*time.Second, "the undo on each node")
			close(land)
			for _, s := range servers {
				granted := func() bool { return s.Client().Exists(context.Background(), fence("x")).Val() == 1 }
				require.Eventually(t, granted, time.Second, time.Millisecond, "the late grant")
			}
			requireNoKeys(t, cleanupLimit/2, servers...)
		})
	}
}

// TestGivingUpWhileTheLockBecomesFree sweeps the cancellation of a waiter over the moment in which
// its turn comes.
func TestGivingUpWhileTheLockBecomesFree(t *testing.T) {
	server := testredis.Start(t)
	links, urls := proxies(t, []*testredis.Server{server})
	links[0].Delay(oneWay / 2)
	holder, waiter := open(t, redlock.Config{Nodes: []string{server.URL}}), open(t, redlock.Config{Nodes: urls})
	var waits sync.WaitGroup
	var mu sync.Mutex
	var canceled, acquired int
	for i := range 60 {
		name := fmt.Sprint("lock", i)
		held, err := holder.Mutex(name).Acquire(context.Background())
		require.NoError(t, err)
		time.AfterFunc(50*time.Millisecond, func() { assert.NoError(t, held.Release()) })
		waits.Go(func() {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			time.AfterFunc(time.Duration(40+2*i)*time.Millisecond, stop)
			mine, err := waiter.Mutex(name).Acquire(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				assert.ErrorIs(t, err, redlock.ErrCanceled)
				assert.ErrorIs(t, err, context.Canceled)
				canceled++
				return
			}
			assert.NoError(t, mine.Release())
			acquired++
		})
	}
	waits.Wait()
	t.Logf("%d canceled, %d acquired", canceled, acquired)
	require.Positive(t, canceled)
	require.Positive(t, acquired)
	requireNoKeys(t, cleanupLimit, server)
}

// TestGivingUpWhileNodesAreSilent: cancelling does not wait for the nodes.
func TestGivingUpWhileNodesAreSilent(t *testing.T) {
	urls := []string{testredis.Hanging(t), testredis.Hanging(t), testredis.Hanging(t)}
	client := open(t, redlock.Config{Nodes: urls, NodeTimeout: 2 * time.Second})
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, stop)
	start := time.Now()
	_, err := client.Mutex("x").Acquire(ctx)
	require.ErrorIs(t, err, redlock.ErrCanceled)
	require.Less(t, time.Since(start), time.Second)
}
