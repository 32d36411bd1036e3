package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// redisson does to the server what Redisson does, as far as it is known: what its RLock and its read-write lock do to a
// lock's key, in short. tests/peers has the real one.
type redisson struct{ reentrant }

const (
	// An owner's field is counted up if it is there, or if nothing is.
	redissonLock = `if redis.call("EXISTS", KEYS[1]) == 1 and redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return redis.call("PTTL", KEYS[1]) end
redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return "held"`

	// It is counted down, and at 0 the hash is deleted and the channel told. Since 3.24 what came of it is kept for a while.
	redissonUnlock = `if KEYS[2] and redis.call("EXISTS", KEYS[2]) == 1 then return tonumber(redis.call("GET", KEYS[2])) end
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return nil end
local last = redis.call("HINCRBY", KEYS[1], ARGV[1], -1) <= 0
if last then
  redis.call("DEL", KEYS[1])
  redis.call("PUBLISH", ARGV[3], 0)
else
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
if KEYS[2] then redis.call("SET", KEYS[2], last and 1 or 0, "PX", 15000) end
return last and 1 or 0`

	redissonRenew = `if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("PEXPIRE", KEYS[1], ARGV[2])`

	redissonForce = `if redis.call("DEL", KEYS[1]) == 0 then return 0 end
redis.call("PUBLISH", ARGV[1], 0)
return 1`

	// Its read-write lock asks for the field "mode" first, and writes it if there is none.
	redissonWriteLock = `local mode = redis.call("HGET", KEYS[1], "mode")
if mode and not (mode == "write" and redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1) then return redis.call("PTTL", KEYS[1]) end
redis.call("HSET", KEYS[1], "mode", "write")
redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return "held"`
)

const (
	theirs     = "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
	theirsToo  = "8743c9c0-0795-4907-87fd-6c719a6b4586:62"
	unlockOnce = "redisson_unlock_latch:{orders}:0a1b"
)

func (r redisson) eval(source string, keys []string, args ...any) any {
	r.t.Helper()
	reply, err := r.Client().Eval(r.t.Context(), source, keys, args...).Result()
	if err != redis.Nil {
		require.NoError(r.t, err)
	}
	return reply
}

func (r redisson) lock(owner string) any {
	r.t.Helper()
	return r.eval(redissonLock, []string{lock}, owner, "30000")
}

func (r redisson) unlock(owner string) any {
	r.t.Helper()
	return r.eval(redissonUnlock, []string{lock}, owner, "30000", redissonChannel)
}

func (r redisson) renew(owner, ttl string) any {
	r.t.Helper()
	return r.eval(redissonRenew, []string{lock}, owner, ttl)
}

func startRedisson(t *testing.T) (reentrant, redisson) {
	f := startReentrant(t)
	return f, redisson{f}
}

func TestOursKeepsRedissonOut(t *testing.T) {
	f, r := startRedisson(t)
	f.acquire(first, ann)
	f.acquire(second, ann)
	before := f.Do("DUMP", lock)
	require.InDelta(t, 10_000, r.lock(theirs), 2000, "it is told for how long")
	require.Nil(t, r.unlock(theirs))
	require.EqualValues(t, 0, r.renew(theirs, "90000"))
	require.Equal(t, before, f.Do("DUMP", lock))
	f.left(lock, 10*time.Second)

	f.release(first, ann)
	require.InDelta(t, 10_000, r.lock(theirs), 2000)
	f.release(second, ann)
	require.Equal(t, "held", r.lock(theirs))
	require.Equal(t, map[string]string{theirs: "1"}, f.hash(), "nothing of ours is in it")
}

func TestRedissonsKeepsUsOut(t *testing.T) {
	f, r := startRedisson(t)
	require.Equal(t, "held", r.lock(theirs))
	require.Equal(t, "held", r.lock(theirs))
	before := f.Do("DUMP", lock)
	for _, owner := range []string{ann, theirs} { // even if it is named like ours: what it has is not ours to count
		refused := f.acquire(first, owner)
		requireRefused(t, refused, 30_000, 2)
		requireRefused(t, f.beat(first, owner), 30_000, 2)
		refused = f.poll(second, owner)
		require.InDelta(t, 30_000, refused[1], 2000)
		require.Equal(t, []any{0, refused[1], 2, 0, script.Digest(theirs)[:16]}, refused)
		require.Equal(t, []any{0}, f.release(first, ann))
		require.Equal(t, []any{1}, f.undo(first, owner), "its place")
		require.Equal(t, []any{2}, f.undo(first, owner))
		require.Equal(t, 0, f.run(script.Reentrant.Regrant, []string{lock, entriesFence}, first, ttl, "1", fenceTTL, owner)[0])
	}
	require.Equal(t, []any{0}, f.renew(first, ann, "90000"))
	require.Equal(t, []any{0}, f.run(script.Reentrant.Raise, []string{lock, entriesFence}, first, "1", fenceTTL, ann))
	require.Equal(t, before, f.Do("DUMP", lock))
	f.left(lock, 30*time.Second)
	reply := f.queued(script.Reentrant.Inspect)
	require.InDelta(t, 30_000, reply[2], 2000)
	require.Equal(t, []any{1, theirs, reply[2], 0, 0, 0, theirs, 2}, reply)

	f.acquire(first, ann)
	require.EqualValues(t, 0, r.unlock(theirs))
	requireRefused(t, f.beat(first, ann), 30_000, 2)
	require.EqualValues(t, 1, r.unlock(theirs))
	require.Equal(t, []any{1, f.fenceAfterBeat(first, ann), 1}, f.beat(first, ann), "its head asks, and has it")
	f.requireHold(first, ann, first)
}

// fenceAfterBeat is the fencing token that a waiter's beat has taken the lock with.
func (f reentrant) fenceAfterBeat(token, owner string) int {
	f.t.Helper()
	require.Equal(f.t, 1, f.beat(token, owner)[0])
	return f.fence()
}

func TestRedissonHearsOfOurReleases(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(f reentrant)
		heard []string
	}{
		"release": {func(f reentrant) { f.release(first, ann) }, []string{redissonChannel + " 0"}},
		"undo":    {func(f reentrant) { f.undo(first, ann) }, []string{redissonChannel + " 0"}},
		"without a queue": {
			func(f reentrant) { f.run(script.Reentrant.Release, []string{lock}, first, ann) },
			[]string{redissonChannel + " 0", "redlock:released:orders reentrant"},
		},
		"one of two entries": {func(f reentrant) { f.acquire(second, ann); f.release(first, ann) }, nil},
		"handed over": { // whoever gets it may hold it for less than Redisson's waiters have been told
			func(f reentrant) { f.acquire(other, bob); f.release(first, ann) },
			[]string{redissonChannel + " 0", "redlock:wake:client bob reentrant " + other},
		},
		"nothing to release": {func(f reentrant) { f.release(second, ann); f.undo(third, ann); f.release(other, bob) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := startReentrant(t)
			f.acquire(first, ann)
			ear := listen(t, f.Client(), "redisson_*")
			test.end(f)
			heard := ear.heard()
			require.Len(t, heard, len(test.heard))
			for i, want := range test.heard {
				require.True(t, strings.HasPrefix(heard[i], want), heard[i])
			}
		})
	}
}

func TestRedissonsChannel(t *testing.T) {
	f := startReentrant(t)
	for name, channel := range map[string]string{
		"a b": "redisson_lock__channel:{a b}", "{a}b": "redisson_lock__channel:{a}b", "a{": "redisson_lock__channel:a{", "a}": "redisson_lock__channel:{a}}",
	} {
		for _, subscribe := range []func(...string) *redis.PubSub{
			func(c ...string) *redis.PubSub { return f.Client().Subscribe(t.Context(), c...) },
			func(c ...string) *redis.PubSub { return f.Client().SSubscribe(t.Context(), c...) }, // as it does on a cluster
		} {
			pubsub := subscribe(channel)
			_, err := pubsub.Receive(t.Context())
			require.NoError(t, err)
			f.run(script.Reentrant.Acquire, []string{name}, first, ttl, noFencing, "", ann)
			require.Equal(t, []any{1, 0}, f.run(script.Reentrant.Release, []string{name}, first, ann), "Redisson's are not counted")
			message, err := pubsub.ReceiveMessage(t.Context())
			require.NoError(t, err)
			require.Equal(t, "0", message.Payload)
			require.NoError(t, pubsub.Close())
		}
	}
}

func TestRedissonTakesOursByForce(t *testing.T) {
	f, r := startRedisson(t)
	f.acquire(first, ann)
	f.acquire(second, ann)
	f.acquire(other, bob)
	require.EqualValues(t, 1, r.eval(redissonForce, []string{lock}, redissonChannel))
	require.Equal(t, []any{2}, f.renew(second, ann, ttl))
	require.Equal(t, []any{2}, f.release(first, ann), "which hands over what it finds free")
	f.requireHold(other, bob, other)
}

func TestWeTakeRedissonsByForce(t *testing.T) {
	f, r := startRedisson(t)
	r.lock(theirs)
	ear := listen(t, f.Client(), "redisson_*")
	require.Equal(t, []any{0}, f.queued(script.Reentrant.Force, script.Digest(theirsToo)))
	require.Equal(t, []any{1}, f.queued(script.Reentrant.Force, script.Digest(theirs)))
	require.Equal(t, redissonChannel+" 0", ear.heard()[0])
	require.Nil(t, r.unlock(theirs))
	require.Equal(t, "held", r.lock(theirsToo))
}

// Redisson's unlock of 3.24 and later remembers what came of it beside the lock, and may be repeated.
func TestRedissonsLatch(t *testing.T) {
	f, r := startRedisson(t)
	r.lock(theirs)
	for range 3 {
		require.EqualValues(t, 1, r.eval(redissonUnlock, []string{lock, unlockOnce}, theirs, "30000", redissonChannel))
		require.Equal(t, 1, f.acquire(first, ann)[0], "a repeated one leaves ours alone")
		f.requireHold(first, ann, first)
	}
}

// An owner that has the name of one of Redisson's: it can enter what is ours, and what it did not enter is left.
func TestAnOwnerThatRedissonHasToo(t *testing.T) {
	f, r := startRedisson(t)
	f.acquire(first, theirs)
	require.Equal(t, "held", r.lock(theirs))
	require.Equal(t, []any{1}, f.release(first, theirs))
	require.Equal(t, map[string]string{"tok": first, theirs: "1"}, f.hash())
	require.Equal(t, []any{1, f.fence(), 2}, f.acquire(second, theirs))
	require.Equal(t, []any{1}, f.undo(second, theirs))
	requireRefused(t, f.acquire(other, bob), 30_000, 1)
	require.EqualValues(t, 1, r.unlock(theirs))
	require.Empty(t, f.hash())
}

func TestRedissonsReadWriteLockIsAnotherKind(t *testing.T) {
	f, r := startRedisson(t)
	require.Equal(t, "held", r.eval(redissonWriteLock, []string{lock}, theirs+":write", "30000"))
	f.requireWrongKind("read-write lock of Redisson")

	f.acquire(first, ann)
	f.Do("DEL", entriesFence)
	r.eval(redissonWriteLock, []string{lock}, theirs+":write", "30000") // which does not see that it comes over another kind
	f.requireWrongKind("read-write lock of Redisson")
}

// Redisson's waiters have no place in the queue. After 16 hand-overs in a row they may come first, if there are any.
func TestRedissonsTurn(t *testing.T) {
	const most = 16
	f, r := startRedisson(t)
	owners, tokens := []string{ann, bob}, []string{first, second}
	f.acquire(tokens[0], owners[0])
	pass := func(i int) { // the one that holds it gives it to the other
		t.Helper()
		f.acquire(tokens[(i+1)%2], owners[(i+1)%2])
		require.Equal(t, []any{1}, f.release(tokens[i%2], owners[i%2]))
	}
	for i := range 3 * most {
		pass(i)
		f.requireHold(tokens[(i+1)%2], owners[(i+1)%2], tokens[(i+1)%2])
	}
	pubsub := f.Client().Subscribe(t.Context(), redissonChannel)
	defer pubsub.Close()
	_, err := pubsub.Receive(t.Context())
	require.NoError(t, err)
	pass(0)
	require.Empty(t, f.hash(), "it is left free")
	require.Equal(t, []string{second}, f.order())
	require.Equal(t, "held", r.lock(theirs))
	requireRefused(t, f.beat(second, bob), 30_000, 2)
	require.EqualValues(t, 1, r.unlock(theirs))

	require.Equal(t, 1, f.beat(second, bob)[0], "that was a hand-over")
	for i := 1; i < most; i++ {
		pass(i)
		require.NotEmpty(t, f.hash(), "after %d", i)
	}
	pass(most)
	require.Empty(t, f.hash(), "once in 16")
	require.Equal(t, []any{2}, f.release(third, ann), "anybody who comes by hands it over")
	require.NotEmpty(t, f.hash())
}
