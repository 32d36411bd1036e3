package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// puts makes a key of every type that Redis has, but for strings.
var puts = map[string][]any{
	"list":   {"RPUSH", "1"},
	"set":    {"SADD", "1"},
	"zset":   {"ZADD", "1", "1"},
	"hash":   {"HSET", "1", "1"},
	"stream": {"XADD", "*", "1", "1"},
}

func put(f *fixture, kind, key string) {
	f.t.Helper()
	command := puts[kind]
	f.Do(append([]any{command[0], key}, command[1:]...)...)
}

// calls are arguments for each script with which it does its work.
var calls = map[*script.Script]struct{ keys, args []string }{
	script.MutexAcquire: {both(), []string{mine, ttl, fenceTTL, ""}},
	script.MutexRaise:   {both(), []string{mine, "100", fenceTTL}},
	script.MutexRenew:   {both(), []string{mine, ttl, fenceTTL}},
	script.MutexRegrant: {both(), []string{mine, ttl, "100", fenceTTL}},
	script.MutexBeat:    {all(), []string{mine, ttl, fenceTTL, "c1", "1", "3000"}},
	script.MutexRelease: {all(), []string{mine}},
	script.MutexUndo:    {all(), []string{mine}},
	script.MutexInspect: {all(), nil},
	script.MutexForce:   {all(), []string{script.Digest("x")}},
}

func TestWrongKinds(t *testing.T) {
	f := start(t)
	for kind := range puts {
		put(f, kind, lock)
		before := f.Do("DUMP", lock)
		for _, s := range mutexScripts {
			want := []any{3, kind}
			if s == script.MutexUndo {
				want = []any{2} // nothing of ours is here
			}
			require.Equal(t, want, f.run(s, calls[s].keys, calls[s].args...), "%s on a %s", s.Name, kind)
		}
		require.Equal(t, before, f.Do("DUMP", lock), "a %s is left alone", kind)
		require.Equal(t, []string{lock}, f.Keys())
		f.Do("DEL", lock)
	}
}

// Nobody but us writes there. If somebody does, the script fails and the machine undoes what it left.
func TestWrongKindOfFenceCounter(t *testing.T) {
	f := start(t)
	for kind := range puts {
		put(f, kind, fence)
		for _, s := range []*script.Script{script.MutexAcquire, script.MutexRegrant, script.MutexRaise, script.MutexInspect} {
			_, err := f.try(s, calls[s].keys, calls[s].args...)
			require.ErrorContains(t, err, "WRONGTYPE", "%s with a %s as its counter", s.Name, kind)
		}
		require.Equal(t, []any{1}, f.run(script.MutexUndo, []string{lock}, mine))
		f.Do("DEL", fence)
	}
}

// The same with the queue. A lock that is given up is free all the same.
func TestWrongKindsOfTheQueue(t *testing.T) {
	f := start(t)
	for kind := range puts {
		for _, key := range []string{queue, places} {
			if kind == map[string]string{queue: "list", places: "hash"}[key] {
				continue
			}
			f.Do("FLUSHALL")
			f.enqueue(holder)
			f.enqueue(first)
			f.Do("DEL", key)
			put(f, kind, key)
			_, err := f.try(script.MutexAcquire, all(), queued(second, "c1")...)
			require.ErrorContains(t, err, "WRONGTYPE", "a %s at %s", kind, key)
			require.Equal(t, []any{1}, f.run(script.MutexRelease, all(), holder))
			require.Nil(t, f.get(lock))

			f.Do("SET", lock, "x")
			require.Equal(t, []any{1}, f.run(script.MutexForce, all(), script.Digest("x")))
			require.Nil(t, f.get(lock))

			f.Do("SET", lock, first)
			_, _ = f.try(script.MutexUndo, all(), first) // may fail behind the lock
			require.Nil(t, f.get(lock))
			require.Equal(t, kind, f.Do("TYPE", key))
		}
	}
}

// A hand-over that can't have its fencing token does not take place, and leaves all as it was.
func TestHandOverWithAWrongKindOfFenceCounter(t *testing.T) {
	f := start(t)
	f.Do("SET", lock, holder)
	f.enqueue(first)
	f.enqueue(second)
	put(f, "hash", fence)
	e := listen(t, f.Client())
	require.Equal(t, []any{1}, f.run(script.MutexRelease, all(), holder))
	require.Equal(t, []any{2}, f.run(script.MutexUndo, all(), holder))
	require.Equal(t, []any{2}, f.run(script.MutexForce, all(), script.Digest(holder)))
	_, err := f.try(script.MutexBeat, all(), second, ttl, fenceTTL, "c2", "1", "3000")
	require.ErrorContains(t, err, "WRONGTYPE")
	_, err = f.try(script.MutexAcquire, all(), queued(third, "c3")...)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Nil(t, f.get(lock))
	require.Equal(t, []string{first, second}, f.order())
	require.Empty(t, e.heard())

	f.Do("DEL", fence)
	requireRefused(t, f.beat(second), 3000, 1)
	require.Equal(t, first, f.get(lock))
}

// A server without memory can still give locks back.
func TestWithoutMemory(t *testing.T) {
	f := start(t)
	f.acquire(mine, ttl)
	full := func() {
		t.Helper()
		f.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
		f.Do("CONFIG", "SET", "maxmemory", "1")
	}
	full()
	_, err := f.try(script.MutexAcquire, []string{"another", fence}, mine, ttl, fenceTTL, "")
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, []any{1}, f.run(script.MutexRenew, both(), mine, "20000", fenceTTL), "a renewal writes nothing")
	require.Equal(t, []any{1}, f.run(script.MutexRelease, []string{lock}, mine))
	require.NotContains(t, strings.Join(f.Keys(), " "), "another")

	for _, s := range []*script.Script{script.MutexUndo, script.MutexForce} {
		f.Do("CONFIG", "SET", "maxmemory", "0")
		f.acquire(mine, ttl)
		full()
		argument := map[*script.Script]string{script.MutexUndo: mine, script.MutexForce: script.Digest("AAAAAAAAAAAAAAAAAAAAAA")}[s]
		require.Equal(t, []any{1}, f.run(s, []string{lock}, argument), s.Name)
	}
}

// It can also hand them over, as long as there is one to give up. Those who wait keep their order without it.
func TestQueueWithoutMemory(t *testing.T) {
	f := start(t)
	f.enqueue(holder)
	f.enqueue(first)
	f.enqueue(second)
	f.enqueue(third)
	f.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	f.Do("CONFIG", "SET", "maxmemory", "1")
	for _, s := range []*script.Script{script.MutexAcquire, script.MutexBeat} {
		_, err := f.try(s, all(), map[*script.Script][]string{
			script.MutexAcquire: queued("rl1:new", "c4"), script.MutexBeat: {second, ttl, fenceTTL, "c2", "1", "3000"},
		}[s]...)
		require.ErrorContains(t, err, "OOM", s.Name)
	}
	require.Equal(t, []string{first, second, third}, f.order())

	require.Equal(t, []any{1}, f.run(script.MutexRelease, all(), holder))
	require.Equal(t, first, f.get(lock))
	require.Equal(t, []any{1, f.number(fence)}, f.beat(first), "which confirms the hand-over")
	f.left(lock, 10*time.Second)
	require.Equal(t, []any{1}, f.run(script.MutexUndo, all(), first))
	require.Equal(t, second, f.get(lock))

	f.Do("DEL", lock)
	require.Equal(t, []any{2}, f.run(script.MutexRelease, all(), second), "nothing to give up, so nothing to write with")
	require.Equal(t, []string{third}, f.order())
	require.Equal(t, []any{1}, f.run(script.MutexUndo, all(), third))
	require.Equal(t, []string{fence}, f.Keys())
}
