package script_test

import (
	"strings"
	"testing"

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
	script.MutexRelease: {both()[:1], []string{mine}},
	script.MutexUndo:    {both()[:1], []string{mine}},
	script.MutexInspect: {both(), nil},
	script.MutexForce:   {both()[:1], []string{script.Digest("x")}},
}

func TestWrongKinds(t *testing.T) {
	f := start(t)
	for kind := range puts {
		put(f, kind, lock)
		before := f.Do("DUMP", lock)
		for _, s := range script.All {
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
