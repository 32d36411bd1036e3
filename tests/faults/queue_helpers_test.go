package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

const (
	handedOverMost = 3 * time.Second // what a hand-over to a dead waiter costs
	slack          = 2 * time.Second // a busy machine
	replyLimit     = 20 * time.Second
)

// languages are those whose drivers block and can hammer.
var languages = []string{"go", "c", "python", "python-async"}

// beatPeriod is the time between two signs of life of a waiter.
func beatPeriod(ttl time.Duration) time.Duration { return min(time.Second, ttl/3) }

func queueKey(name string) string  { return "{" + name + "}:redlock:mutex:queue:" + name }
func placesKey(name string) string { return "{" + name + "}:redlock:mutex:places:" + name }

// launchers prepares all languages.
func launchers(t testing.TB) (all []*drivers.Launcher) {
	t.Helper()
	for _, language := range languages {
		all = append(all, drivers.PrepareProcess(t, language))
	}
	return all
}

// mortal lets a driver be killed: how such a process ends is no failure of the test.
type mortal struct {
	testing.TB
	killed atomic.Bool
}

func (m *mortal) Errorf(format string, args ...any) {
	if !m.killed.Load() {
		m.TB.Errorf(format, args...)
	}
}

// peer is a driver in a process of its own, with one client.
type peer struct {
	*drivers.Driver
	life    *mortal
	process int
}

func startPeer(t testing.TB, launcher *drivers.Launcher, server *testredis.Server) *peer {
	t.Helper()
	life := &mortal{TB: t}
	p := &peer{Driver: launcher.Start(life), life: life}
	p.must(t, "open", field("client", "c"), field("node", server.URL))
	reply := p.must(t, "acquire", field("client", "c"), field("held", "pid"), field("kind", "mutex"), field("name", "pid"))
	var err error
	p.process, err = strconv.Atoi(processOf(reply.Get("token")))
	require.NoError(t, err)
	p.must(t, "release", field("held", "pid"))
	t.Cleanup(func() {
		if !life.killed.Load() {
			p.resume(t)
		}
	})
	return p
}

func field(key, value string) line.Field { return line.Field{Key: key, Value: value} }

// processOf is whose token it is: "rl1:secret:host/pid/language".
func processOf(token string) string {
	words := strings.Split(token, "/")
	if len(words) < 3 {
		return ""
	}
	return words[1]
}

func (p *peer) pid() string { return strconv.Itoa(p.process) }

// says sends a request and gives the status of its reply.
func (p *peer) says(t testing.TB, verb string, fields ...line.Field) string {
	t.Helper()
	reply, err := p.Call(replyLimit, verb, fields...)
	require.NoError(t, err)
	return reply.Word
}

func (p *peer) must(t testing.TB, verb string, fields ...line.Field) *line.Line {
	t.Helper()
	reply, err := p.Call(replyLimit, verb, fields...)
	require.NoError(t, err)
	require.Equal(t, "OK", reply.Word, "%s of %s: %s", verb, p.Name, reply)
	return reply
}

func (p *peer) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(p.process, signal))
}

func (p *peer) kill(t testing.TB) {
	p.life.killed.Store(true)
	p.signal(t, syscall.SIGKILL)
}
func (p *peer) pause(t testing.TB)  { p.signal(t, syscall.SIGSTOP) }
func (p *peer) resume(t testing.TB) { p.signal(t, syscall.SIGCONT) }

// interval is from when until when somebody held a lock, in ns of the clock that all processes share.
type interval struct {
	begin, end int64
	fence      uint64
	who        string
}

// conflict finds two holders at once, or tokens that don't increase in the order of the holds.
func conflict(holds []interval) error {
	slices.SortFunc(holds, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(holds); i++ {
		before, after := holds[i-1], holds[i]
		if before.end > after.begin {
			return fmt.Errorf("two holders at once: %+v and %+v", before, after)
		}
		if before.fence >= after.fence {
			return fmt.Errorf("tokens out of order: %+v and %+v", before, after)
		}
	}
	return nil
}

func boottime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

// scriptCalls is how many scripts a server has run since it started.
func scriptCalls(t testing.TB, s *testredis.Server) (calls int64) {
	t.Helper()
	stats, err := s.Client().InfoMap(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	for _, name := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		var n int64
		if text := stats["Commandstats"][name]; text != "" {
			_, err := fmt.Sscanf(text, "calls=%d,", &n)
			require.NoError(t, err, text)
		}
		calls += n
	}
	return calls
}

// subscribers counts the connections that listen.
func subscribers(t testing.TB, s *testredis.Server) int {
	t.Helper()
	list, err := s.Client().Do(context.Background(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	require.NoError(t, err)
	return strings.Count(list, "\n")
}

// queueOf lists the tokens of those that wait, in their order.
func queueOf(t testing.TB, s *testredis.Server, name string) []string {
	t.Helper()
	tokens, err := s.Client().LRange(context.Background(), queueKey(name), 0, -1).Result()
	require.NoError(t, err)
	return tokens
}

// holderOf is the token at a lock's key; "" if it is free.
func holderOf(t testing.TB, s *testredis.Server, name string) string {
	t.Helper()
	token, err := s.Client().Get(context.Background(), name).Result()
	if err != redis.Nil {
		require.NoError(t, err)
	}
	return token
}

// eventually polls, in the test's goroutine.
func eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not within %v: %s", limit, what)
	}
}
