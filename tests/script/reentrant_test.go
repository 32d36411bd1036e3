package script_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

const (
	entriesFence  = "{orders}:redlock:reentrant:fence:orders"
	entriesQueue  = "{orders}:redlock:reentrant:queue:orders"
	entriesPlaces = "{orders}:redlock:reentrant:places:orders"

	ann = "ann of shop 1"
	bob = "bob"

	redissonChannel = "redisson_lock__channel:{orders}"
)

// reentrant is a server with a reentrant lock.
type reentrant struct{ *fixture }

func startReentrant(t *testing.T, args ...string) reentrant { return reentrant{start(t, args...)} }

// reentrantKeys are those that a script of a lock with a queue takes.
func reentrantKeys(s *script.Script, queue bool) []string {
	switch {
	case queue && s.Queues:
		return []string{lock, entriesQueue, entriesPlaces, entriesFence}
	case s.Fences:
		return []string{lock, entriesFence}
	}
	return []string{lock}
}

func (f reentrant) queued(s *script.Script, args ...string) []any {
	f.t.Helper()
	return f.run(s, reentrantKeys(s, true), args...)
}

// acquire is one that waits in the queue.
func (f reentrant) acquire(token, owner string, unresolved ...string) []any {
	f.t.Helper()
	args := []string{token, ttl, fenceTTL, "", "client " + owner, "1234", "3000", owner}
	return f.queued(script.Reentrant.Acquire, append(args, unresolved...)...)
}

// poll is one without a queue.
func (f reentrant) poll(token, owner string, unresolved ...string) []any {
	f.t.Helper()
	return f.run(script.Reentrant.Acquire, reentrantKeys(script.Reentrant.Acquire, false), append([]string{token, ttl, fenceTTL, "", owner}, unresolved...)...)
}

func (f reentrant) beat(token, owner string) []any {
	f.t.Helper()
	return f.queued(script.Reentrant.Beat, token, ttl, fenceTTL, "client "+owner, "5678", "3000", owner)
}

func (f reentrant) release(token, owner string) []any {
	f.t.Helper()
	return f.queued(script.Reentrant.Release, token, owner)
}

func (f reentrant) undo(token, owner string) []any {
	f.t.Helper()
	return f.queued(script.Reentrant.Undo, token, owner)
}

func (f reentrant) renew(token, owner, ttl string) []any {
	f.t.Helper()
	return f.run(script.Reentrant.Renew, reentrantKeys(script.Reentrant.Renew, false), token, ttl, fenceTTL, owner)
}

// hash is what stands at the lock's key.
func (f reentrant) hash() map[string]string {
	f.t.Helper()
	return f.Client().HGetAll(f.t.Context(), lock).Val()
}

// requireHold checks all that stands there: a hold's token, its owner, and his entries.
func (f reentrant) requireHold(tok, owner string, entries ...string) {
	f.t.Helper()
	want := map[string]string{"tok": tok, owner: strconv.Itoa(len(entries))}
	for _, entry := range entries {
		want[entry] = owner
	}
	got := f.hash()
	delete(got, "rl1:passed")
	require.Equal(f.t, want, got)
}

func (f reentrant) order() []string {
	f.t.Helper()
	return f.Client().LRange(f.t.Context(), entriesQueue, 0, -1).Val()
}

func (f reentrant) fence() int { f.t.Helper(); return f.number(entriesFence) }

func TestAReentrantLockIsEnteredAgain(t *testing.T) {
	for name, acquire := range map[string]func(f reentrant, token, owner string, unresolved ...string) []any{"queue": reentrant.acquire, "no queue": reentrant.poll} {
		t.Run(name, func(t *testing.T) {
			f := startReentrant(t)
			before := f.micros()
			reply := acquire(f, first, ann)
			number := f.fence()
			require.Equal(t, []any{1, number, 1}, reply)
			require.GreaterOrEqual(t, number, before)
			f.requireHold(first, ann, first)
			f.left(lock, 10*time.Second)
			f.left(entriesFence, 600*time.Second)

			require.Equal(t, []any{1, number, 2}, acquire(f, second, ann), "it keeps its fencing token")
			require.Equal(t, []any{1, number, 3}, acquire(f, third, ann))
			f.requireHold(first, ann, first, second, third)
			require.Equal(t, []string{lock, entriesFence}, f.Keys(), "and takes no place")

			refused := acquire(f, other, bob)
			require.Equal(t, 0, refused[0])
			require.InDelta(t, 10_000, refused[1], 2000)
			require.Equal(t, 1, refused[2], "those who wait will hear of the release")
		})
	}
}

func TestAnEntryIsCountedOnce(t *testing.T) {
	f := startReentrant(t)
	for range 3 {
		require.Equal(t, 1, f.acquire(first, ann)[2])
	}
	for range 3 {
		require.Equal(t, 2, f.acquire(second, ann)[2])
	}
	f.requireHold(first, ann, first, second)
	require.Equal(t, []any{1}, f.release(second, ann))
	for range 3 {
		require.Equal(t, []any{2}, f.release(second, ann), "it is gone, though its owner still holds the lock")
		require.Equal(t, []any{2}, f.undo(second, ann))
	}
	f.requireHold(first, ann, first)
	require.Equal(t, []any{1}, f.release(first, ann))
	require.Equal(t, []any{2}, f.release(first, ann))
	require.Equal(t, []string{entriesFence}, f.Keys())

	f.acquire(third, bob)
	require.Equal(t, []any{0}, f.release(first, ann))
	f.requireHold(third, bob, third)
}

func TestTheEntriesOfAHoldEndInAnyOrder(t *testing.T) {
	for _, order := range [][]string{{first, second, third}, {third, second, first}, {second, first, third}} {
		f := startReentrant(t)
		f.acquire(first, ann)
		f.acquire(second, ann)
		f.acquire(third, ann)
		require.Equal(t, []any{1}, f.release(order[0], ann))
		require.Equal(t, []any{1}, f.undo(order[1], ann))
		f.requireHold(first, ann, order[2])
		require.Equal(t, 0, f.acquire(other, bob)[0])
		require.Equal(t, []any{1}, f.release(order[2], ann))
		f.requireHold(other, bob, other)
	}
}

func TestNoEntryShortensTheHold(t *testing.T) {
	f := startReentrant(t)
	f.acquire(first, ann)
	require.Equal(t, []any{1}, f.renew(first, ann, "60000"))
	f.left(lock, time.Minute)
	f.acquire(second, ann)
	require.Equal(t, []any{1}, f.renew(second, ann, "20000"))
	f.release(first, ann)
	f.left(lock, time.Minute)
	require.Equal(t, []any{2}, f.renew(first, ann, "90000"), "what was released can't be renewed")
	f.left(lock, time.Minute)
	require.Equal(t, []any{0}, f.renew(other, bob, "90000"))
	f.Do("DEL", lock)
	require.Equal(t, []any{2}, f.renew(second, ann, ttl))
	require.Equal(t, []string{entriesFence}, f.Keys())
}

// The hold of one who asked for no fencing token has none. An entry that asks for one gets a new one: not that of
// an earlier hold.
func TestFencingOfAHoldThatBeganWithout(t *testing.T) {
	f := startReentrant(t)
	f.acquire(other, bob)
	earlier := f.fence()
	f.release(other, bob)
	unfenced := func(token string) []any {
		return f.queued(script.Reentrant.Acquire, token, ttl, noFencing, "", "c1", "1", "3000", ann)
	}
	require.Equal(t, []any{1, 0, 1}, unfenced(first))
	require.Equal(t, earlier, f.fence())
	reply := f.acquire(second, ann)
	require.Greater(t, reply[1], earlier)
	require.Equal(t, []any{1, reply[1], 3}, f.acquire(third, ann), "from then on it is the hold's")
	require.Equal(t, []any{1, 0, 4}, unfenced(mine))

	f.Do("DEL", entriesFence)
	require.Equal(t, 1, f.acquire(third, ann)[0])
	require.Greater(t, f.fence(), reply[1], "a counter that got lost")
}

func TestProposedFencingTokens(t *testing.T) {
	f := startReentrant(t)
	propose := func(token, owner string, proposed int) int {
		reply := f.run(script.Reentrant.Acquire, reentrantKeys(script.Reentrant.Acquire, false), token, ttl, fenceTTL, strconv.Itoa(proposed), owner)
		require.Equal(t, 1, reply[0])
		return reply[1].(int)
	}
	ahead := f.micros() + 30_000_000
	require.Equal(t, ahead, propose(first, ann, ahead))
	require.Equal(t, ahead, propose(second, ann, ahead+5), "a hold keeps its fencing token")
	f.run(script.Reentrant.Force, []string{lock}, script.Digest(first[4:26]))
	require.Equal(t, ahead+1, propose(other, bob, 1))
}

func TestWhatEarlierAttemptsHaveLeftInAReentrantLock(t *testing.T) {
	t.Run("all of it", func(t *testing.T) {
		f := startReentrant(t)
		f.acquire(first, ann)
		number := f.fence()
		f.acquire(other, bob)
		reply := f.acquire(second, ann, first, third)
		require.Equal(t, []any{1, f.fence(), 1}, reply, "it was held by nobody else, so nobody is overtaken")
		require.Greater(t, reply[1], number)
		f.requireHold(second, ann, second)
		require.Equal(t, []string{other}, f.order())
	})
	t.Run("an entry", func(t *testing.T) {
		f := startReentrant(t)
		f.acquire(first, ann)
		f.acquire(second, ann)
		require.Equal(t, []any{1, f.fence(), 2}, f.acquire(third, ann, first))
		f.requireHold(first, ann, second, third)
	})
	t.Run("another owner's", func(t *testing.T) {
		f := startReentrant(t)
		f.acquire(first, ann)
		f.acquire(second, ann)
		require.Equal(t, 0, f.acquire(other, bob, first)[0])
		f.requireHold(first, ann, second)
		require.Equal(t, 1, f.acquire(other, bob, second)[0])
		f.requireHold(other, bob, other)
	})
	t.Run("its own", func(t *testing.T) {
		f := startReentrant(t)
		f.acquire(first, ann)
		number := f.fence()
		require.Equal(t, []any{1, number, 1}, f.acquire(first, ann, first))
		f.requireHold(first, ann, first)
	})
}

func TestReentrantRaise(t *testing.T) {
	f := startReentrant(t)
	raise := func(token, owner string, number int) []any {
		return f.run(script.Reentrant.Raise, []string{lock, entriesFence}, token, strconv.Itoa(number), fenceTTL, owner)
	}
	f.acquire(first, ann)
	number := f.fence()
	require.Equal(t, []any{1}, raise(first, ann, number+7))
	require.Equal(t, number+7, f.fence())
	require.Equal(t, []any{1}, raise(first, ann, number))
	require.Equal(t, number+7, f.fence(), "never down")
	require.Equal(t, []any{1, number + 7, 2}, f.acquire(second, ann))
	require.Equal(t, []any{2}, raise(third, ann, number+9))
	require.Equal(t, []any{0}, raise(third, bob, number+9))
	f.Do("DEL", lock)
	require.Equal(t, []any{2}, raise(first, ann, number+9))
	require.Equal(t, number+7, f.fence())
}

func TestReentrantRegrant(t *testing.T) {
	f := startReentrant(t)
	regrant := func(token, owner string, keys ...string) []any {
		return f.run(script.Reentrant.Regrant, append([]string{lock}, keys...), token, ttl, "1234567", fenceTTL, owner)
	}
	for range 2 {
		require.Equal(t, []any{1, 1234567}, regrant(first, ann, entriesFence))
		f.requireHold(first, ann, first)
	}
	f.left(lock, 10*time.Second)
	f.left(entriesFence, 600*time.Second)
	require.Equal(t, []any{1, 1234567}, regrant(second, ann, entriesFence))
	f.requireHold(first, ann, first, second)
	refused := regrant(other, bob, entriesFence)
	require.Equal(t, 0, refused[0])
	require.InDelta(t, 10_000, refused[1], 2000)

	f.Do("FLUSHALL")
	require.Equal(t, []any{1, 0}, regrant(first, ann))
	require.Equal(t, []string{lock}, f.Keys())
	require.Equal(t, []any{1, 1234567}, regrant(second, ann, entriesFence), "a hold without a fencing token gets one")
	require.Equal(t, []any{1, 1234567, 3}, f.poll(third, ann))
}

func TestReentrantInspect(t *testing.T) {
	f := startReentrant(t)
	require.Equal(t, []any{2, 0, 0, 0}, f.queued(script.Reentrant.Inspect))
	f.acquire(first, ann)
	f.acquire(second, ann)
	f.release(first, ann)
	f.acquire(other, bob)
	reply := f.queued(script.Reentrant.Inspect)
	require.InDelta(t, 10_000, reply[2], 2000)
	require.Equal(t, []any{1, first, reply[2], f.fence(), 1, reply[5], ann, 1}, reply)
}

func TestReentrantForce(t *testing.T) {
	f := startReentrant(t)
	force := func(secret string) []any { return f.queued(script.Reentrant.Force, script.Digest(secret)) }
	require.Equal(t, []any{2}, force(""))
	f.acquire(first, ann)
	f.acquire(second, ann)
	require.Equal(t, []any{0}, force(second[4:26]), "it is the hold's token that counts")
	ear := listen(t, f.Client(), "redisson_*")
	require.Equal(t, []any{1}, force(first[4:26]))
	require.Equal(t, []string{redissonChannel + " 0", "redlock:released:orders reentrant"}, ear.heard())
	require.Equal(t, []any{2}, f.release(first, ann))
	require.Equal(t, []any{2}, f.release(second, ann))

	f.acquire(first, ann)
	f.acquire(other, bob)
	ear.heard()
	require.Equal(t, []any{1}, force(first[4:26]))
	f.requireHold(other, bob, other)
	require.Len(t, ear.heard(), 2, "Redisson and who waits")
}

// An owner's name may be anything but what the machine keeps for itself.
func TestNamesOfOwners(t *testing.T) {
	f := startReentrant(t)
	for _, owner := range []string{"mode", "", " ", "a b", "100%", "7", "{orders}", "a|b\x00\xff\n", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", strings.Repeat("long ", 100)} {
		require.Equal(t, 1, f.acquire(first, bob)[0])
		require.Equal(t, 0, f.acquire(second, owner)[0])
		require.Equal(t, []any{1}, f.release(first, bob))
		f.requireHold(second, owner, second)
		require.Equal(t, []any{1, f.fence(), 1}, f.beat(second, owner))
		require.Equal(t, []any{1, f.fence(), 2}, f.acquire(third, owner), "%q", owner)
		require.Equal(t, owner, f.queued(script.Reentrant.Inspect)[6])
		require.Equal(t, []any{1}, f.release(second, owner))
		require.Equal(t, []any{1}, f.release(third, owner))
		require.Empty(t, f.hash())
	}
}

// reentrantCalls are arguments for each script with which it does its work.
var reentrantCalls = map[*script.Script][]string{
	script.Reentrant.Acquire: {first, ttl, fenceTTL, "", "c1", "1", "3000", ann},
	script.Reentrant.Beat:    {first, ttl, fenceTTL, "c1", "1", "3000", ann},
	script.Reentrant.Raise:   {first, "100", fenceTTL, ann},
	script.Reentrant.Renew:   {first, ttl, fenceTTL, ann},
	script.Reentrant.Regrant: {first, ttl, "100", fenceTTL, ann},
	script.Reentrant.Release: {first, ann},
	script.Reentrant.Undo:    {first, ann},
	script.Reentrant.Inspect: nil,
	script.Reentrant.Force:   {script.Digest("x")},
}

func TestWrongKindsForAReentrantLock(t *testing.T) {
	f := startReentrant(t)
	kinds := maps.Clone(puts)
	delete(kinds, "hash")
	for kind := range kinds {
		put(f.fixture, kind, lock)
		f.requireWrongKind(kind)
	}
	f.Do("SET", lock, first)
	f.requireWrongKind("string")
	for _, fields := range [][]any{
		{"name", "Ann"}, {"a", "1", "b", "1"}, {"tok", "1"}, {"tok", "rl2:x", ann, "1"}, {"mode", "x"}, {ann, "-1"}, {ann, ""},
	} {
		f.Do(append([]any{"HSET", lock}, fields...)...)
		f.requireWrongKind("hash")
	}
	for _, mode := range []string{"read", "write"} {
		f.Do("HSET", lock, "mode", mode, "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1")
		f.requireWrongKind("read-write lock of Redisson")
		f.Do("HSET", lock, "mode", mode, "tok", first, first, ann, ann, "1")
		f.requireWrongKind("read-write lock of Redisson") // which has come over one of ours
	}
}

// requireWrongKind calls all scripts, which leave what stands there alone, and removes it.
func (f reentrant) requireWrongKind(what string) {
	f.t.Helper()
	before := f.Do("DUMP", lock)
	for s, args := range reentrantCalls {
		want := []any{3, what}
		if s == script.Reentrant.Undo {
			want = []any{2} // nothing of ours is here
		}
		require.Equal(f.t, want, f.queued(s, args...), "%s", s.Name)
	}
	require.Equal(f.t, before, f.Do("DUMP", lock))
	require.Equal(f.t, []string{lock}, f.Keys())
	f.Do("DEL", lock)
}

// A server without memory can still give locks back, and hand them over.
func TestAReentrantLockWithoutMemory(t *testing.T) {
	f := startReentrant(t)
	f.acquire(first, ann)
	f.acquire(second, ann)
	f.acquire(other, bob)
	f.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	f.Do("CONFIG", "SET", "maxmemory", "1")
	for _, s := range []*script.Script{script.Reentrant.Acquire, script.Reentrant.Regrant} {
		args := append([]string{third}, reentrantCalls[s][1:]...)
		_, err := f.try(s, reentrantKeys(s, true), args...)
		require.ErrorContains(t, err, "OOM", s.Name)
	}
	require.Equal(t, []any{1}, f.renew(first, ann, "20000"))
	require.Equal(t, []any{1}, f.release(first, ann))
	f.requireHold(first, ann, second)
	require.Equal(t, []any{1}, f.undo(second, ann))
	f.requireHold(other, bob, other)
	require.Equal(t, []any{1}, f.queued(script.Reentrant.Force, script.Digest("BBBBBBBBBBBBBBBBBBBBBB")))
	require.Equal(t, []string{entriesFence}, f.Keys())
}

func TestAReentrantReleaseThatCannotBePublished(t *testing.T) {
	f := startReentrant(t)
	f.acquire(first, ann)
	f.Do("ACL", "SETUSER", "default", "resetchannels")
	reply := f.release(first, ann)
	require.Equal(t, []any{1, 0}, reply[:2])
	require.Contains(t, reply[2], "can't publish to the channel")
	require.Empty(t, f.hash())
}
