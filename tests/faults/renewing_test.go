package faults_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// Renewals of one node don't wait for those of another, however many there are.
func TestTenThousandHoldsOutliveANodeThatHangs(t *testing.T) {
	const holds, callers, ttl = 10_000, 100, 4 * time.Second
	servers := testredis.StartN(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL)
	}
	client := open(t, redlock.Config{Nodes: urls})
	held := make([]*redlock.Held, holds)
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for i := caller; i < holds; i += callers {
				h, err := client.Mutex("hold:"+strconv.Itoa(i), redlock.WithTTL(ttl)).Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				held[i] = h
			}
		})
	}
	work.Wait()
	require.False(t, t.Failed())

	servers[1].Pause()
	defer servers[1].Resume()
	for end := time.Now().Add(2 * ttl); time.Now().Before(end); time.Sleep(ttl / 8) {
		for _, h := range held {
			require.Positive(t, h.Remaining(), h.Name())
		}
	}
}
