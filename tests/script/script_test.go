// Package script_test runs every script of core/script alone against a real server.
package script_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

const (
	lock  = "orders"
	fence = "{orders}:redlock:mutex:fence:orders"

	queue  = "{orders}:redlock:mutex:queue:orders"
	places = "{orders}:redlock:mutex:places:orders"

	mine  = "rl0:AAAAAAAAAAAAAAAAAAAAAA:host/1/go"
	other = "rl0:BBBBBBBBBBBBBBBBBBBBBB:host/2/py"

	ttl      = "10000"
	fenceTTL = "600000"
)

// fixture is a server of a test's own.
type fixture struct {
	*testredis.Server
	t *testing.T
}

func start(t *testing.T, args ...string) *fixture {
	return &fixture{testredis.Start(t, args...), t}
}

// run executes a script and gives back its reply, integers as int.
func (f *fixture) run(s *script.Script, keys []string, args ...string) []any {
	f.t.Helper()
	reply, err := f.try(s, keys, args...)
	require.NoError(f.t, err)
	return reply
}

func (f *fixture) try(s *script.Script, keys []string, args ...string) ([]any, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg
	}
	return evaluate(f.Client(), s, keys, values)
}

func evaluate(client *redis.Client, s *script.Script, keys []string, values []any) ([]any, error) {
	reply, err := client.Eval(context.Background(), s.Source, keys, values...).Slice()
	for i := range reply {
		if n, ok := reply[i].(int64); ok {
			reply[i] = int(n)
		}
	}
	return reply, err
}

func both() []string { return []string{lock, fence} }

// all are the keys of a lock with a queue.
func all() []string { return []string{lock, queue, places, fence} }

func (f *fixture) acquire(token, ttl string, more ...string) []any {
	f.t.Helper()
	return f.run(script.MutexAcquire, both(), append([]string{token, ttl, fenceTTL, ""}, more...)...)
}

func (f *fixture) get(key string) any { f.t.Helper(); return f.Do("GET", key) }

func (f *fixture) number(key string) int {
	f.t.Helper()
	n, err := strconv.Atoi(f.get(key).(string))
	require.NoError(f.t, err)
	return n
}

// left checks how long a key lives, give or take what the test itself takes.
func (f *fixture) left(key string, want time.Duration) {
	f.t.Helper()
	got := time.Duration(f.Do("PTTL", key).(int64)) * time.Millisecond
	require.InDelta(f.t, want, got, float64(2*time.Second), "the ttl of %s", key)
}

// micros is the server's clock.
func (f *fixture) micros() int {
	f.t.Helper()
	now, err := f.Client().Time(context.Background()).Result()
	require.NoError(f.t, err)
	return int(now.UnixMicro())
}

func TestEveryScriptIsFoundByItsSHA(t *testing.T) {
	f := start(t)
	for _, s := range script.All {
		sha, err := f.Client().ScriptLoad(context.Background(), s.Source).Result()
		require.NoError(t, err, s.Name)
		require.Equal(t, s.SHA, sha, s.Name)
	}
}

func TestDigestIsTheServersSHA1(t *testing.T) {
	f := start(t)
	for _, text := range []string{"", "AAAAAAAAAAAAAAAAAAAAAA", "\x00\xff"} {
		require.Equal(t, f.Do("EVAL", "return redis.sha1hex(ARGV[1])", 0, text), script.Digest(text))
	}
}
