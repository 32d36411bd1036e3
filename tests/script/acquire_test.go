package script_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

func TestAcquireTakesAFreeLock(t *testing.T) {
	f := start(t)
	before := f.micros()
	reply := f.acquire(mine, ttl)
	require.Equal(t, 1, reply[0])
	require.Len(t, reply, 2)
	require.Equal(t, mine, f.get(lock))
	f.left(lock, 10*time.Second)
	require.Equal(t, reply[1], f.number(fence))
	require.GreaterOrEqual(t, reply[1], before)
	require.LessOrEqual(t, reply[1], f.micros(), "the server's time was proposed")
	f.left(fence, 600*time.Second)
}

func TestAcquireWithoutFencing(t *testing.T) {
	f := start(t)
	require.Equal(t, []any{1, 0}, f.run(script.MutexAcquire, []string{lock}, mine, ttl, fenceTTL, ""))
	require.Equal(t, []string{lock}, f.Keys())
}

func TestAcquireIsRefused(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, other, "PX", 5000)
	reply := f.acquire(mine, ttl)
	require.Equal(t, 0, reply[0])
	require.InDelta(t, 5000, reply[1], 2000)
	require.Equal(t, other, f.get(lock))
	require.Nil(t, f.get(fence), "a refusal touches no counter")

	f.Do("PERSIST", lock)
	name := script.Digest(other)[:16]
	require.Equal(t, []any{0, -1, 2, 0, name}, f.acquire(mine, ttl), "its release is silent")

	f.Do("SET", lock, "rl1:"+other[4:])
	name = script.Digest("rl1:" + other[4:])[:16]
	require.Equal(t, []any{0, -1, 1, 0, name}, f.acquire(mine, ttl), "its release is published, to nobody")
	ears := f.Client().Subscribe(t.Context(), "redlock:released:"+lock)
	defer ears.Close()
	_, err := ears.Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{0, -1, 1, 1, name}, f.acquire(mine, ttl))
}

// What this client may have taken without learning so counts as its own, and is replaced with the full ttl.
func TestAcquireTakesOverUnresolvedTokens(t *testing.T) {
	f := start(t)
	first := f.acquire(other, "500")[1].(int)
	require.Equal(t, 0, f.acquire(mine, ttl, "rl0:CCCCCCCCCCCCCCCCCCCCCC:x")[0])
	reply := f.acquire(mine, ttl, "rl0:CCCCCCCCCCCCCCCCCCCCCC:x", other)
	require.Equal(t, 1, reply[0])
	require.Greater(t, reply[1], first)
	require.Equal(t, mine, f.get(lock))
	f.left(lock, 10*time.Second)

	reply = f.acquire(mine, ttl)
	require.Equal(t, 1, reply[0], "the same call again: its first reply was lost")
}

// c := max(c+1, p), whatever stood there.
func TestFenceCounter(t *testing.T) {
	f := start(t)
	now := f.micros()
	ahead := now + 30_000_000
	for _, test := range []struct {
		name     string
		counter  any // before
		proposed int
		want     int
	}{
		{"no counter", nil, ahead, ahead},
		{"a smaller one", now, ahead, ahead},
		{"one that is larger", ahead + 5, ahead, ahead + 6},
		{"the same", ahead, ahead, ahead + 1},
		{"one that has run far ahead", 3_000_000_000_000_000, ahead, 3_000_000_000_000_001},
		{"not a number", "junk", ahead, ahead},
	} {
		f.Do("DEL", lock, fence)
		if test.counter != nil {
			f.Do("SET", fence, test.counter)
		}
		reply := f.run(script.MutexAcquire, both(), mine, ttl, fenceTTL, strconv.Itoa(test.proposed))
		require.Equal(t, []any{1, test.want}, reply, test.name)
		require.Equal(t, test.want, f.number(fence), test.name)
	}
}

// A client's clock counts as far as it is near the server's.
func TestProposalsAreClamped(t *testing.T) {
	f := start(t)
	const most = 60_000_000
	for _, test := range []struct{ off, want int }{
		{3600_000_000, most}, {-3600_000_000, -most}, {most + 1000, most}, {59_000_000, 59_000_000}, {-59_000_000, -59_000_000},
	} {
		f.Do("DEL", lock, fence)
		now := f.micros()
		reply := f.run(script.MutexAcquire, both(), mine, ttl, fenceTTL, strconv.Itoa(now+test.off))
		require.InDelta(t, now+test.want, reply[1], 1_000_000, "a clock that is off by %d µs", test.off)
	}
}

// The counter outlives the lock, and no grant shortens what is left of it.
func TestFenceCounterKeepsItsTTL(t *testing.T) {
	f := start(t)
	f.Do("SET", fence, 1, "PX", 864000000)
	f.acquire(mine, ttl)
	f.left(fence, 864000*time.Second)
	f.Do("PEXPIRE", fence, 1000)
	f.acquire(mine, ttl)
	f.left(fence, 600*time.Second)
	f.Do("PERSIST", fence)
	f.acquire(mine, ttl)
	f.left(fence, 600*time.Second) // every side key has a ttl
}

func TestRaise(t *testing.T) {
	f := start(t)
	raise := func(token, to string) []any {
		t.Helper()
		return f.run(script.MutexRaise, both(), token, to, fenceTTL)
	}
	require.Equal(t, []any{2}, raise(mine, "100"), "gone")
	require.Empty(t, f.Keys())

	f.Do("SET", lock, other)
	require.Equal(t, []any{0}, raise(mine, "100"), "another's")
	require.Equal(t, []string{lock}, f.Keys(), "raised only if this attempt still holds it")

	require.Equal(t, []any{1}, raise(other, "1700000000000000"))
	require.Equal(t, "1700000000000000", f.get(fence), "all digits of it")
	f.left(fence, 600*time.Second)
	f.Do("PEXPIRE", fence, 864000000)
	require.Equal(t, []any{1}, raise(other, "1600000000000000"))
	require.Equal(t, "1700000000000000", f.get(fence), "never lowered")
	require.Equal(t, []any{1}, raise(other, "1800000000000000"))
	require.Equal(t, "1800000000000000", f.get(fence))
	f.left(fence, 864000*time.Second)
}
