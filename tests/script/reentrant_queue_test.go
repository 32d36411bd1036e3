package script_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

func TestTheLastEntryHandsOver(t *testing.T) {
	f := startReentrant(t)
	f.acquire(first, ann)
	f.acquire(second, ann)
	number := f.fence()
	requireRefused(t, f.acquire(third, bob), 10_000, 1)
	requireRefused(t, f.acquire(other, "eve"), 10_000, 0)
	require.Equal(t, []any{1}, f.release(first, ann))
	require.Equal(t, []string{third, other}, f.order(), "one is left")
	ear := listen(t, f.Client())
	require.Equal(t, []any{1}, f.release(second, ann))
	f.requireHold(third, bob, third)
	require.Equal(t, []string{other}, f.order())
	f.left(lock, 3*time.Second)
	require.Greater(t, f.fence(), number)

	message := strings.Fields(ear.heard()[0])
	require.Equal(t, []string{"redlock:wake:client", "bob", "reentrant", third, "1234"}, message[:5])
	require.Equal(t, []string{strconv.Itoa(f.fence()), lock}, message[6:])

	require.Equal(t, []any{1, f.fence(), 1}, f.beat(third, bob), "a beat finds what the message has told")
	f.left(lock, 10*time.Second)
	require.Equal(t, []any{1}, f.renew(third, bob, "20000"))
}

func TestAnOwnerEntersBeforeThoseWhoWait(t *testing.T) {
	f := startReentrant(t)
	f.acquire(first, ann)
	f.acquire(other, bob)
	require.Equal(t, []any{1, f.fence(), 2}, f.acquire(second, ann))
	require.Equal(t, []any{1, f.fence(), 3}, f.poll(third, ann))
	require.Equal(t, []string{other}, f.order())
}

// Who waits enters as soon as the owner has the lock by another attempt.
func TestAWaiterEntersWithItsOwner(t *testing.T) {
	f := startReentrant(t)
	f.acquire(mine, "eve")
	f.acquire(first, ann)
	f.acquire(other, bob)
	f.acquire(second, ann)
	f.release(mine, "eve")
	f.requireHold(first, ann, first)
	require.Equal(t, []any{1, f.fence(), 2}, f.beat(second, ann))
	require.Equal(t, []any{1, f.fence(), 2}, f.beat(second, ann))
	require.Equal(t, []string{other}, f.order())
	require.Equal(t, []any{2}, f.beat(third, ann), "without a place it has to come again")
	require.Equal(t, []any{1, f.fence(), 3}, f.acquire(third, ann))
	f.requireHold(first, ann, first, second, third)
}

// Or by asking anew.
func TestAWaiterThatAsksAnewLeavesItsPlace(t *testing.T) {
	f := startReentrant(t)
	f.acquire(mine, "eve")
	f.acquire(first, ann)
	f.acquire(other, bob)
	f.acquire(second, ann)
	f.release(mine, "eve")
	require.Equal(t, []any{1, f.fence(), 2}, f.acquire(second, ann))
	require.Equal(t, []string{other}, f.order())
}

func TestWhoMayNotWaitTakesNoPlace(t *testing.T) {
	f := startReentrant(t)
	f.acquire(first, ann)
	requireRefused(t, f.queued(script.Reentrant.Acquire, second, ttl, fenceTTL, "", "", "1", "3000", bob), 10_000, 0)
	require.Empty(t, f.order())
}

func TestUndoHandsOverWhatItFindsFree(t *testing.T) {
	f := startReentrant(t)
	f.acquire(mine, "eve")
	f.acquire(first, ann)
	f.acquire(other, bob)
	f.Do("DEL", lock)
	require.Equal(t, []any{1}, f.undo(first, ann), "its place")
	f.requireHold(other, bob, other)
}

// A newcomer hands a lock that is free to the first, and enters if that is its owner's.
func TestANewcomerEntersWhatItHandsOver(t *testing.T) {
	f := startReentrant(t)
	f.acquire(mine, "eve")
	f.acquire(first, ann)
	f.acquire(other, bob)
	f.Do("DEL", lock)
	require.Equal(t, []any{1, f.fenceAfterAcquire(second, ann), 2}, f.acquire(second, ann))
	f.requireHold(first, ann, first, second)
	require.Equal(t, []string{other}, f.order())
}

func (f reentrant) fenceAfterAcquire(token, owner string) int {
	f.t.Helper()
	require.Equal(f.t, 1, f.acquire(token, owner)[0])
	return f.fence()
}

// Every owner's place keeps the owner's name, whatever is in it.
func TestPlacesKeepOwners(t *testing.T) {
	f := startReentrant(t)
	for _, owner := range []string{"", " ", "a b  c ", "12 34", "\n%s\x00", "%41"} {
		f.acquire(first, ann)
		f.acquire(second, owner)
		f.beat(second, owner)
		ear := listen(t, f.Client())
		f.release(first, ann)
		f.requireHold(second, owner, second)
		require.True(t, strings.HasPrefix(ear.heard()[0], "redlock:wake:client "+owner+" reentrant "+second), "%q", owner)
		f.release(second, owner)
	}
}
