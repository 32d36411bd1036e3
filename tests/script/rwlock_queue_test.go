package script_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadersQueueBehindAWaitingWriter(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	e := listen(t, l.Client())
	a := requireGranted(t, l.acquire("r", "a"))
	requireGranted(t, l.acquire("r", "b"))
	requireRefused(t, l.acquire("w", "w"), 10_000, 1)
	requireRefused(t, l.acquire("r", "c"), 10_000, 0)
	requireRefused(t, l.acquire("w", "v"), 10_000, 0)
	requireRefused(t, l.acquire("r", "d"), 10_000, 0)
	require.Equal(t, []string{"w", "c", "v", "d"}, l.waiting())
	requireRefused(t, l.tryOnce("r", "x"), 10_000, 0)
	require.Greater(t, requireGranted(t, l.acquire("r", "a2")), a, "who reads already may pass them")

	for _, name := range []string{"a", "b"} {
		require.Equal(t, []any{1}, l.release("r", name))
	}
	require.Empty(t, e.heard())
	require.Equal(t, []any{1}, l.release("r", "a2"))
	require.Equal(t, []string{"w|w"}, l.holders())
	require.Equal(t, []string{fmt.Sprint("w ", l.fenceNow())}, l.told(e))
	requireRefused(t, l.beat("r", "c"), 3000, 1)
	require.Equal(t, []any{1}, l.release("w", "w"))
	require.Equal(t, []string{"r|c"}, l.holders(), "readers and writers take turns")
	l.release("r", "c")
	require.Equal(t, []string{"w|v"}, l.holders())
	l.release("w", "v")
	require.Equal(t, []string{"r|d"}, l.holders())
	l.release("r", "d")
	l.leavesNothing()
}

// ways in which a lock that a writer, "a", held becomes free for those who wait.
var rwlockGivers = map[string]func(l *several){
	"release":         func(l *several) { l.release("w", "a") },
	"undo":            func(l *several) { l.undo("w", "a") },
	"force":           func(l *several) { l.force(digest("a")) },
	"expiry, release": func(l *several) { l.ends("a", -time.Millisecond); l.release("w", "a") },
	"expiry, undo":    func(l *several) { l.ends("a", -time.Millisecond); l.undo("w", "a") },
	"expiry, force":   func(l *several) { l.ends("a", -time.Millisecond); l.force(digest("a")) },
	"expiry, beat":    func(l *several) { l.ends("a", -time.Millisecond); l.beat("w", "v") },
	"expiry, try":     func(l *several) { l.ends("a", -time.Millisecond); l.tryOnce("r", "x") },
	"expiry, acquire": func(l *several) { l.ends("a", -time.Millisecond); l.acquire("w", "v") },
	"lost, beat":      func(l *several) { l.Do("DEL", lock); l.beat("w", "v") },
}

// All readers up to the next writer come in together, the dead among them left out. Each is told.
func TestReadersAreHandedOverTogether(t *testing.T) {
	for way, give := range rwlockGivers {
		t.Run(way, func(t *testing.T) {
			l := startKind(t, "rwlock", oneNode)
			number := requireGranted(t, l.acquire("w", "a"))
			for _, place := range []string{"r b", "r c", "w d", "w e", "r f", "w v", "r g"} {
				require.Equal(t, 0, l.acquire(place[:1], place[2:])[0])
			}
			l.dead("c", "d", "e")
			e := listen(t, l.Client())
			give(l)
			require.Equal(t, []string{"r|b", "r|f"}, l.holders())
			require.Equal(t, []string{"v", "g"}, l.waiting())
			require.Equal(t, int64(2), l.Do("HLEN", l.key("places")))
			l.endsIn("b", 3*time.Second)
			last := l.fenceNow()
			told := l.told(e)
			require.Len(t, told, 2)
			require.Equal(t, fmt.Sprint("f ", last), told[1])
			first, err := strconv.Atoi(told[0][2:])
			require.NoError(t, err)
			require.Less(t, number, first)
			require.Less(t, first, last)

			require.Equal(t, []any{1}, l.renew("r", "b", ttl), "which confirms it")
			l.endsIn("b", 10*time.Second)
			l.left(lock, 10*time.Second)
		})
	}
}

func TestAHandOverOfARWLockLivesNoLongerThanItsTTL(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	l.acquire("w", "a")
	l.run(l.family.Acquire, l.keys(), l.acquireArgs("w", "b", "700")...)
	l.release("w", "a")
	require.Less(t, l.ends("b"), 701*time.Millisecond)
}

// Who waits as a writer, and holds as one when it is its turn, enters again.
func TestAWaitingWriterThatWritesMeanwhileEnters(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	l.acquire("w", "x")
	for _, place := range []string{"w a", "w a2", "r a3", "r b"} {
		l.acquire(place[:1], place[2:])
	}
	e := listen(t, l.Client())
	l.release("w", "x")
	require.Equal(t, []string{"r|a3", "w|a", "w|a2"}, l.holders())
	number := strconv.Itoa(l.fenceNow())
	require.Equal(t, []string{"a " + number, "a2 " + number, "a3 " + number}, l.told(e), "with the token of the hold")
	require.Equal(t, []string{"b"}, l.waiting())
	l.release("w", "a2")
	l.release("w", "a")
	require.Equal(t, []string{"r|a3", "r|b"}, l.holders())
}

// Two of one owner wait, as a reader and as a writer: the writer waits until nobody reads.
func TestAWaitingWriterWhoseOwnerReads(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	l.acquire("w", "x")
	l.acquire("r", "a")
	l.acquire("w", "a2")
	l.release("w", "x")
	require.Equal(t, []string{"r|a"}, l.holders())
	requireRefused(t, l.beat("w", "a2"), 3000, 1)
	l.release("r", "a")
	require.Equal(t, []string{"w|a2"}, l.holders())

	l.acquire("r", "b")
	l.acquire("w", "b2")
	l.release("w", "a2")
	require.Equal(t, []any{4}, l.acquire("w", "b2"), "asked anew, it is told")
	require.Empty(t, l.waiting())
}

func TestBeatOfARWLock(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	require.Equal(t, []any{2}, l.beat("w", "b"))
	require.Empty(t, l.Keys())
	l.acquire("w", "a")
	l.acquire("w", "b")
	l.acquire("r", "c")
	since := strings.Fields(l.Do("HGET", l.key("places"), token("b")).(string))[2]
	requireRefused(t, l.beat("w", "b"), 10_000, 1)
	requireRefused(t, l.beat("r", "c"), 10_000, 0)
	place := strings.Fields(l.Do("HGET", l.key("places"), token("b")).(string))
	require.Equal(t, []string{since, "5678", ttl, fenceTTL + "|w|b", "client", "b"}, place[2:])
	l.left(l.key("queue"), time.Minute)
	l.left(l.key("places"), time.Minute)

	l.release("w", "a") // and the message gets lost
	number := l.fenceNow()
	require.Equal(t, []any{1, number}, l.beat("w", "b"))
	require.Equal(t, []any{1, number}, l.beat("w", "b"))
	l.endsIn("b", 10*time.Second)
	l.release("w", "b")
	read := requireGranted(t, l.beat("r", "c"))
	require.Greater(t, read, number)
	require.Greater(t, requireGranted(t, l.acquire("r", "d")), read)
	require.Greater(t, requireGranted(t, l.beat("r", "c")), read)
	l.endsIn("c", 10*time.Second)

	l.acquire("w", "e")
	e := listen(t, l.Client())
	l.Do("DEL", lock)
	requireGranted(t, l.beat("w", "e"))
	l.endsIn("e", 10*time.Second)
	require.Empty(t, e.heard(), "who asks is told by the reply")
	l.Do("DEL", l.key("fence"))
	number = requireGranted(t, l.beat("w", "e"))
	require.Equal(t, number, l.fenceNow(), "it has a counter again")
}

// What takes a turn for an acquire that comes again.
func TestAnAcquireOfAWaiterTakesItsTurn(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	l.acquire("w", "a")
	l.acquire("r", "b")
	l.acquire("r", "c")
	l.Do("DEL", lock)
	e := listen(t, l.Client())
	number := requireGranted(t, l.acquire("r", "c"))
	require.Equal(t, []string{"r|b", "r|c"}, l.holders(), "and those before it")
	l.endsIn("c", 10*time.Second)
	l.endsIn("b", 3*time.Second)
	require.Equal(t, number, l.fenceNow())
	require.Len(t, l.told(e), 1)
	require.Empty(t, l.waiting())
}

// A holder whose release is silent is polled by the first.
func TestTurnsBehindASilentHolder(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	l.Do("ZADD", lock, l.micros()/1000+10_000, "w|x|rl0:xxxxxxxxxxxxxxxxxxxxxx:host")
	requireRefused(t, l.acquire("r", "a"), 10_000, 2)
	requireRefused(t, l.acquire("r", "b"), 10_000, 0)
	requireRefused(t, l.beat("r", "a"), 10_000, 2)
}

// However many wait, all readers come in by one script.
func TestACrowdOfReaders(t *testing.T) {
	l := startKind(t, "rwlock", oneNode)
	l.acquire("w", "a")
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("%c%03d", 'b'+i%20, i)
		want = append(want, "r|"+name)
		require.Equal(t, 0, l.acquire("r", name)[0])
	}
	slices.Sort(want)
	e := listen(t, l.Client())
	l.release("w", "a")
	require.Equal(t, want, l.holders())
	require.Len(t, e.heard(), 300)
	requireRefused(t, l.acquire("w", "z"), 3000, 1)
	for _, name := range want {
		require.Equal(t, []any{1}, l.undo("r", name[2:]))
	}
	require.Equal(t, []string{"w|z"}, l.holders())
}
