package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// TestTenThousandCancellations: acquires that are given up at random moments, while they ask, stand in line, wait in the
// queue or are just handed the lock, leave nothing in Redis and nothing in the process.
func TestTenThousandCancellations(t *testing.T) {
	const names, clients, callers = 25, 5, 50 // callers of each client: two in a line, most of them
	server := testredis.Start(t)
	warm(t, server)
	config := redlock.Config{Nodes: []string{server.URL}, NodeTimeout: 5 * time.Second}
	holder := open(t, config)
	all := make([]*redlock.Client, clients)
	for i := range all {
		all[i] = open(t, config)
	}

	var canceled, acquired atomic.Int64
	// storm has every caller give up so many acquires, while another client holds the locks most of the time.
	storm := func(acquires int) {
		holding, stop := context.WithCancel(context.Background())
		var holders, waiters sync.WaitGroup
		for i := range names {
			holders.Go(func() {
				holdNowAndThen(t, holding, holder.Mutex(fmt.Sprint("lock", i), redlock.WithTTL(2*time.Second)))
			})
		}
		for i := range clients * callers {
			lock := all[i%clients].Mutex(fmt.Sprint("lock", i/clients%names), redlock.WithTTL(2*time.Second))
			waiters.Go(func() {
				for range acquires {
					ctx, cancel := giveUp(false, rand.N(15*time.Millisecond))
					held, err := lock.Acquire(ctx)
					cancel()
					if err == nil {
						acquired.Add(1)
						assert.NoError(t, held.Release())
						continue
					}
					canceled.Add(1)
					assert.ErrorIs(t, err, redlock.ErrCanceled)
				}
			})
		}
		waiters.Wait()
		stop()
		holders.Wait()
		requireNoKeys(t, 3*time.Second, server)
	}
	storm(10) // connections, buffers, subscriptions
	before := quiescent(t, server)
	canceled.Store(0)
	for round := range 4 {
		storm(12)
		require.False(t, t.Failed(), "in round %d", round)
	}
	for canceled.Load() < 10_000 {
		storm(4)
	}
	t.Logf("%d canceled, %d acquired", canceled.Load(), acquired.Load())
	require.Positive(t, acquired.Load(), "none was ever handed the lock")

	var after usage
	eventually(t, 10*time.Second, "all goroutines of the acquires end", func() bool {
		after = quiescent(t, server)
		return after.goroutines <= before.goroutines+5
	})
	t.Logf("in use: %+v, then %+v", before, after)
	more := int64(after.connections - before.connections) // that the clients keep: their pools have room for more
	require.Less(t, after.objects-before.objects, 1500+100*more, "objects in use: an acquire is several")
	require.Less(t, after.bytes-before.bytes, 300_000+75_000*more, "bytes in use: an acquire is more than 500")
}

// holdNowAndThen holds a lock, and hands it over for a moment now and then.
func holdNowAndThen(t *testing.T, ctx context.Context, lock *redlock.Lock) {
	for ctx.Err() == nil {
		held, err := lock.Acquire(context.Background())
		if !assert.NoError(t, err) {
			return
		}
		time.Sleep(rand.N(20 * time.Millisecond)) // the holder works
		assert.NoError(t, held.Release())
	}
}

// usage is what a process and its clients have in use.
type usage struct {
	goroutines, connections int
	objects, bytes          int64
}

// quiescent looks at it, without what is only kept for use again.
func quiescent(t *testing.T, server *testredis.Server) usage {
	t.Helper()
	list, err := server.Client().ClientList(context.Background()).Result()
	require.NoError(t, err)
	runtime.GC()
	runtime.GC() // empties the pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return usage{runtime.NumGoroutine(), strings.Count(list, "\n"), int64(stats.HeapObjects), int64(stats.HeapAlloc)}
}
