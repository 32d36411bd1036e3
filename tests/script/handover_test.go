package script_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// givers are the ways in which a holder ceases to be one, and others that find the lock free.
var givers = map[string]func(f *fixture, holder string){
	"release": func(f *fixture, holder string) {
		f.t.Helper()
		require.Equal(f.t, []any{1}, f.run(script.MutexRelease, all(), holder))
	},
	"undo": func(f *fixture, holder string) {
		f.t.Helper()
		require.Equal(f.t, []any{1}, f.run(script.MutexUndo, all(), holder))
	},
	"force": func(f *fixture, holder string) {
		f.t.Helper()
		require.Equal(f.t, []any{1}, f.run(script.MutexForce, all(), script.Digest(holder)))
	},
	"release of one that expired": func(f *fixture, holder string) {
		f.t.Helper()
		f.Do("DEL", lock)
		require.Equal(f.t, []any{2}, f.run(script.MutexRelease, all(), holder))
	},
	"undo of one that expired": func(f *fixture, holder string) {
		f.t.Helper()
		f.Do("DEL", lock)
		require.Equal(f.t, []any{2}, f.run(script.MutexUndo, all(), holder))
	},
	"force of one that expired": func(f *fixture, holder string) {
		f.t.Helper()
		f.Do("DEL", lock)
		require.Equal(f.t, []any{2}, f.run(script.MutexForce, all(), script.Digest(holder)))
	},
	"beat of another after it expired": func(f *fixture, holder string) {
		f.t.Helper()
		f.Do("DEL", lock)
		requireRefused(f.t, f.beat(second), 3000, 1)
	},
}

const holder = "rl1:holder"

func TestHandOver(t *testing.T) {
	for name, give := range givers {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			token := f.enqueue(holder)[1].(int)
			f.enqueue(first)
			f.enqueue(second)
			f.beat(first)
			e := listen(t, f.Client())
			before := f.micros()
			give(f, holder)

			require.Equal(t, first, f.get(lock))
			f.left(lock, 3*time.Second)
			require.Equal(t, []string{second}, f.order())
			require.Equal(t, []any{second}, f.Do("HKEYS", places))
			require.Greater(t, f.number(fence), token)
			require.GreaterOrEqual(t, f.number(fence), before)
			f.left(fence, 600*time.Second)

			messages := e.heard()
			require.Len(t, messages, 1)
			fields := strings.SplitN(messages[0], " ", 8) // the client's name has a space
			require.Equal(t, []string{"redlock:wake:client", "a", "mutex", first, "5678"}, fields[:5])
			elapsed, err := strconv.Atoi(fields[5])
			require.NoError(t, err)
			require.Positive(t, elapsed)
			require.Less(t, elapsed, 2_000_000)
			require.Equal(t, []string{strconv.Itoa(f.number(fence)), lock}, fields[6:])
		})
	}
}

// How long a place was not heard of is by the server's clock, and never less than nothing.
func TestAMessageTellsTheTimeSinceTheLastBeat(t *testing.T) {
	f := start(t)
	for _, test := range []struct{ ago, want time.Duration }{{2 * time.Second, 2 * time.Second}, {-time.Hour, 0}} {
		f.Do("SET", lock, holder)
		f.enqueue(first)
		place := strings.Fields(f.Do("HGET", places, first).(string))
		place[1] = strconv.Itoa(f.micros() - int(test.ago.Microseconds()))
		f.Do("HSET", places, first, strings.Join(place, " "))
		e := listen(t, f.Client())
		f.run(script.MutexRelease, all(), holder)
		elapsed, err := strconv.Atoi(strings.Fields(e.heard()[0])[5])
		require.NoError(t, err)
		require.InDelta(t, test.want, time.Duration(elapsed)*time.Microsecond, float64(time.Second))
		if test.want == 0 {
			require.Zero(t, elapsed)
		}
		f.run(script.MutexUndo, all(), first)
	}
}

// A name may have anything in it.
func TestHandOverOfANameWithSpaces(t *testing.T) {
	f := start(t)
	const name = "orders of 2024\n% %s"
	keys := []string{name, queue, places, fence}
	f.Do("SET", name, holder)
	f.run(script.MutexAcquire, keys, queued(first, "c1")...)
	e := listen(t, f.Client())
	f.run(script.MutexRelease, keys, holder)
	message := e.heard()[0]
	require.True(t, strings.HasPrefix(message, "redlock:wake:c1 mutex "+first+" 1234 "), message)
	require.True(t, strings.HasSuffix(message, " "+strconv.Itoa(f.number(fence))+" "+name), message)
}

func TestAHandOverLivesNoLongerThanItsTTL(t *testing.T) {
	f := start(t)
	for _, test := range []struct {
		ttl  string
		want time.Duration
	}{{"2500", 2500 * time.Millisecond}, {"3600000", 3 * time.Second}} {
		f.Do("SET", lock, holder)
		f.run(script.MutexAcquire, all(), first, test.ttl, fenceTTL, "", "c1", "1", "3000")
		f.run(script.MutexRelease, all(), holder)
		left := f.Do("PTTL", lock).(int64)
		require.LessOrEqual(t, left, test.want.Milliseconds())
		require.Greater(t, left, test.want.Milliseconds()-500)

		ms, err := strconv.Atoi(test.ttl)
		require.NoError(t, err)
		require.Equal(t, []any{1, f.number(fence)}, f.run(script.MutexBeat, all(), first, test.ttl, fenceTTL, "c1", "1", "3000"))
		f.left(lock, time.Duration(ms)*time.Millisecond)
		f.Do("DEL", lock)
	}
}

// A lock that was handed over goes on from one to the next in their order.
func TestHandOversInOrder(t *testing.T) {
	f := start(t)
	tokens := []string{holder, first, second, third}
	for _, token := range tokens {
		f.enqueue(token)
	}
	last := 0
	for _, token := range tokens {
		require.Equal(t, token, f.get(lock))
		require.Greater(t, f.number(fence), last)
		last = f.number(fence)
		require.Equal(t, []any{1}, f.run(script.MutexRelease, all(), token))
	}
	require.Equal(t, []string{fence}, f.Keys())
}

func TestTheDeadAreSkipped(t *testing.T) {
	f := start(t)
	f.enqueue(holder)
	f.enqueue(first)
	f.enqueue(second)
	f.enqueue(third)
	f.dies(first, second)
	e := listen(t, f.Client())
	f.run(script.MutexRelease, all(), holder)
	require.Equal(t, third, f.get(lock))
	require.Equal(t, []string{lock, fence}, f.Keys())
	require.Len(t, e.heard(), 1)

	f.enqueue(first)
	f.enqueue(second)
	f.dies(first, second)
	f.run(script.MutexRelease, all(), third)
	require.Equal(t, []string{fence}, f.Keys(), "free, if all are dead")
}

func TestABeatFindsThatItsWaiterIsTheHolder(t *testing.T) {
	f := start(t)
	f.enqueue(holder)
	f.enqueue(first)
	f.run(script.MutexRelease, all(), holder) // and the message gets lost
	token := f.number(fence)
	require.Equal(t, []any{1, token}, f.beat(first))
	f.left(lock, 10*time.Second)
	f.Do("PEXPIRE", lock, 60000)
	require.Equal(t, []any{1, token}, f.beat(first), "a late one")
	f.left(lock, 60*time.Second)
	require.Equal(t, token, f.number(fence), "a hold keeps its fencing token")

	f.Do("DEL", fence)
	reply := f.beat(first)
	require.Equal(t, []any{1, f.number(fence)}, reply, "the counter was lost: it has one again")
	require.Equal(t, reply, f.beat(first))
	require.Greater(t, f.number(fence), token)
	f.left(fence, 600*time.Second)
}

func TestABeatTakesAFreeLock(t *testing.T) {
	f := start(t)
	f.enqueue(holder)
	f.enqueue(first)
	f.enqueue(second)
	f.Do("DEL", lock)
	e := listen(t, f.Client())
	reply := f.beat(first)
	require.Equal(t, []any{1, f.number(fence)}, reply)
	require.Equal(t, first, f.get(lock))
	f.left(lock, 10*time.Second)
	require.Equal(t, []string{second}, f.order())
	require.Empty(t, e.heard(), "who asks is told by the reply")
	require.Equal(t, []any{1, f.number(fence)}, f.beat(first), "the reply got lost")

	f.dies(second)
	f.Do("DEL", lock)
	require.Equal(t, 1, f.beat(second)[0], "its life is over, and it lives")
	require.Equal(t, []any{2}, f.beat(first), "released meanwhile")
}

// Some waiters want a fencing token and others do not.
func TestHandOverWithoutFencing(t *testing.T) {
	f := start(t)
	plain := func(s *script.Script, token string, more ...string) []any {
		t.Helper()
		return f.run(s, all(), append([]string{token, ttl, noFencing}, more...)...)
	}
	require.Equal(t, []any{1, 0}, plain(script.MutexAcquire, holder, "", "c1", "1", "3000"))
	require.Equal(t, []string{lock}, f.Keys())
	plain(script.MutexAcquire, first, "", "c1", "1", "3000")
	f.enqueue(second)
	plain(script.MutexAcquire, third, "", "c1", "1", "3000")

	e := listen(t, f.Client())
	f.run(script.MutexRelease, all(), holder)
	require.True(t, strings.HasSuffix(e.heard()[0], " 0 "+lock))
	require.Nil(t, f.get(fence))
	require.Equal(t, []any{1, 0}, plain(script.MutexBeat, first, "c1", "1", "3000"))

	f.run(script.MutexRelease, all(), first)
	token := f.number(fence)
	require.True(t, strings.HasSuffix(e.heard()[0], " "+strconv.Itoa(token)+" "+lock))
	require.Equal(t, []any{1, token}, f.beat(second))

	f.Do("DEL", lock)
	require.Equal(t, []any{1, 0}, plain(script.MutexBeat, third, "c1", "1", "3000"))
	require.Equal(t, token, f.number(fence))
}

// What stood at the key of a lock that is not free stays, and nobody is told.
func TestNoHandOverOfALockThatIsNotFree(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, holder)
	f.enqueue(first)
	e := listen(t, f.Client())
	require.Equal(t, []any{0}, f.run(script.MutexRelease, all(), mine))
	require.Equal(t, []any{2}, f.run(script.MutexUndo, all(), mine))
	require.Equal(t, []any{0}, f.run(script.MutexForce, all(), script.Digest("x")))
	require.Equal(t, holder, f.get(lock))

	f.Do("DEL", lock)
	put(f, "zset", lock)
	for _, s := range []*script.Script{script.MutexRelease, script.MutexForce} {
		require.Equal(t, []any{3, "zset"}, f.run(s, all(), first), s.Name)
	}
	require.Equal(t, []any{3, "zset"}, f.beat(first))
	require.Equal(t, []any{3, "zset"}, f.enqueue(second))
	require.Equal(t, []any{2}, f.run(script.MutexUndo, all(), second))
	require.Equal(t, "zset", f.Do("TYPE", lock))
	require.Equal(t, []any{1}, f.run(script.MutexUndo, all(), first), "its place")
	require.Equal(t, []string{lock}, f.Keys())
	require.Empty(t, e.heard())
}

// A token that stands at the key and in the queue as well does not get the lock again by its own undo.
func TestUndoOfATokenInBothPlaces(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, holder)
	f.enqueue(first)
	f.enqueue(second)
	f.Do("SET", lock, first)
	require.Equal(t, []any{1}, f.run(script.MutexUndo, all(), first))
	require.Equal(t, second, f.get(lock))
	require.NotContains(t, f.Keys(), queue)
}

// A user that may not publish hands over all the same. The waiter learns it by its next beat.
func TestHandOverWithoutLeaveToPublish(t *testing.T) {
	f := start(t)
	for denial, rules := range map[string][]any{
		"can't run this command":       {"+@all", "-publish", "allchannels"},
		"can't publish to the channel": {"+@all", "resetchannels"},
	} {
		f.Do(append([]any{"ACL", "SETUSER", "limited", "reset", "on", "nopass", "allkeys"}, rules...)...)
		client := redis.NewClient(&redis.Options{Network: f.Client().Options().Network, Addr: f.Client().Options().Addr, Username: "limited", Password: "x"})
		t.Cleanup(func() { client.Close() })
		require.ErrorContains(t, client.Publish(context.Background(), "redlock:wake:c1", "").Err(), "NOPERM")

		f.Do("SET", lock, holder)
		reply, err := evaluate(client, script.MutexRelease, []string{lock}, []any{holder})
		require.NoError(t, err)
		require.Equal(t, []any{1, 0}, reply[:2], "nor is a release published that hands over to nobody")
		require.Contains(t, reply[2], denial)

		f.Do("FLUSHALL")
		f.enqueue(holder)
		f.enqueue(first)
		reply, err = evaluate(client, script.MutexRelease, all(), []any{holder})
		require.NoError(t, err)
		require.Equal(t, []any{1, 0}, reply[:2])
		require.Contains(t, reply[2], denial)
		require.Equal(t, first, f.get(lock))
		require.Equal(t, []any{1, f.number(fence)}, f.beat(first))

		f.enqueue(second)
		f.Do("DEL", lock)
		reply, err = evaluate(client, script.MutexAcquire, all(), []any{mine, ttl, fenceTTL, "", "", "1", "3000"})
		require.NoError(t, err)
		requireRefused(t, reply, 3000, 0)
		require.Equal(t, second, f.get(lock))
	}
}
