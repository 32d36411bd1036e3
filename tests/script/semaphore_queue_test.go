package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlotsAreHandedOverInOrder(t *testing.T) {
	s := startKind(t, "semaphore", oneNode)
	s.acquire("2", "a")
	s.acquire("2", "b")
	e := listen(t, s.Client())
	requireRefused(t, s.acquire("2", "c"), 10_000, 1)
	requireRefused(t, s.acquire("2", "d"), 10_000, 0)
	requireRefused(t, s.acquire("2", "c"), 10_000, 1)
	requireRefused(t, s.tryOnce("2", "x"), 10_000, 0)
	require.Equal(t, []string{"c", "d"}, s.waiting())
	require.Equal(t, []any{1}, s.release("2/1", "b"))
	require.Equal(t, []string{"0|a", "1|c"}, s.holders())
	require.Equal(t, []string{fmt.Sprint("c ", s.fenceOf(1), " 1")}, s.told(e), "with its fencing token and its slot")
	s.endsIn("c", 3*time.Second)
	requireRefused(t, s.beat("2", "d"), 3000, 1)
	require.Equal(t, []any{1}, s.renew("2/1", "c", ttl))
	s.endsIn("c", 10*time.Second)
	s.release("2/0", "a")
	require.Equal(t, []string{"0|d", "1|c"}, s.holders())
	s.release("2/0", "d")
	s.release("2/1", "c")
	s.leavesNothing()
}

var semaphoreGivers = map[string]func(s *several){
	"expiry, release": func(s *several) { s.release("3", "a") },
	"expiry, undo":    func(s *several) { s.undo("3", "a") },
	"expiry, force":   func(s *several) { s.force(digest("a")) },
	"expiry, beat":    func(s *several) { s.beat("3", "h") },
	"expiry, try":     func(s *several) { s.tryOnce("3", "x") },
	"expiry, acquire": func(s *several) { s.acquire("3", "h") },
}

// As many as there are free slots are made holders by one script, the dead left out.
func TestSlotsAreHandedOverTogether(t *testing.T) {
	for way, give := range semaphoreGivers {
		t.Run(way, func(t *testing.T) {
			s := startKind(t, "semaphore", oneNode)
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				s.acquire("3", name)
			}
			s.dead("d", "f")
			s.ends("a", -time.Millisecond)
			s.ends("c", -time.Millisecond)
			e := listen(t, s.Client())
			give(s)
			require.Equal(t, []string{"0|e", "1|b", "2|g"}, s.holders())
			require.Equal(t, []string{fmt.Sprint("e ", s.fenceOf(0), " 0"), fmt.Sprint("g ", s.fenceOf(2), " 2")}, s.told(e))
			require.Equal(t, []string{"h"}, s.waiting())
			require.Equal(t, int64(1), s.Do("HLEN", s.key("places")))
		})
	}
}

// How many permits there are is what each place's own acquire or beat said last. Nobody passes the first, though.
func TestPermitsOfThoseWhoWait(t *testing.T) {
	s := startKind(t, "semaphore", oneNode)
	s.acquire("2", "a")
	s.acquire("2", "b")
	s.acquire("1", "c")
	s.acquire("2", "d")
	s.release("2/0", "a")
	require.Equal(t, []string{"1|b"}, s.holders())
	requireRefused(t, s.acquire("5", "e"), 10_000, 0)
	s.requireSlot(0, s.beat("2", "c")) // more of them act at once
	require.Equal(t, []string{"0|c", "1|b"}, s.holders())
	e := listen(t, s.Client())
	requireRefused(t, s.beat("5", "e"), 10_000, 0)
	requireGranted(t, s.beat("5", "d"))
	require.Equal(t, []string{"0|c", "1|b", "2|d", "3|e"}, s.holders(), "and for those behind")
	require.Len(t, s.told(e), 1)
}

func TestBeatOfASemaphore(t *testing.T) {
	s := startKind(t, "semaphore", oneNode)
	require.Equal(t, []any{2}, s.beat("1", "b"))
	require.Empty(t, s.Keys())
	s.acquire("1", "a")
	s.acquire("1", "b")
	s.acquire("1", "c")
	requireRefused(t, s.beat("1", "b"), 10_000, 1)
	requireRefused(t, s.beat("1", "c"), 10_000, 0)
	s.left(s.key("queue"), time.Minute)
	s.left(s.key("places"), time.Minute)
	s.release("1/0", "a") // and the message gets lost
	number := s.fenceOf(0)
	require.Equal(t, []any{1, number, 0}, s.beat("1", "b"))
	require.Equal(t, []any{1, number, 0}, s.beat("1", "b"))
	s.endsIn("b", 10*time.Second)
	s.Do("DEL", s.key("fence"))
	number = requireGranted(t, s.beat("1", "b"))
	require.Equal(t, []any{1, number, 0}, s.beat("1", "b"), "it has a counter again")

	e := listen(t, s.Client())
	s.Do("DEL", lock)
	s.requireSlot(0, s.beat("1", "c"))
	s.endsIn("c", 10*time.Second)
	require.Empty(t, e.heard(), "who asks is told by the reply")

	s.acquire("1", "d")
	s.acquire("1", "e")
	s.Do("DEL", lock)
	s.requireSlot(0, s.acquire("1", "d")) // as by an acquire
	s.endsIn("d", 10*time.Second)
	require.Equal(t, []string{"e"}, s.waiting())
}

func TestTurnsBehindASilentHolderOfASlot(t *testing.T) {
	s := startKind(t, "semaphore", oneNode)
	s.Do("ZADD", lock, s.micros()/1000+10_000, "s|0|rl0:xxxxxxxxxxxxxxxxxxxxxx:host")
	requireRefused(t, s.acquire("1", "a"), 10_000, 2)
	requireRefused(t, s.acquire("1", "b"), 10_000, 0)
	requireRefused(t, s.beat("1", "a"), 10_000, 2)
}
