package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
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
					sweep(t, urls, connected, deadline)
					requireNoKeys(t, cleanupLimit, servers...)
				})
			}
		}
	}
}

// sweep gives up acquires of many names, each a millisecond later, and returns when they have ended.
func sweep(t *testing.T, urls []string, connected, deadline bool) {
	shared := open(t, redlock.Config{Nodes: urls})
	if connected {
		held, err := shared.Mutex("first").Acquire(context.Background())
		require.NoError(t, err)
		require.NoError(t, held.Release())
	}
	step := time.Millisecond
	if !connected {
		step *= 4 // connecting takes some more round trips
	}
	var acquires sync.WaitGroup
	var mu sync.Mutex
	ends := map[redlock.Status]int{}
	for i := range 60 {
		client := shared
		if !connected {
			client = open(t, redlock.Config{Nodes: urls})
		}
		acquires.Go(func() {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			moment := time.Duration(i) * step
			if deadline {
				ctx, stop = context.WithTimeout(ctx, moment)
				defer stop()
			} else {
				time.AfterFunc(moment, stop)
			}
			held, err := client.Mutex(fmt.Sprint("lock", i)).Acquire(ctx)
			var failure *redlock.Error
			if err == nil {
				err = held.Release()
				assert.NoError(t, err)
			} else if !assert.True(t, errors.As(err, &failure), "%v", err) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failure == nil {
				ends[0]++
			} else {
				ends[failure.Status]++
			}
		})
	}
	acquires.Wait()
	t.Logf("how they ended: %v", ends)
	for status := range ends {
		switch {
		case status.String() == "OK", status.String() == "CANCELED" && !deadline:
		case deadline && (status.String() == "TIMEOUT" || status.String() == "UNAVAILABLE"):
		default:
			t.Errorf("%v is no answer to giving up", status)
		}
	}
	require.Positive(t, ends[0], "the last ones have the time that they need")
	if deadline || len(urls) > 1 { // a call to the only node is not interrupted: it is answered, or times out
		require.Greater(t, len(ends), 1, "the first ones have not")
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
