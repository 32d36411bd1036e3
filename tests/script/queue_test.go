package script_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

const (
	first  = "rl1:aaaaaaaaaaaaaaaaaaaaaa:host/1/go"
	second = "rl1:bbbbbbbbbbbbbbbbbbbbbb:host/2/py"
	third  = "rl1:cccccccccccccccccccccc:host/3/js"

	noFencing = "0"
)

// queued are the arguments of an acquire with a queue.
func queued(token, client string, unresolved ...string) []string {
	return append([]string{token, ttl, fenceTTL, "", client, "1234", "3000"}, unresolved...)
}

func (f *fixture) enqueue(token string, unresolved ...string) []any {
	f.t.Helper()
	return f.run(script.MutexAcquire, all(), queued(token, "client "+token[4:5], unresolved...)...)
}

func (f *fixture) beat(token string) []any {
	f.t.Helper()
	return f.run(script.MutexBeat, all(), token, ttl, fenceTTL, "client "+token[4:5], "5678", "3000")
}

// order is who waits, the first first.
func (f *fixture) order() []string {
	f.t.Helper()
	tokens := []string{}
	for _, token := range f.Do("LRANGE", queue, 0, -1).([]any) {
		tokens = append(tokens, token.(string))
	}
	return tokens
}

// life is until when a place lives, in µs from now; it is set to that if a value is given.
func (f *fixture) life(token string, set ...time.Duration) time.Duration {
	f.t.Helper()
	life, rest, _ := strings.Cut(f.Do("HGET", places, token).(string), " ")
	until, err := strconv.Atoi(life)
	require.NoError(f.t, err)
	if len(set) > 0 {
		until = f.micros() + int(set[0].Microseconds())
		f.Do("HSET", places, token, strconv.Itoa(until)+" "+rest)
	}
	return time.Duration(until-f.micros()) * time.Microsecond
}

func (f *fixture) dies(tokens ...string) {
	f.t.Helper()
	for _, token := range tokens {
		f.life(token, -time.Second)
	}
}

// requireRefused compares all but the exact time that is left.
func requireRefused(t *testing.T, reply []any, left, turn int) {
	t.Helper()
	require.Len(t, reply, 3)
	require.Equal(t, []any{0, turn}, []any{reply[0], reply[2]})
	require.InDelta(t, left, reply[1], 2000)
}

func TestARefusedAcquireTakesAPlace(t *testing.T) {
	f := start(t)
	require.Equal(t, 1, f.enqueue("rl1:holder")[0])
	require.Equal(t, []string{lock, fence}, f.Keys(), "who gets the lock takes no place")
	requireRefused(t, f.enqueue(first), 10000, 1)
	requireRefused(t, f.enqueue(second), 10000, 0)
	requireRefused(t, f.enqueue(third), 10000, 0)
	require.Equal(t, []string{first, second, third}, f.order())
	requireRefused(t, f.enqueue(first), 10000, 1)
	requireRefused(t, f.enqueue(second), 10000, 0)
	require.Equal(t, []string{first, second, third}, f.order(), "a retried call takes no second place")

	place := strings.SplitN(f.Do("HGET", places, second).(string), " ", 7)
	require.Equal(t, []string{"1234", ttl, fenceTTL, "client b"}, place[3:])
	require.InDelta(t, 3*time.Second, f.life(second), float64(time.Second))
	f.left(queue, 60*time.Second)
	f.left(places, 60*time.Second)
}

// The first polls if nobody will hand over to it.
func TestTurns(t *testing.T) {
	f := start(t)
	for holder, turn := range map[string]int{"rl1:holder": 1, "rl0:holder": 2, "another library's": 2, "1234": 2, "": 2} {
		f.Do("SET", lock, holder)
		requireRefused(t, f.enqueue(first), -1, turn)
		requireRefused(t, f.enqueue(second), -1, 0)
		requireRefused(t, f.beat(first), -1, turn)
		requireRefused(t, f.beat(second), -1, 0)
	}
}

// One that is dead does not keep the first that lives from its turn.
func TestTheFirstThatLivesIsTheFirst(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, "another library's")
	f.enqueue(first)
	f.enqueue(second)
	f.enqueue(third)
	f.dies(first, second)
	requireRefused(t, f.beat(third), -1, 2)
	require.Equal(t, []string{third}, f.order())
	require.Equal(t, []any{third}, f.Do("HKEYS", places))
}

func TestTry(t *testing.T) {
	f := start(t)
	try := func() []any { t.Helper(); return f.run(script.MutexAcquire, all(), queued(mine, "")...) }
	require.Equal(t, 1, try()[0], "a free lock is taken")
	f.Do("DEL", lock)

	f.Do("SET", lock, "rl1:holder", "PX", 5000)
	requireRefused(t, try(), 5000, 0)
	require.NotContains(t, f.Keys(), queue, "it takes no place")

	f.enqueue(first)
	f.Do("DEL", lock)
	e := listen(t, f.Client())
	requireRefused(t, try(), 3000, 0)
	require.Equal(t, first, f.get(lock), "it does not overtake, and hands over what it finds free")
	require.Len(t, e.heard(), 1)

	f.enqueue(second)
	f.dies(second)
	f.Do("DEL", lock)
	require.Equal(t, 1, try()[0], "the dead are overtaken")
	require.Equal(t, []string{lock, fence}, f.Keys())
}

func TestAnAcquireDoesNotOvertake(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, "rl1:holder")
	f.enqueue(first)
	f.enqueue(second)
	f.Do("DEL", lock)
	e := listen(t, f.Client())
	requireRefused(t, f.enqueue(third), 3000, 0)
	require.Equal(t, first, f.get(lock))
	require.Equal(t, []string{second, third}, f.order())
	require.Len(t, e.heard(), 1)

	f.Do("DEL", lock)
	reply := f.enqueue(second)
	require.Equal(t, []any{1, f.number(fence)}, reply, "the first takes it by an acquire too")
	f.left(lock, 10*time.Second)
	require.Empty(t, e.heard())
	require.Equal(t, []string{third}, f.order())
	require.Equal(t, []any{third}, f.Do("HKEYS", places))
}

// An acquire takes over what an earlier attempt of its client holds, without another place in the queue.
func TestAcquireTakesOverUnresolvedTokensInFrontOfAQueue(t *testing.T) {
	f := start(t)
	before := f.enqueue(first)[1].(int)
	f.enqueue(second)
	reply := f.enqueue(third, first)
	require.Equal(t, 1, reply[0])
	require.Greater(t, reply[1], before)
	require.Equal(t, third, f.get(lock))
	require.Equal(t, []string{second}, f.order())

	f.enqueue(first) // waits now, and its client does not know
	f.dies(second)
	f.Do("DEL", lock)
	require.Equal(t, 1, f.enqueue(second, first)[0], "handed over to the unresolved one, it is this one's")
	require.Equal(t, second, f.get(lock))
	require.Equal(t, []string{lock, fence}, f.Keys())
}

func TestBeatKeepsAPlace(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, "rl1:holder", "PX", 5000)
	require.Equal(t, []any{2}, f.beat(first), "without a place")
	require.Equal(t, []string{lock}, f.Keys())

	f.enqueue(first)
	f.enqueue(second)
	since := strings.Fields(f.Do("HGET", places, first).(string))[2]
	f.life(first, 10*time.Millisecond)
	f.Do("PEXPIRE", queue, 1000)
	f.Do("PEXPIRE", places, 1000)
	requireRefused(t, f.beat(first), 5000, 1)
	require.InDelta(t, 3*time.Second, f.life(first), float64(time.Second))
	f.left(queue, 60*time.Second)
	f.left(places, 60*time.Second)
	place := strings.SplitN(f.Do("HGET", places, first).(string), " ", 7)
	require.Equal(t, []string{since, "5678", ttl, fenceTTL, "client a"}, place[2:], "it waits since when it did")
	require.Equal(t, []string{first, second}, f.order())
}

// A place whose life is over, but that nobody has removed yet, lives again.
func TestBeatRevives(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, "rl1:holder")
	f.enqueue(first)
	f.enqueue(second)
	f.dies(first)
	requireRefused(t, f.beat(first), -1, 1)
	f.dies(first)
	requireRefused(t, f.beat(second), -1, 1)
	require.Equal(t, []any{2}, f.beat(first), "too late")
	requireRefused(t, f.enqueue(first), -1, 0)
	require.Equal(t, []string{second, first}, f.order())
}

// A server's clock that was set back does not keep a dead waiter for longer than any other.
func TestPlacesOfTheFutureAreClamped(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, "another library's")
	f.enqueue(first)
	f.enqueue(second)
	f.life(first, time.Hour)
	requireRefused(t, f.beat(second), -1, 0)
	require.InDelta(t, 3*time.Second, f.life(first), float64(time.Second))

	f.life(first, time.Hour)
	f.Do("DEL", lock)
	f.run(script.MutexRelease, all(), mine)
	require.Equal(t, first, f.get(lock), "it lives until then")
	require.Equal(t, []string{second}, f.order())
}

// At most a hundred dead are removed by one script. Nobody overtakes whom it has not looked at.
func TestAtMostAHundredDeadAreRemoved(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, "rl1:holder")
	dead := make([]string, 250)
	for i := range dead {
		dead[i] = fmt.Sprintf("rl1:%022d:x", i)
		f.enqueue(dead[i])
	}
	f.enqueue(first)
	f.dies(dead...)
	f.Do("DEL", lock)
	try := func() []any { t.Helper(); return f.run(script.MutexAcquire, all(), queued(mine, "")...) }

	require.Equal(t, []any{2}, f.run(script.MutexRelease, all(), mine))
	require.Nil(t, f.get(lock))
	require.Equal(t, slices.Concat(dead[100:], []string{first}), f.order())
	requireRefused(t, try(), 3000, 0) // looks twice
	require.Equal(t, first, f.get(lock))
	require.Equal(t, []string{lock, fence}, f.Keys())

	for _, token := range dead {
		f.enqueue(token)
	}
	f.dies(dead...)
	f.Do("DEL", lock)
	f.run(script.MutexUndo, all(), mine)
	require.Len(t, f.order(), 150)
	require.Equal(t, 1, try()[0], "only the dead were there")
	require.Equal(t, []string{lock, fence}, f.Keys())

	for _, token := range dead {
		f.enqueue(token)
	}
	f.enqueue(first)
	f.dies(dead...)
	f.Do("DEL", lock)
	require.Equal(t, []any{0, -1, 0}, f.beat(first), "whose the lock is does not show yet")
	require.Len(t, f.order(), 51)
	require.Equal(t, 1, f.beat(first)[0])
}

func TestLeaving(t *testing.T) {
	f := start(t)
	undo := func(token string) []any { t.Helper(); return f.run(script.MutexUndo, all(), token) }
	f.Do("SET", lock, "rl1:holder")
	f.enqueue(first)
	f.enqueue(second)
	f.enqueue(third)
	e := listen(t, f.Client())
	require.Equal(t, []any{1}, undo(second))
	require.Equal(t, []any{2}, undo(second), "the second time")
	require.Equal(t, []string{first, third}, f.order())
	require.Equal(t, []any{1}, undo(first))
	requireRefused(t, f.beat(third), -1, 1)
	require.Equal(t, []any{1}, undo(third))
	require.Equal(t, []string{lock}, f.Keys())
	require.Equal(t, "rl1:holder", f.get(lock))
	require.Empty(t, e.heard(), "nobody is told")
}

// Whichever of the queue's keys is lost, those who wait go on waiting, in an order.
func TestAnEvictedKeyOfTheQueue(t *testing.T) {
	for _, key := range []string{queue, places} {
		for _, others := range []bool{false, true} { // come before those who wait know
			f := start(t)
			f.Do("SET", lock, "rl1:holder")
			f.enqueue(first)
			f.enqueue(second)
			f.Do("DEL", key)
			if others {
				f.enqueue(third)
			}
			for _, token := range []string{second, first, third} {
				if reply := f.beat(token); reply[0] == 2 {
					f.enqueue(token)
				}
			}
			tokens := f.order()
			require.ElementsMatch(t, []string{first, second, third}, tokens, "%s %v", key, others)
			f.run(script.MutexRelease, all(), "rl1:holder")
			for _, token := range tokens {
				require.Equal(t, token, f.get(lock))
				require.Equal(t, []any{1}, f.run(script.MutexRelease, all(), token))
			}
			require.Equal(t, []string{fence}, f.Keys())
		}
	}
}

// A lock without a queue neither sees nor serves those who wait in one.
func TestLocksWithoutAQueue(t *testing.T) {
	f := start(t)
	e := listen(t, f.Client())
	for _, keys := range [][]string{{lock}, both()} {
		f.Do("FLUSHALL")
		f.Do("SET", lock, "rl1:holder", "PX", 5000)
		f.enqueue(first)
		require.Equal(t, 1, f.run(script.MutexAcquire, keys, mine, ttl, fenceTTL, "")[2], "the holder's release would be published")
		require.Equal(t, []any{1, 1}, f.run(script.MutexRelease, keys, "rl1:holder"), "one has heard of it")
		require.Nil(t, f.get(lock))
		require.Equal(t, 1, f.run(script.MutexAcquire, keys, mine, ttl, fenceTTL, "")[0])
		require.Equal(t, []any{1}, f.run(script.MutexUndo, keys, mine))
		require.Equal(t, []any{2}, f.run(script.MutexUndo, keys, first))
		f.Do("SET", lock, "x")
		require.Equal(t, []any{1}, f.run(script.MutexForce, keys, script.Digest("x")))
		require.Nil(t, f.get(lock))
		require.Equal(t, []string{first}, f.order())
		told := "redlock:released:" + lock + " mutex "
		require.Equal(t, []string{told + script.Digest("rl1:holder")[:16], told + script.Digest("x")[:16]}, e.heard(), "released and forced, but not undone")
		f.Do("SET", lock, mine)
		require.Equal(t, []any{1}, f.run(script.MutexRelease, keys, mine))
		require.Empty(t, e.heard(), "rl0: tells nobody")
	}
}

func TestInspectShowsTheQueue(t *testing.T) {
	f := start(t)
	inspect := func() []any { t.Helper(); return f.run(script.MutexInspect, all()) }
	f.Do("SET", lock, "x")
	f.enqueue(first)
	f.enqueue(second)
	place := strings.Fields(f.Do("HGET", places, first).(string))
	since := f.micros() - 7_000_000
	place[2] = strconv.Itoa(since)
	f.Do("HSET", places, first, strings.Join(place, " "))
	reply := inspect()
	require.Equal(t, []any{1, "x", -1, 0, 2}, reply[:5])
	require.InDelta(t, 7000, reply[5], 1000)

	f.Do("DEL", lock)
	reply = inspect()
	require.Equal(t, []any{2, 0, 2}, reply[:3])
	require.InDelta(t, 7000, reply[3], 1000)
	require.Nil(t, f.get(lock), "it only looks")

	place[2] = strconv.Itoa(f.micros() + 1_000_000_000)
	f.Do("HSET", places, first, strings.Join(place, " "))
	require.Equal(t, []any{2, 0, 2, 0}, inspect(), "not less than nothing")
}
