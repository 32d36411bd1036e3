package script_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// fenceOf is the last fencing token of a slot.
func (s *several) fenceOf(slot int) int {
	s.t.Helper()
	n, err := strconv.Atoi(s.Do("HGET", s.key("fence"), slot).(string))
	require.NoError(s.t, err)
	return n
}

// requireSlot checks that a slot was granted, and gives its fencing token.
func (s *several) requireSlot(slot int, reply []any) int {
	s.t.Helper()
	number := requireGranted(s.t, reply)
	require.Equal(s.t, []any{1, s.fenceOf(slot), slot}, reply)
	return number
}

func TestSlots(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	before := s.micros()
	first := s.requireSlot(0, s.acquire("3", "a"))
	require.GreaterOrEqual(t, first, before)
	s.endsIn("a", 10*time.Second)
	s.left(lock, 10*time.Second)
	s.left(s.key("fence"), 600*time.Second)
	s.requireSlot(1, s.acquire("3", "b"))
	s.requireSlot(2, s.acquire("3", "c"))
	s.ends("b", 4*time.Second)
	reply := s.acquire("3", "d")
	require.InDelta(t, 4000, reply[1], 1000)
	require.Equal(t, []any{0, reply[1], 1, 0, script.Digest(token("b"))[:16], ""}, reply, "the first to expire counts")
	require.Equal(t, []any{1, 0}, s.release("3/1", "b"))
	require.Equal(t, []any{1, 0}, s.release("3/0", "a"))
	require.Greater(t, s.requireSlot(0, s.acquire("3", "d")), first, "the lowest free one")
	s.requireSlot(1, s.acquire("3", "e"))
	require.Equal(t, []string{"0|d", "1|e", "2|c"}, s.holders())
}

// Each slot has a fence counter of its own.
func TestFencesPerSlot(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	s.Do("HSET", s.key("fence"), 0, 3_000_000_000_000_000, 1, 12)
	require.Equal(t, []any{1, 3_000_000_000_000_001, 0}, s.acquire("2", "a"))
	require.Less(t, s.requireSlot(1, s.acquire("2", "b")), 3_000_000_000_000_000)
	s.left(s.key("fence"), 600*time.Second)
	s.Do("PEXPIRE", s.key("fence"), 864_000_000)
	s.acquire("3", "c")
	s.left(s.key("fence"), 864_000*time.Second)
	s.release("3", "c")
	s.Do("HSET", s.key("fence"), 2, "junk")
	s.requireSlot(2, s.acquire("3", "c"))
}

func TestProposedSlots(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	s.requireSlot(2, s.acquire("4/2", "a"))
	s.ends("a", 7*time.Second)
	s.requireSlot(0, s.acquire("4/0", "b"))
	reply := s.acquire("4/2", "c")
	require.InDelta(t, 7000, reply[1], 1000)
	require.Equal(t, []any{0, reply[1], 1, 0, script.Digest(token("a"))[:16], "1,3"}, reply)
	require.Equal(t, "1,3", s.acquire("4/4", "c")[5], "there is no such slot")
	s.requireSlot(3, s.acquire("4/3", "c"))
	require.Equal(t, "", s.acquire("3/1", "d")[5], "there are three")
	s.requireSlot(1, s.acquire("4/1", "d"))
	require.Equal(t, "", s.acquire("4/1", "e")[5])

	for i := range 30 {
		s.requireSlot(100+i, s.acquire(fmt.Sprintf("1000/%d", 100+i), fmt.Sprint("x", i)))
	}
	free := strings.Split(s.acquire("1000/100", "y")[5].(string), ",")
	require.Len(t, free, 100)
	require.Equal(t, []string{"4", "99", "130", "133"}, []string{free[0], free[95], free[96], free[99]}, "the lowest hundred of them")
}

func TestPermitsShrinkAndGrow(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	for i := range 4 {
		s.acquire("4", fmt.Sprint("a", i))
	}
	for i := range 4 {
		s.ends(fmt.Sprint("a", i), time.Duration(40-10*i)*time.Second)
	}
	reply := s.acquire("2", "b")
	require.InDelta(t, 30_000, reply[1], 1000, "three have to go")
	require.Equal(t, script.Digest(token("a1"))[:16], reply[4])
	for i := 3; i > 1; i-- {
		require.Equal(t, 1, s.release("2/"+strconv.Itoa(i), fmt.Sprint("a", i))[0], "those who hold finish")
		require.Equal(t, 0, s.acquire("2", "b")[0])
	}
	require.Equal(t, []any{1}, s.renew("2/1", "a1", ttl))
	s.requireSlot(2, s.acquire("3", "b"))
	s.requireSlot(3, s.acquire("9", "c"))
	s.release("9/0", "a0")
	require.Equal(t, 0, s.acquire("3", "d")[0], "three are held, one of them above")
	s.requireSlot(0, s.acquire("4", "d"))
}

func TestSemaphoreExactlyOnce(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	first := s.requireSlot(0, s.acquire("1", "a"))
	require.Greater(t, s.requireSlot(0, s.acquire("1", "a")), first, "the same call again: its first reply was lost")
	require.Equal(t, []string{"0|a"}, s.holders())
	require.Equal(t, []any{0}, s.release("1/0", "b"))
	require.Equal(t, 1, s.release("1/0", "a")[0])
	require.Equal(t, []any{2}, s.release("1/0", "a"))
	s.leavesNothing()

	s.acquire("2", "a")
	s.acquire("2", "b")
	require.Equal(t, 1, s.release("2", "b")[0], "whose slot is not known")
	require.Equal(t, []any{2}, s.release("2", "b"))
	require.Equal(t, []any{2}, s.release("2/1", "b"))
	require.Equal(t, []any{1}, s.undo("2", "a"))
	require.Equal(t, []any{2}, s.undo("2", "a"))
	s.leavesNothing()
}

func TestSlotsExpireOneByOne(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	s.acquire("2", "a")
	s.acquire("2", "b")
	s.ends("a", -time.Millisecond)
	require.Equal(t, []any{2}, s.renew("2/0", "a", ttl), "what has expired is gone")
	require.Equal(t, []any{0}, s.renew("2/1", "a", ttl))
	require.Equal(t, []string{"1|b"}, s.holders())
	require.Equal(t, []any{1}, s.renew("2/1", "b", "60000"))
	s.endsIn("b", time.Minute)
	s.left(lock, time.Minute)
	require.Equal(t, []any{1}, s.renew("2/1", "b", "5000"))
	require.Equal(t, []any{1}, s.renew("2", "b", "5000"), "whose slot is not known")
	s.endsIn("b", time.Minute) // never shortened
	s.requireSlot(0, s.acquire("2", "c"))
	s.left(lock, time.Minute)
	s.Do("PEXPIRE", s.key("fence"), 1000)
	require.Equal(t, []any{1}, s.renew("2/0", "c", ttl))
	s.left(s.key("fence"), 600*time.Second)
}

func TestRaiseOfASemaphore(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	require.Equal(t, []any{2}, s.raise("2/1", "a", "100"))
	require.Empty(t, s.Keys())
	number := s.requireSlot(1, s.acquire("2/1", "a"))
	require.Equal(t, []any{0}, s.raise("2/1", "b", strconv.Itoa(number+5)))
	require.Equal(t, []any{1}, s.raise("2/1", "a", "5"))
	require.Equal(t, number, s.fenceOf(1), "never lowered")
	require.Equal(t, []any{1}, s.raise("2/1", "a", strconv.Itoa(number+5)))
	require.Equal(t, number+5, s.fenceOf(1))
	s.left(s.key("fence"), 600*time.Second)
}

func TestRegrantOfASemaphore(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	require.Equal(t, []any{1, 100}, s.regrant("2/1", "a", "100"))
	require.Equal(t, []any{1, 100}, s.regrant("2/1", "a", "90"))
	require.Equal(t, []string{"1|a"}, s.holders())
	s.endsIn("a", 10*time.Second)
	s.left(s.key("fence"), 600*time.Second)
	reply := s.regrant("2/1", "b", "200")
	require.InDelta(t, 10_000, reply[1], 2000)
	require.Equal(t, []any{0, reply[1]}, reply)
	require.Equal(t, 100, s.fenceOf(1))
	require.Equal(t, []any{1, 50}, s.regrant("1/5", "c", "50"), "there were more permits once")
}

func TestReleasesOfASemaphoreThatArePublished(t *testing.T) {
	s := startKind(t, "semaphore", manyNodes)
	e := listen(t, s.Client())
	told := func(what string) []string { return []string{"redlock:released:" + lock + " semaphore " + what} }
	s.acquire("2", "a")
	s.acquire("2", "b")
	require.Equal(t, []any{1, 1}, s.release("2/0", "a"))
	require.Equal(t, told("0"), e.heard(), "each slot's")
	require.Equal(t, []any{1}, s.undo("2/1", "b"))
	require.Empty(t, e.heard(), "an undo tells nobody")
	s.acquire("2", "a")
	require.Equal(t, []any{0}, s.force(digest("b")))
	require.Equal(t, []any{1}, s.force(digest("a")))
	require.Equal(t, []any{2}, s.force(digest("a")))
	require.Equal(t, told("*"), e.heard())

	silent := "rl0:" + token("a")[4:]
	s.run(s.family.Acquire, s.keys(), silent, ttl, fenceTTL, "", "1", "")
	require.Equal(t, 2, s.acquire("1", "b")[2])
	require.Equal(t, []any{1}, s.run(s.family.Release, s.keys(), silent, "1", "0"))
	require.Empty(t, e.heard())
}

func TestSemaphoreTakesOverUnresolvedTokens(t *testing.T) {
	s := startKind(t, "semaphore", oneNode)
	s.acquire("2", "x")
	before := s.requireSlot(1, s.acquire("2", "a"))
	requireRefused(t, s.acquire("2", "b"), 10_000, 1)
	require.Greater(t, s.requireSlot(1, s.acquire("2", "a2", "y", "a")), before, "it had been granted before b came")
	require.Equal(t, []string{"0|x", "1|a2"}, s.holders())
	requireRefused(t, s.acquire("2", "c", "b"), 10_000, 1)
	require.Equal(t, []string{"c"}, s.waiting(), "an unresolved place is left")
	s.requireSlot(1, s.acquire("2", "c", "a2"))
	require.Empty(t, s.waiting(), "and its own, when it gets a slot")
	s.requireSlot(0, s.acquire("2", "x", "c"))
	require.Equal(t, []string{"0|x"}, s.holders(), "one that has a slot keeps it")

	s = startKind(t, "semaphore", manyNodes)
	s.acquire("2/1", "a")
	s.requireSlot(0, s.acquire("2/0", "b", "a"))
	require.Equal(t, []string{"0|b"}, s.holders(), "one in another slot")
}

func TestInspectASemaphore(t *testing.T) {
	s := startKind(t, "semaphore", oneNode)
	require.Equal(t, []any{2, 0, 0, 0}, s.inspect())
	a := s.requireSlot(0, s.acquire("2", "a"))
	b := s.requireSlot(1, s.acquire("2", "b"))
	s.ends("b", 20*time.Second)
	s.acquire("2", "c")
	reply := s.inspect()
	require.Len(t, reply, 12)
	require.InDelta(t, 10_000, reply[5], 2000)
	require.InDelta(t, 20_000, reply[9], 2000)
	require.Equal(t, []any{1, b, 1, reply[3], token("a"), reply[5], 0, a, token("b"), reply[9], 1, b}, reply)
	s.Do("DEL", lock)
	require.Equal(t, []any{2, b, 1}, s.inspect()[:3])
	require.Equal(t, []string{"c"}, s.waiting(), "it only looks")
}
