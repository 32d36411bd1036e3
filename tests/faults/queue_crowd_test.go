package faults_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// TestAThousandWaiters of one process, each for a lock of its own: one subscription, one command a second for each, no
// goroutines of their own.
func TestAThousandWaiters(t *testing.T) {
	const count = 1000
	server := testredis.Start(t)
	warm(t, server)
	holder := open(t, redlock.Config{Nodes: []string{server.URL}})
	waiter := open(t, redlock.Config{Nodes: []string{server.URL}})
	held := make([]*redlock.Held, count)
	inParallel(count, func(i int) {
		var err error // renewed for the first time when the test is long over
		held[i], err = holder.Mutex(fmt.Sprint("lock", i), redlock.WithTTL(10*time.Minute)).Acquire(context.Background())
		assert.NoError(t, err)
	})
	require.False(t, t.Failed())
	require.Zero(t, subscribers(t, server), "whoever does not wait does not listen")
	before := runtime.NumGoroutine()

	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	var waiting sync.WaitGroup
	var mu sync.Mutex
	acquired := map[int]*redlock.Held{}
	for i := range count {
		waiting.Go(func() {
			mine, err := waiter.Mutex(fmt.Sprint("lock", i)).Acquire(ctx)
			if err != nil {
				assert.ErrorIs(t, err, redlock.ErrCanceled)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			acquired[i] = mine
		})
	}
	queues := func() int {
		keys, err := server.Client().Keys(context.Background(), "*:redlock:mutex:queue:*").Result()
		require.NoError(t, err)
		return len(keys)
	}
	eventually(t, replyLimit, "all have their places", func() bool { return queues() == count })
	eventually(t, replyLimit, "the subscription", func() bool { return subscribers(t, server) == 1 })

	begun, calls := betweenBursts(t, server)
	time.Sleep(5 * time.Second) // what is measured is a rate
	ended, later := betweenBursts(t, server)
	took, perWaiter := ended.Sub(begun).Seconds(), float64(later-calls)/count
	t.Logf("%.2f commands a waiter in %.2f s, %d goroutines for %d callers", perWaiter, took, runtime.NumGoroutine()-before, count)
	const noise = 0.5 // of a period: when a burst is over is seen late
	require.Less(t, perWaiter, 1.1*took+noise)
	require.Greater(t, perWaiter, 0.9*took-noise, "who does not beat is dead")
	require.Less(t, runtime.NumGoroutine()-before, count+50)
	require.Equal(t, count, queues(), "all still have their places")
	require.Equal(t, 1, subscribers(t, server))

	const handedOver = 300
	inParallel(handedOver, func(i int) { assert.NoError(t, held[i].Release()) })
	eventually(t, replyLimit, "all that were handed over are held", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acquired) == handedOver
	})
	giveUp()
	waiting.Wait()
	require.Len(t, acquired, handedOver, "the others have given up")
	inParallel(count, func(i int) {
		if i < handedOver {
			assert.NoError(t, acquired[i].Release())
		} else {
			assert.NoError(t, held[i].Release())
		}
	})
	requireNoKeys(t, 2*time.Second, server)
}

// inParallel calls f for 0 to n-1, some at a time.
func inParallel(n int, f func(i int)) {
	const callers = 50
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < n; i += callers {
				f(i)
			}
		})
	}
	all.Wait()
}

// betweenBursts waits for a moment between the beats, which a client sends for all of its places at the same time, and
// counts the calls until then. So a rate is that of whole periods.
func betweenBursts(t *testing.T, server *testredis.Server) (at time.Time, calls int64) {
	t.Helper()
	begun, changed := scriptCalls(t, server), false
	calls, at = begun, time.Now()
	eventually(t, replyLimit, "a pause between two beats", func() bool {
		now := scriptCalls(t, server)
		if now != calls {
			calls, at, changed = now, time.Now(), true
		}
		return changed && time.Since(at) > 200*time.Millisecond
	})
	return at, calls
}

// TestCommandsOfAHandOver: the acquire that takes a place, the renewal that confirms the hand-over, and the release.
// Signs of life come on top, as long as one waits.
func TestCommandsOfAHandOver(t *testing.T) {
	const waiters, rounds = 100, 20
	for name, clients := range map[string]int{"one client": 1, "many clients": waiters} {
		t.Run(name, func(t *testing.T) {
			server := testredis.Start(t)
			warm(t, server)
			all := make([]*redlock.Client, clients)
			for i := range all {
				all[i] = open(t, redlock.Config{Nodes: []string{server.URL}, NodeTimeout: 5 * time.Second})
			}
			start, before := time.Now(), scriptCalls(t, server)
			var work sync.WaitGroup
			for i := range waiters {
				lock := all[i%clients].Mutex("x")
				work.Go(func() {
					for range rounds {
						held, err := lock.Acquire(context.Background())
						if !assert.NoError(t, err) {
							return
						}
						assert.NoError(t, held.Release())
					}
				})
			}
			work.Wait()
			requireCost(t, scriptCalls(t, server)-before, waiters*rounds, clients, defaultTTL, time.Since(start), 3.2)
			requireNoKeys(t, cleanupLimit, server)
		})
	}
}

// defaultTTL is that of the locks that say nothing else.
const defaultTTL = 10 * time.Second

// requireCost checks that hand-overs cost so many commands at most, without the beats of so many clients in that time.
func requireCost(t testing.TB, calls, grants int64, clients int, ttl, took time.Duration, commands float64) {
	t.Helper()
	beats := 1.1 * float64(clients) * (took.Seconds()/beatPeriod(ttl).Seconds() + 1)
	t.Logf("%.3f commands a hand-over (%d between %d clients in %v, with at most %.0f beats)", float64(calls)/float64(grants), grants, clients, took, beats)
	require.LessOrEqual(t, float64(calls)-beats, commands*float64(grants))
}
