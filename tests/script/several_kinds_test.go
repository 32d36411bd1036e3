package script_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// alone is what one wants who shares the lock with nobody, by kind.
var alone = map[string]string{"rwlock": "w", "semaphore": "1"}

// eachSeveral runs a test for both kinds.
func eachSeveral(t *testing.T, isQueued bool, test func(t *testing.T, s *several, wanted string)) {
	for kind, wanted := range alone {
		t.Run(kind, func(t *testing.T) { test(t, startKind(t, kind, isQueued), wanted) })
	}
}

// verbs are all scripts of a kind with arguments for one that wants the lock alone, those of one node first.
func (s *several) verbs(name string) map[*script.Script]func() ([]any, error) {
	wanted := wants(alone[s.kind], name)
	call := func(sc *script.Script, keys []string, args ...string) func() ([]any, error) {
		return func() ([]any, error) { return s.try(sc, keys, append(args, wanted...)...) }
	}
	of, with, without := s.family, keysOf(s.kind, true), keysOf(s.kind, false)
	return map[*script.Script]func() ([]any, error){
		of.Acquire: func() ([]any, error) { return s.try(of.Acquire, s.keys(), s.acquireArgs(alone[s.kind], name, ttl)...) },
		of.Beat:    call(of.Beat, with, token(name), ttl, fenceTTL, "client "+name, "1", "3000"),
		of.Raise:   call(of.Raise, without, token(name), "100", fenceTTL),
		of.Renew:   call(of.Renew, without, token(name), ttl, fenceTTL),
		of.Regrant: call(of.Regrant, without, token(name), ttl, "100", fenceTTL),
		of.Release: call(of.Release, with, token(name)),
		of.Undo:    call(of.Undo, with, token(name)),
		of.Inspect: func() ([]any, error) { return s.try(of.Inspect, with) },
		of.Force:   func() ([]any, error) { return s.try(of.Force, with, script.Digest("x")) },
	}
}

// What stands at the key of a lock decides: another kind's is left alone, and named. So are sets that are no lock's.
func TestWrongKindsOfThoseThatSeveralHold(t *testing.T) {
	foreign := map[string][][]any{
		"string":    {{"SET", lock, mine}},
		"list":      {{"RPUSH", lock, "1"}},
		"set":       {{"SADD", lock, "1"}},
		"hash":      {{"HSET", lock, "owner", "1", "tok", mine}},
		"stream":    {{"XADD", lock, "*", "1", "1"}},
		"zset":      {{"ZADD", lock, 1, "player one", 2, "player two"}},
		"semaphore": {{"ZADD", lock, 9e15, "s|0|" + mine}},
		"rwlock":    {{"ZADD", lock, 9e15, "r|owner|" + mine}},
	}
	for _, isQueued := range []bool{true, false} {
		eachSeveral(t, isQueued, func(t *testing.T, s *several, _ string) {
			for stands, commands := range foreign {
				if stands == s.kind {
					continue
				}
				s.Do("FLUSHALL")
				for _, command := range commands {
					s.Do(command...)
				}
				before := s.Do("DUMP", lock)
				for sc, run := range s.verbs("a") {
					want := []any{3, stands}
					if sc == s.family.Undo {
						want = []any{2} // nothing of ours is here
					}
					reply, err := run()
					require.NoError(t, err, sc.Name)
					require.Equal(t, want, reply, "%s on a %s", sc.Name, stands)
				}
				require.Equal(t, before, s.Do("DUMP", lock), "a %s is left alone", stands)
				require.Equal(t, []string{lock}, s.Keys())
			}

			s.Do("DEL", lock)
			s.acquire(alone[s.kind], "a")
			s.Do("ZADD", lock, 9e15, "player one")
			require.Equal(t, []any{3, "zset"}, s.inspect(), "whichever comes first")
		})
	}
}

// The mutex tells the type of the others.
func TestMutexOnOtherKinds(t *testing.T) {
	eachSeveral(t, manyNodes, func(t *testing.T, s *several, wanted string) {
		s.acquire(wanted, "a")
		before := s.holders()
		require.Equal(t, []any{3, "zset"}, s.fixture.acquire(mine, ttl))
		require.Equal(t, []any{3, "zset"}, s.run(script.MutexRelease, []string{lock}, mine))
		require.Equal(t, before, s.holders())
	})
}

// A grant that can't have its fencing token does not take place. Those who wait keep their places.
func TestSeveralWithAWrongKindOfFenceCounter(t *testing.T) {
	eachSeveral(t, oneNode, func(t *testing.T, s *several, wanted string) {
		s.acquire(wanted, "a")
		s.acquire(wanted, "b")
		s.acquire(wanted, "c")
		s.Do("DEL", s.key("fence"))
		s.Do("RPUSH", s.key("fence"), "1")
		require.Equal(t, []any{1}, s.release(wanted, "a"))
		require.Equal(t, []any{2}, s.undo(wanted, "a"))
		require.Equal(t, []any{2}, s.force(digest("a")))
		for _, call := range []func(){
			func() { _, err := s.verbs("b")[s.family.Beat](); require.ErrorContains(t, err, "WRONGTYPE") },
			func() { _, err := s.verbs("c")[s.family.Acquire](); require.ErrorContains(t, err, "WRONGTYPE") },
			func() { _, err := s.verbs("c")[s.family.Inspect](); require.ErrorContains(t, err, "WRONGTYPE") },
		} {
			call()
			require.Empty(t, s.holders())
			require.Equal(t, []string{"b", "c"}, s.waiting())
		}
		s.Do("DEL", s.key("fence"))
		requireGranted(t, s.beat(wanted, "b"))
	})
}

func TestSeveralWithoutFencing(t *testing.T) {
	eachSeveral(t, manyNodes, func(t *testing.T, s *several, wanted string) {
		reply := s.run(s.family.Acquire, []string{lock}, s.acquireArgs(wanted, "a", ttl)...)
		require.Equal(t, []any{1, 0}, reply[:2])
		require.Equal(t, []any{1}, s.call(s.family.Renew, []string{lock}, []string{token("a"), ttl, fenceTTL}, wants(wanted+zero(s), "a")...))
		require.Equal(t, []any{1, 0}, s.call(s.family.Regrant, []string{lock}, []string{token("a"), ttl, "7", fenceTTL}, wants(wanted+zero(s), "a")...))
		require.Equal(t, []string{lock}, s.Keys())
		s.Do("DEL", lock)

		s.queued = true
		unfenced := func(name string) []any {
			args := s.acquireArgs(wanted, name, ttl)
			args[2] = noFencing
			return s.run(s.family.Acquire, s.keys(), args...)
		}
		require.Equal(t, []any{1, 0}, unfenced("a")[:2])
		unfenced("b")
		s.acquire(wanted, "c")
		e := listen(t, s.Client())
		s.release(wanted, "a")
		require.Equal(t, "b 0", s.told(e)[0][:3])
		beat := s.call(s.family.Beat, s.keys(), []string{token("b"), ttl, noFencing, "client b", "1", "3000"}, wants(wanted, "b")...)
		require.Equal(t, []any{1, 0}, beat[:2])
		require.NotContains(t, s.Keys(), s.key("fence"))
		s.release(wanted, "b")
		require.Contains(t, s.Keys(), s.key("fence"))
	})
}

// zero is the slot in what is wanted, for scripts that have to know it.
func zero(s *several) string {
	if s.kind == "semaphore" {
		return "/0"
	}
	return ""
}

// A server without memory extends leases, hands over and takes locks back. It grants nothing new.
func TestSeveralWithoutMemory(t *testing.T) {
	eachSeveral(t, oneNode, func(t *testing.T, s *several, wanted string) {
		for _, name := range []string{"a", "b", "c", "d"} {
			s.acquire(wanted, name)
		}
		s.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
		s.Do("CONFIG", "SET", "maxmemory", "1")
		_, err := s.verbs("e")[s.family.Acquire]()
		require.ErrorContains(t, err, "OOM")
		_, err = s.verbs("c")[s.family.Beat]()
		require.ErrorContains(t, err, "OOM")
		require.Equal(t, []string{"b", "c", "d"}, s.waiting())

		require.Equal(t, []any{1}, s.renew(wanted+zero(s), "a", "60000"))
		s.endsIn("a", time.Minute)
		require.Equal(t, []any{1}, s.release(wanted, "a"))
		s.endsIn("b", 3*time.Second)
		requireGranted(t, s.beat(wanted, "b"))
		s.endsIn("b", 10*time.Second)
		require.Equal(t, []any{1}, s.undo(wanted, "b"))
		s.endsIn("c", 3*time.Second)
		require.Equal(t, []any{1}, s.force(digest("c")))
		s.endsIn("d", 3*time.Second)
		require.Equal(t, []any{1}, s.release(wanted, "d"))
		s.leavesNothing()
	})
}

// Whichever of the queue's keys is lost, those who wait go on waiting, in an order.
func TestAnEvictedKeyOfTheQueueOfSeveral(t *testing.T) {
	for _, role := range []string{"queue", "places"} {
		eachSeveral(t, oneNode, func(t *testing.T, s *several, wanted string) {
			s.acquire(wanted, "a")
			s.acquire(wanted, "b")
			s.acquire(wanted, "c")
			s.Do("DEL", s.key(role))
			for _, name := range []string{"c", "b", "d"} {
				if reply := s.beat(wanted, name); reply[0] == 2 {
					s.acquire(wanted, name)
				}
			}
			order := s.waiting()
			require.ElementsMatch(t, []string{"b", "c", "d"}, order)
			s.release(wanted, "a")
			for _, name := range order {
				requireGranted(t, s.beat(wanted, name))
				s.release(wanted, name)
			}
			s.leavesNothing()
		})
	}
}

// A server's clock that was set back does not keep a dead waiter for longer than any other.
func TestPlacesOfTheFutureAreClampedOfSeveral(t *testing.T) {
	eachSeveral(t, oneNode, func(t *testing.T, s *several, wanted string) {
		s.acquire(wanted, "a")
		s.acquire(wanted, "b")
		s.acquire(wanted, "c")
		s.dead("b")
		place := strings.Fields(s.Do("HGET", s.key("places"), token("b")).(string))
		s.Do("HSET", s.key("places"), token("b"), "9"+strings.Join(place, " "))
		requireRefused(t, s.beat(wanted, "c"), 10_000, 0)
		clamped := strings.Fields(s.Do("HGET", s.key("places"), token("b")).(string))
		require.Equal(t, place[1:], clamped[1:], "and what it wants stays")
		s.dead("b")
		require.Equal(t, []any{1}, s.release(wanted, "a"))
		require.Equal(t, []string{"c"}, s.names())
		s.leavesButHolders()
	})
}

func (s *several) names() []string {
	names := s.holders()
	for i, holder := range names {
		_, names[i], _ = strings.Cut(holder, "|")
	}
	return names
}

// leavesButHolders checks that nobody waits.
func (s *several) leavesButHolders() {
	s.t.Helper()
	require.ElementsMatch(s.t, []string{lock, s.key("fence")}, s.Keys())
}

// At most a hundred dead are removed at a time. Nobody overtakes whom no script has looked at.
func TestManyDeadBeforeSeveral(t *testing.T) {
	eachSeveral(t, oneNode, func(t *testing.T, s *several, wanted string) {
		s.acquire(wanted, "a")
		names := make([]string, 250)
		for i := range names {
			names[i] = fmt.Sprintf("x%03d", i)
			s.acquire(wanted, names[i])
		}
		s.acquire(wanted, "b")
		s.dead(names...)
		require.Equal(t, []any{1}, s.release(wanted, "a"))
		require.Empty(t, s.holders())
		require.Len(t, s.waiting(), 151)
		requireRefused(t, s.tryOnce(wanted, "t"), 3000, 0)
		require.Equal(t, []string{"b"}, s.names())
	})
}

// A user that may not publish hands over all the same.
func TestSeveralWithoutLeaveToPublish(t *testing.T) {
	eachSeveral(t, manyNodes, func(t *testing.T, s *several, wanted string) {
		s.Do("ACL", "SETUSER", "limited", "reset", "on", "nopass", "allkeys", "+@all", "-publish", "allchannels")
		client := redis.NewClient(&redis.Options{Network: s.Client().Options().Network, Addr: s.Client().Options().Addr, Username: "limited", Password: "x"})
		t.Cleanup(func() { client.Close() })
		require.ErrorContains(t, client.Publish(context.Background(), "redlock:wake:c", "").Err(), "NOPERM")
		release := func(name string) []any {
			values := []any{token(name)}
			for _, value := range wants(wanted, name) {
				values = append(values, value)
			}
			reply, err := evaluate(client, s.family.Release, s.keys(), values)
			require.NoError(t, err)
			require.Equal(t, []any{1, 0}, reply[:2])
			return reply
		}
		s.acquire(wanted, "a")
		require.Contains(t, release("a")[2], "can't run this command")
		s.queued = true
		s.acquire(wanted, "a")
		s.acquire(wanted, "b")
		require.Contains(t, release("a")[2], "can't run this command")
		require.Equal(t, []string{"b"}, s.names())
		requireGranted(t, s.beat(wanted, "b"))
	})
}

// A place that is both granted and waiting, as no client of ours makes it, is given up as a whole.
func TestUndoOfAGrantAndItsPlace(t *testing.T) {
	eachSeveral(t, oneNode, func(t *testing.T, s *several, wanted string) {
		s.acquire(wanted, "a")
		s.acquire(wanted, "b")
		s.acquire(wanted, "c")
		require.Equal(t, []any{1}, s.undo(wanted, "b"), "its place")
		require.Equal(t, []string{"c"}, s.waiting())
		s.acquire(wanted, "b")
		s.Do("DEL", lock)
		s.queued = false
		s.acquire(wanted, "b") // past the queue
		s.queued = true
		require.Equal(t, []any{1}, s.undo(wanted, "b"))
		require.Equal(t, []string{"c"}, s.names())
		s.leavesButHolders()
	})
}
