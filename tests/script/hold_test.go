package script_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

func TestRenew(t *testing.T) {
	f := start(t)
	renew := func(token, ttl string, keys ...string) []any {
		t.Helper()
		return f.run(script.MutexRenew, keys, token, ttl, fenceTTL)
	}
	require.Equal(t, []any{2}, renew(mine, ttl, both()...), "gone")
	require.Empty(t, f.Keys(), "it never re-creates")
	f.Do("SET", lock, other, "PX", 5000)
	require.Equal(t, []any{0}, renew(mine, ttl, both()...), "another's")
	f.left(lock, 5*time.Second)

	f.Do("SET", fence, 7, "PX", 1000)
	require.Equal(t, []any{1}, renew(other, "20000", both()...))
	f.left(lock, 20*time.Second)
	f.left(fence, 600*time.Second)
	require.Equal(t, "7", f.get(fence))

	require.Equal(t, []any{1}, renew(other, "60000", lock))
	f.left(lock, 60*time.Second)
}

// Late and reordered renewals do no harm.
func TestRenewNeverShortens(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, mine, "PX", 60000)
	f.Do("SET", fence, 7, "PX", 864000000)
	require.Equal(t, []any{1}, f.run(script.MutexRenew, both(), mine, ttl, fenceTTL))
	f.left(lock, 60*time.Second)
	f.left(fence, 864000*time.Second)
}

func TestRegrant(t *testing.T) {
	f := start(t)
	regrant := func(token, ttl string, keys ...string) []any {
		t.Helper()
		return f.run(script.MutexRegrant, keys, token, ttl, "100", fenceTTL)
	}
	require.Equal(t, []any{1, 100}, regrant(mine, "5000", both()...), "gone, with its counter")
	require.Equal(t, mine, f.get(lock))
	require.Equal(t, "100", f.get(fence))
	f.left(lock, 5*time.Second)
	f.left(fence, 600*time.Second)

	f.Do("SET", fence, 200, "PX", 864000000)
	require.Equal(t, []any{1, 200}, regrant(mine, "20000", both()...), "a counter that is ahead stays")
	require.Equal(t, "200", f.get(fence))
	f.left(lock, 20*time.Second)
	f.left(fence, 864000*time.Second)
	require.Equal(t, []any{1, 0}, regrant(mine, ttl, lock), "without fencing")
	f.left(lock, 20*time.Second)

	reply := regrant(other, ttl, both()...)
	require.Equal(t, 0, reply[0], "another's")
	require.InDelta(t, 20000, reply[1], 2000)
	require.Equal(t, mine, f.get(lock))
}

func TestRelease(t *testing.T) {
	f := start(t)
	release := func() []any { t.Helper(); return f.run(script.MutexRelease, []string{lock}, mine) }
	require.Equal(t, []any{2}, release(), "gone")
	f.Do("SET", lock, other)
	require.Equal(t, []any{0}, release(), "another's")
	require.Equal(t, other, f.get(lock))
	f.acquire(mine, ttl, other)
	require.Equal(t, []any{1}, release())
	require.Equal(t, []string{fence}, f.Keys(), "the counter stays")
	require.Equal(t, []any{2}, release(), "the second time")
}

func TestUndo(t *testing.T) {
	f := start(t)
	undo := func() []any { t.Helper(); return f.run(script.MutexUndo, []string{lock}, mine) }
	require.Equal(t, []any{2}, undo(), "gone")
	f.Do("SET", lock, other)
	require.Equal(t, []any{2}, undo(), "another's")
	require.Equal(t, other, f.get(lock))
	f.Do("SET", lock, mine)
	require.Equal(t, []any{1}, undo())
	require.Empty(t, f.Keys())
}

func TestForce(t *testing.T) {
	f := start(t)
	force := func(digest string) []any { t.Helper(); return f.run(script.MutexForce, []string{lock}, digest) }
	for _, test := range []struct{ value, named string }{
		{mine, "AAAAAAAAAAAAAAAAAAAAAA"},
		{"rl1:AAAAAAAAAAAAAAAAAAAAAA:", "AAAAAAAAAAAAAAAAAAAAAA"},
		{"550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"},
		{"rl0:short:x", "rl0:short:x"},
		{"rl2:AAAAAAAAAAAAAAAAAAAAAA:x", "rl2:AAAAAAAAAAAAAAAAAAAAAA:x"},
		{"\x00\xff", "\x00\xff"},
		{"", ""},
	} {
		require.Equal(t, []any{2}, force(script.Digest(test.named)), "free")
		f.Do("SET", lock, test.value)
		require.Equal(t, []any{0}, force(script.Digest("somebody else")), "%q", test.value)
		require.Equal(t, test.value, f.get(lock))
		require.Equal(t, []any{1}, force(script.Digest(test.named)), "%q", test.value)
		require.Empty(t, f.Keys())
	}
}

func TestInspect(t *testing.T) {
	f := start(t)
	inspect := func() []any { t.Helper(); return f.run(script.MutexInspect, all()) }
	require.Equal(t, []any{2, 0, 0, 0}, inspect())
	f.Do("SET", fence, 7)
	require.Equal(t, []any{2, 7, 0, 0}, inspect())
	f.Do("SET", lock, "a foreign\x00value")
	require.Equal(t, []any{1, "a foreign\x00value", -1, 7, 0, 0}, inspect())
	token := f.acquire(mine, ttl, "a foreign\x00value")[1]
	reply := inspect()
	require.InDelta(t, 10000, reply[2], 2000)
	require.Equal(t, []any{1, mine, reply[2], token, 0, 0}, reply)
}
