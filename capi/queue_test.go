//go:build linux && cgo

package main

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/core"
)

func newTestQueue(t *testing.T) *queue {
	q, err := newQueue()
	require.NoError(t, err)
	t.Cleanup(q.close)
	return q
}

func readable(t *testing.T, q *queue) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLIN}}, 0)
	require.NoError(t, err)
	return n == 1
}

func take(t *testing.T, q *queue, n int) []event {
	events, err := q.take(n)
	require.Nil(t, err)
	return events
}

func TestLossesComeFirstAndAreForgotten(t *testing.T) {
	q := newTestQueue(t)
	q.health(1, "evicts")
	for handle := range uint64(5) {
		q.lost(handle, "why")
	}
	q.forget(3)
	q.forget(77)
	seen := map[uint64]bool{}
	for range 4 {
		events := take(t, q, 1)
		require.Equal(t, int32(eventLost), events[0].kind)
		require.Equal(t, core.Lost, events[0].err.Status)
		seen[events[0].lost] = true
		require.True(t, readable(t, q))
	}
	require.Equal(t, map[uint64]bool{0: true, 1: true, 2: true, 4: true}, seen)
	require.Equal(t, "evicts", take(t, q, 9)[0].cause)
	require.False(t, readable(t, q))
	require.Empty(t, take(t, q, 9))
}

func TestTheNewestNoticesAreKept(t *testing.T) {
	q := newTestQueue(t)
	for i := range 10 * maxHealth {
		q.health(0, strconv.Itoa(i))
	}
	events := take(t, q, 10*maxHealth)
	require.Len(t, events, maxHealth)
	require.Equal(t, strconv.Itoa(9*maxHealth), events[0].cause)
	require.Equal(t, strconv.Itoa(10*maxHealth-1), events[maxHealth-1].cause)
}

// Each request has a place from its beginning until its outcome is drained; nobody may submit without end.
func TestOutcomes(t *testing.T) {
	q := newTestQueue(t)
	require.Nil(t, q.begin(1, 3))
	require.True(t, q.isRunning(1))
	require.True(t, q.isRunning(3))
	require.False(t, q.isRunning(4))
	require.False(t, readable(t, q))
	q.end(2, event{})
	require.False(t, q.isRunning(2))
	require.True(t, readable(t, q))
	require.Equal(t, core.OpID(2), take(t, q, 5)[0].op)
	require.False(t, readable(t, q))
	q.giveUp(1)
	q.end(3, event{err: errClosed})
	require.Empty(t, q.running)
	require.True(t, readable(t, q))

	const first, most = 10, maxOutcomes - 1 // the one that is not drained has a place
	require.Equal(t, errFull, q.begin(first, most+1))
	require.Empty(t, q.running)
	require.Nil(t, q.begin(first, most))
	require.Equal(t, errFull, q.begin(first+most, 1))
	require.Equal(t, errClosed, take(t, q, 5)[0].err)
	require.Nil(t, q.begin(first+most, 1))
	require.Equal(t, errFull, q.begin(first+most+1, 1))
	q.giveUp(first)
	require.Nil(t, q.begin(first+most+1, 1))
}

func TestAClosedQueueTakesAndGivesNothing(t *testing.T) {
	q, err := newQueue()
	require.NoError(t, err)
	q.health(0, "x")
	q.close()
	q.lost(1, "x")
	q.health(0, "x")
	_, failed := q.take(1)
	require.Equal(t, errClosed, failed)
}

func TestDurationsDoNotOverflow(t *testing.T) {
	const most, least = 1<<63 - 1, -1 << 63
	require.Equal(t, core.Forever, duration(most))
	require.Negative(t, duration(least))
	require.Positive(t, span(most))
	require.Negative(t, span(least))
	require.Equal(t, 5*core.Second, duration(5000))
	require.EqualValues(t, 5e9, span(5000))
}
