package testredis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/testredis"
)

func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	options.MaxRetries = -1
	options.DialTimeout = 300 * time.Millisecond
	options.ReadTimeout = 300 * time.Millisecond
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestServerLifeCycle(t *testing.T) {
	ctx := context.Background()
	s := testredis.Start(t)
	client := dial(t, s.URL)
	require.NoError(t, client.Set(ctx, "b", 1, 0).Err())
	require.NoError(t, dial(t, s.UnixURL).Set(ctx, "a", 1, 0).Err())
	require.Equal(t, []string{"a", "b"}, s.Keys())

	s.Pause()
	require.Error(t, client.Ping(ctx).Err())
	s.Resume()
	require.NoError(t, client.Ping(ctx).Err())

	s.Stop()
	require.False(t, s.Running())
	require.ErrorIs(t, client.Ping(ctx).Err(), syscall.ECONNREFUSED)
	s.Restart()
	require.True(t, s.Running())
	require.Eventually(t, func() bool { return client.Ping(ctx).Err() == nil }, 2*time.Second, time.Millisecond)
	require.Empty(t, s.Keys())
}

func TestServersAreIndependent(t *testing.T) {
	servers := testredis.StartN(t, 3)
	servers[1].Do("SET", "only", "here")
	require.Empty(t, servers[0].Keys())
	require.Equal(t, []string{"only"}, servers[1].Keys())
	require.Len(t, testredis.URLs(servers), 3)
}

func TestServerWithPassword(t *testing.T) {
	s := testredis.Start(t, "--requirepass", "secret")
	require.Empty(t, s.Keys())
	require.ErrorContains(t, dial(t, s.URL).Ping(context.Background()).Err(), "NOAUTH")
}

func TestFakeNodes(t *testing.T) {
	ctx := context.Background()
	var timeout net.Error
	require.ErrorIs(t, dial(t, testredis.Refusing(t)).Ping(ctx).Err(), syscall.ECONNREFUSED)
	err := dial(t, testredis.Hanging(t)).Ping(ctx).Err()
	require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
	require.Error(t, dial(t, testredis.Garbage(t)).Ping(ctx).Err())

	wrong := dial(t, testredis.WrongType(t))
	require.NoError(t, wrong.Ping(ctx).Err())
	for range 12 {
		reply, err := wrong.EvalSha(ctx, "0", nil).Result()
		require.True(t, err == nil || err == redis.Nil, "a reply of the wrong type is no error: %v %v", reply, err)
	}
}

func TestProxyPasses(t *testing.T) {
	s := testredis.Start(t)
	client := dial(t, testredis.StartProxy(t, s).URL)
	reply, err := client.Eval(context.Background(), "return {1, ARGV[1], {2, false}}", nil, "a\r\nb").Result()
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), "a\r\nb", []any{int64(2), nil}}, reply)
}

func TestProxyFaults(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		fault    testredis.Fault
		executed int64
		timeout  bool
	}{
		{testredis.CutBefore, 1, false},
		{testredis.CutAfter, 2, false},
		{testredis.Stall, 2, true},
		{testredis.Swallow, 1, true},
	} {
		s := testredis.Start(t)
		sha, err := s.Client().ScriptLoad(ctx, "return redis.call('INCR', 'n')").Result()
		require.NoError(t, err)
		client := dial(t, testredis.Dying(t, s, test.fault, 2).URL)
		require.NoError(t, client.EvalSha(ctx, sha, nil).Err())
		err = client.EvalSha(ctx, sha, nil).Err()
		require.Error(t, err)
		var network net.Error
		require.Equal(t, test.timeout, errors.As(err, &network) && network.Timeout(), "fault %d: %v", test.fault, err)
		executed, err := s.Client().Get(ctx, "n").Int64()
		require.NoError(t, err)
		require.Equal(t, test.executed, executed, "fault %d", test.fault)
		require.NoError(t, client.EvalSha(ctx, sha, nil).Err(), "only one command is hit")
	}
}

func TestProxyDelaysAndHooks(t *testing.T) {
	ctx := context.Background()
	p := testredis.StartProxy(t, testredis.Start(t))
	var gets atomic.Int64
	p.Hook(func(args []string) testredis.Fault {
		if strings.EqualFold(args[0], "get") {
			gets.Add(1)
		}
		return testredis.Pass
	})
	client := dial(t, p.URL)
	client.Get(ctx, "x")
	require.EqualValues(t, 1, gets.Load())
	p.Delay(30 * time.Millisecond)
	start := time.Now()
	client.Get(ctx, "x")
	require.GreaterOrEqual(t, time.Since(start), 60*time.Millisecond)
}
