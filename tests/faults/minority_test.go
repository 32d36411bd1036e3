package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// sorts are the ways in which a node fails.
var sorts = map[string]func(testing.TB) string{
	"refusing": testredis.Refusing, "hanging": testredis.Hanging, "garbage": testredis.Garbage,
}

// bed is five real servers, and in the place of each one fake node of each sort.
type bed struct {
	servers []*testredis.Server
	fakes   []map[string]string // URLs by sort
}

func newBed(t *testing.T) *bed {
	b := &bed{servers: testredis.StartN(t, 5)}
	for range b.servers {
		fakes := map[string]string{}
		for sort, start := range sorts {
			fakes[sort] = start(t)
		}
		b.fakes = append(b.fakes, fakes)
	}
	return b
}

// choices lists the ways to make `broken` of five nodes fail, each in any of the ways: "" is a live node.
func (b *bed) choices(broken, position int) [][]string {
	if position == 5 {
		if broken == 0 {
			return [][]string{{}}
		}
		return nil
	}
	var all [][]string
	for _, rest := range b.choices(broken, position+1) {
		all = append(all, append([]string{""}, rest...))
	}
	if broken > 0 {
		for sort := range sorts {
			for _, rest := range b.choices(broken-1, position+1) {
				all = append(all, append([]string{sort}, rest...))
			}
		}
	}
	return all
}

// each calls f for every choice with a client of these nodes and a name of its own, some at a time.
func (b *bed) each(t *testing.T, nodeTimeout time.Duration, choices [][]string, f func(choice []string, lock *redlock.Lock)) {
	t.Helper()
	var running sync.WaitGroup
	slots := make(chan struct{}, 12)
	for i, choice := range choices {
		urls := make([]string, len(choice))
		for node, sort := range choice {
			urls[node] = b.servers[node].URL
			if sort != "" {
				urls[node] = b.fakes[node][sort]
			}
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			client, err := redlock.Open(context.Background(), redlock.Config{Nodes: urls, NodeTimeout: nodeTimeout})
			if !assert.NoError(t, err) {
				return
			}
			defer client.Close()
			f(choice, client.Mutex(fmt.Sprint("lock", i), redlock.WithTTL(time.Minute)))
		})
	}
	running.Wait()
}

// TestAnyTwoOfFiveFail: the lock is acquired, and nobody waits for the nodes that fail.
func TestAnyTwoOfFiveFail(t *testing.T) {
	const nodeTimeout = 500 * time.Millisecond
	b := newBed(t)
	choices := b.choices(2, 0)
	assert.Len(t, choices, 90)
	b.each(t, nodeTimeout, choices, func(choice []string, lock *redlock.Lock) {
		start := time.Now()
		held, err := lock.TryAcquire(context.Background())
		if !assert.NoError(t, err, "%q", choice) {
			return
		}
		assert.Less(t, time.Since(start), nodeTimeout, "%q", choice)
		assert.NoError(t, held.Renew(context.Background(), 2*time.Minute), "%q", choice)
		assert.NoError(t, held.Release(), "%q", choice)
	})
	requireNoKeys(t, cleanupLimit, b.servers...)
}

// TestAnyThreeOfFiveFail: UNAVAILABLE, with the cause of every node that failed, and no key on those that live.
func TestAnyThreeOfFiveFail(t *testing.T) {
	const nodeTimeout = 200 * time.Millisecond
	b := newBed(t)
	choices := b.choices(3, 0)
	assert.Len(t, choices, 270)
	b.each(t, nodeTimeout, choices, func(choice []string, lock *redlock.Lock) {
		start := time.Now()
		_, err := lock.TryAcquire(context.Background())
		if !assert.ErrorIs(t, err, redlock.ErrUnavailable, "%q", choice) {
			return
		}
		assert.Less(t, time.Since(start), nodeTimeout+500*time.Millisecond, "%q", choice)
		var failure *redlock.Error
		assert.True(t, errors.As(err, &failure))
		causes := map[int]string{}
		for _, node := range failure.Nodes {
			causes[node.Node] = node.Cause
		}
		for node, sort := range choice {
			if sort != "" {
				assert.NotEmpty(t, causes[node], "node %d of %q has no cause in %v", node, choice, err)
			}
		}
	})
	requireNoKeys(t, cleanupLimit, b.servers...)
}
