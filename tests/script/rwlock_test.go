package script_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

func (s *several) fenceNow() int { s.t.Helper(); return s.number(s.key("fence")) }

func TestReadersShareAndWritersDoNot(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	before := l.micros()
	a := requireGranted(t, l.acquire("r", "a"))
	require.GreaterOrEqual(t, a, before)
	l.endsIn("a", 10*time.Second)
	l.left(lock, 10*time.Second)
	l.left(l.key("fence"), 600*time.Second)
	b := requireGranted(t, l.acquire("r", "b"))
	require.Greater(t, b, a, "each grant has a fencing token of its own")
	require.Equal(t, []string{"r|a", "r|b"}, l.holders())

	reply := l.acquire("w", "c")
	require.InDelta(t, 10_000, reply[1], 2000)
	require.Equal(t, []any{0, reply[1], 1, 0, script.Digest("r")[:16]}, reply, "the readers have one name together")
	require.Equal(t, []any{1}, l.release("r", "a"))
	require.Equal(t, 0, l.acquire("w", "c")[0])
	require.Equal(t, []any{1, 0}, l.release("r", "b"), "the last one's is published")

	c := requireGranted(t, l.acquire("w", "c"))
	require.Greater(t, c, b)
	for _, mode := range []string{"r", "w"} {
		reply := l.acquire(mode, "d")
		require.Equal(t, []any{0, reply[1], 1, 0, script.Digest("c")[:16]}, reply, "the owner that writes is named")
	}
	require.Equal(t, c, l.fenceNow(), "a refusal touches no counter")
	require.Equal(t, []any{1, 0}, l.release("w", "c"))
	l.leavesNothing()
}

func TestAnOwnerEntersAgain(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	number := requireGranted(t, l.acquire("w", "a"))
	require.Equal(t, []any{1, number}, l.acquire("w", "a2"), "it keeps its fencing token")
	require.Equal(t, []any{1, number}, l.acquire("r", "a3"), "a downgrade too")
	require.Equal(t, []any{1, number}, l.acquire("w", "a4"))
	require.Equal(t, []string{"r|a3", "w|a", "w|a2", "w|a4"}, l.holders())
	for _, name := range []string{"a2", "a", "a4"} {
		require.Equal(t, 0, l.acquire("r", "b")[0])
		require.Equal(t, 1, l.release("w", name)[0])
	}
	require.Greater(t, requireGranted(t, l.acquire("r", "b")), number, "only reads are left")
	require.Equal(t, []any{4}, l.acquire("w", "a5"), "which can't become writes again")
	require.Equal(t, []any{1}, l.release("r", "a3"))
	require.Equal(t, []string{"r|b"}, l.holders())
}

func TestWhoReadsCannotWrite(t *testing.T) {
	for _, isQueued := range []bool{true, false} {
		l := startKind(t, "rwlock", isQueued)
		l.acquire("r", "a")
		require.Equal(t, []any{script.Forbidden}, l.acquire("w", "a2"))
		l.acquire("r", "b")
		l.acquire("r", "c")
		require.Equal(t, []any{4}, l.acquire("w", "b2"), "nor in a crowd of readers")
		require.Equal(t, []string{"r|a", "r|b", "r|c"}, l.holders())
		require.NotContains(t, l.Keys(), l.key("queue"))
	}
}

// A script that comes again counts once.
func TestRWLockExactlyOnce(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	number := requireGranted(t, l.acquire("w", "a"))
	require.Equal(t, []any{1, number}, l.acquire("w", "a"))
	l.acquire("w", "a2")
	l.acquire("w", "a2")
	require.Equal(t, 1, l.release("w", "a")[0])
	require.Equal(t, []any{2}, l.release("w", "a"), "gone, and a2 is still in")
	require.Equal(t, []string{"w|a2"}, l.holders())
	require.Equal(t, []any{0}, l.release("w", "b"))
	require.Equal(t, []any{1}, l.undo("w", "a2"))
	require.Equal(t, []any{2}, l.undo("w", "a2"))

	first := requireGranted(t, l.acquire("r", "a"))
	require.Greater(t, requireGranted(t, l.acquire("r", "a")), first)
	require.Equal(t, []string{"r|a"}, l.holders())
	require.Equal(t, []any{2}, l.release("r", "b"), "nobody is in a reader's way")
	require.Equal(t, []any{0}, l.release("w", "b"))
}

func TestGrantsOfARWLockExpireOneByOne(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	l.acquire("r", "a")
	l.acquire("r", "b")
	l.ends("a", -time.Millisecond)
	require.Equal(t, []any{2}, l.renew("r", "a", ttl), "what has expired is gone")
	require.Equal(t, []string{"r|b"}, l.holders())
	l.ends("b", -time.Millisecond)
	requireGranted(t, l.acquire("w", "c"))
	require.Equal(t, []string{"w|c"}, l.holders())
	l.ends("c", time.Second)
	require.Equal(t, []any{1}, l.renew("w", "c", "60000"))
	l.endsIn("c", time.Minute)
	l.left(lock, time.Minute)
	require.Equal(t, []any{1}, l.renew("w", "c", "5000"))
	l.endsIn("c", time.Minute) // never shortened
	require.Equal(t, []any{0}, l.renew("r", "d", ttl))
	require.Equal(t, []any{0}, l.renew("w", "d", ttl))

	l.Do("DEL", lock)
	l.acquire("r", "a")
	l.renew("r", "a", "60000")
	l.acquire("r", "b")
	l.left(lock, time.Minute) // the key lives as long as its latest holder
	l.endsIn("b", 10*time.Second)
	require.InDelta(t, 60_000, l.acquire("w", "c")[1], 2000, "until the last one has gone")
}

// The sooner expiry is no good to one that waits for a writer which also reads.
func TestARefusalTellsTheExpiryThatHelps(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	l.acquire("w", "a")
	l.acquire("r", "a2")
	l.ends("a2", 40*time.Second)
	require.InDelta(t, 10_000, l.acquire("r", "b")[1], 2000)
	l.ends("a2", 2*time.Second)
	require.InDelta(t, 10_000, l.acquire("r", "b")[1], 2000)
	l.acquire("w", "a3")
	l.ends("a3", 20*time.Second)
	require.InDelta(t, 20_000, l.acquire("r", "b")[1], 2000)
}

func TestRaiseOfARWLock(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	require.Equal(t, []any{2}, l.raise("w", "a", "100"))
	require.Empty(t, l.Keys())
	number := requireGranted(t, l.acquire("w", "a"))
	require.Equal(t, []any{0}, l.raise("w", "b", strconv.Itoa(number+5)))
	require.Equal(t, []any{1}, l.raise("w", "a", "5"))
	require.Equal(t, number, l.fenceNow(), "never lowered")
	require.Equal(t, []any{1}, l.raise("w", "a", strconv.Itoa(number+5)))
	require.Equal(t, number+5, l.fenceNow())
	l.left(l.key("fence"), 600*time.Second)
}

func TestRegrantOfARWLock(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	require.Equal(t, []any{1, 100}, l.regrant("r", "a2", "100"), "in any order: the reads of one that writes")
	require.Equal(t, []any{1, 100}, l.regrant("w", "a", "90"))
	require.Equal(t, []any{1, 120}, l.regrant("w", "a", "120"))
	require.Equal(t, []string{"r|a2", "w|a"}, l.holders())
	l.endsIn("a", 10*time.Second)
	l.left(lock, 10*time.Second)
	l.left(l.key("fence"), 600*time.Second)
	for _, mode := range []string{"r", "w"} {
		reply := l.regrant(mode, "b", "200")
		require.InDelta(t, 10_000, reply[1], 2000)
		require.Equal(t, []any{0, reply[1]}, reply)
	}
	require.Equal(t, 120, l.fenceNow())
	l.release("w", "a")
	require.Equal(t, []any{1, 200}, l.regrant("r", "b", "200"))
	require.Equal(t, 0, l.regrant("w", "a", "300")[0])
}

func TestReleasesOfARWLockThatArePublished(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	e := listen(t, l.Client())
	told := []string{"redlock:released:" + lock + " rwlock *"}
	l.acquire("r", "a")
	l.acquire("r", "b")
	require.Equal(t, []any{1}, l.release("r", "a"))
	require.Empty(t, e.heard(), "it would be of no use to anybody")
	require.Equal(t, []any{1, 1}, l.release("r", "b"))
	require.Equal(t, told, e.heard())

	l.acquire("w", "a")
	l.acquire("w", "a2")
	l.acquire("r", "a3")
	require.Equal(t, []any{1}, l.release("w", "a2"))
	require.Empty(t, e.heard())
	require.Equal(t, []any{1, 1}, l.release("w", "a"), "readers may come")
	require.Equal(t, told, e.heard())
	require.Equal(t, []any{1}, l.undo("r", "a3"))
	require.Empty(t, e.heard(), "an undo tells nobody")

	l.acquire("w", "a")
	require.Equal(t, []any{1}, l.force(digest("a")))
	require.Equal(t, told, e.heard())
	silent := "rl0:" + token("a")[4:]
	l.run(l.family.Acquire, l.keys(), silent, ttl, fenceTTL, "", "w", "a")
	require.Equal(t, 2, l.acquire("r", "b")[2])
	require.Equal(t, []any{1}, l.run(l.family.Release, l.keys(), silent, "w", "a"))
	require.Empty(t, e.heard())
}

// On several nodes a writer that is refused by readers keeps new ones out until it comes again.
func TestIntent(t *testing.T) {
	l := startKind(t, "rwlock", manyNodes)
	l.acquire("r", "a")
	require.Equal(t, 0, l.acquire("w", "w")[0])
	requireGranted(t, l.acquire("r", "b"))
	require.Equal(t, 0, l.acquire("w2500", "w")[0])
	require.Equal(t, []string{"i", "r|a", "r|b"}, l.holders())

	reply := l.acquire("r", "c")
	require.InDelta(t, 2500, reply[1], 1000)
	require.Equal(t, []any{0, reply[1], 1, 0, script.Digest("i||")[:16]}, reply)
	requireGranted(t, l.acquire("r", "a2"))
	require.Equal(t, []any{1}, l.renew("r", "b", ttl))
	for _, name := range []string{"a", "a2", "b"} {
		require.Equal(t, 1, l.release("r", name)[0])
	}
	require.Equal(t, 2, l.inspect()[0], "an intent is no grant")
	require.Equal(t, []any{2}, l.force(script.Digest("x")))
	require.Equal(t, 0, l.acquire("r", "c")[0])
	requireGranted(t, l.acquire("w2500", "v"))
	require.Equal(t, []string{"w|v"}, l.holders(), "whoever writes, the intent is gone")
	require.Equal(t, 0, l.acquire("w2500", "w")[0])
	require.Equal(t, []string{"w|v"}, l.holders(), "one that a writer refuses leaves none: it is the readers' turn then")

	l.release("w", "v")
	l.acquire("r", "a")
	l.acquire("w2500", "w")
	l.Do("ZADD", lock, l.micros()/1000-1, "i||")
	requireGranted(t, l.acquire("r", "c"))
	require.Equal(t, []string{"r|a", "r|c"}, l.holders())
}

func TestRWLockTakesOverUnresolvedTokens(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	before := requireGranted(t, l.acquire("w", "a"))
	require.Greater(t, requireGranted(t, l.acquire("w", "a2", "x", "a")), before)
	require.Equal(t, []string{"w|a2"}, l.holders())
	requireGranted(t, l.acquire("r", "b", "a2"))
	require.Equal(t, []string{"r|b"}, l.holders(), "one of another mode and owner")

	l.acquire("w", "w")
	requireGranted(t, l.acquire("r", "b2", "b"))
	require.Equal(t, []string{"r|b2"}, l.holders(), "it had been granted before the writer came")
	requireRefused(t, l.acquire("r", "c"), 10_000, 0)
	requireRefused(t, l.acquire("r", "d", "c"), 10_000, 0)
	require.Equal(t, []string{"w", "d"}, l.waiting(), "and an unresolved place is left")
	requireGranted(t, l.acquire("w", "x", "b2", "w", "d"))
	require.Equal(t, []string{"w|x"}, l.holders())
	require.Empty(t, l.waiting())

	l.acquire("w", "x2")
	requireRefused(t, l.acquire("w", "y", "x2"), 10_000, 1)
	require.Equal(t, []string{"w|x"}, l.holders(), "the owner of an unresolved re-entry still writes")
}

func TestInspectARWLock(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	require.Equal(t, []any{2, 0, 0, 0}, l.inspect())
	number := requireGranted(t, l.acquire("w", "a"))
	l.acquire("r", "a2")
	l.ends("a2", 20*time.Second)
	l.acquire("w", "b")
	l.acquire("w", "c")
	reply := l.inspect()
	require.Len(t, reply, 12)
	require.InDelta(t, 0, reply[3], 1000)
	require.InDelta(t, 10_000, reply[5], 2000)
	require.InDelta(t, 20_000, reply[9], 2000)
	require.Equal(t, []any{1, number, 2, reply[3], token("a"), reply[5], "w", "a", token("a2"), reply[9], "r", "a"}, reply)
	l.ends("a", -time.Millisecond)
	l.ends("a2", -time.Millisecond)
	require.Equal(t, []any{2, number, 2}, l.inspect()[:3])
	require.Equal(t, []string{"b", "c"}, l.waiting(), "it only looks")
}
