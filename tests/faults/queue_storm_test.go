package faults_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// REDLOCK_STORM=50 sets how many processes take part.
const (
	stormProcesses = 20
	stormClients   = 5 // of each
	stormTTL       = 2 * time.Second
	stormName      = "storm"
	// stuckLimit bounds how long a client may go without the lock: a hold or hand-over that is lost costs others no more
	// than its ttl, and a waiter that was told of nothing finds out by a beat.
	stuckLimit = stormTTL + handedOverMost + slack
)

// storm is many processes of all languages that hand one lock over to each other as fast as they can.
type storm struct {
	*testing.T
	server        *testredis.Server // the only one
	servers       []*testredis.Server
	limit         time.Duration // of a wait
	counter, logs string
	clients       []*stormer

	// allowed are the statuses besides OK with which a hammer may end: where holds may be lost.
	allowed []string
	// eras are the tokens after which the server had forgotten all. Only within an era are leases and tokens in order.
	eras []uint64
}

// stormer is one client of a storm.
type stormer struct {
	driver  *drivers.Driver
	name    string
	moments []int64 // boottime of when it certainly did not wait
	logs    []string
	failed  int // hammers that ended in another status than OK
}

// TestStorm: troubles in the middle of a storm of hand-overs. Nobody is stuck, and nothing is left.
func TestStorm(t *testing.T) {
	processes := stormProcesses
	if text := os.Getenv("REDLOCK_STORM"); text != "" {
		var err error
		processes, err = strconv.Atoi(text)
		require.NoError(t, err, "REDLOCK_STORM")
	}
	launchers := launchers(t)
	all := make([]*drivers.Driver, processes)
	for i := range all {
		all[i] = launchers[i%len(launchers)].Start(t)
	}
	again := func(times int, trouble func(s *storm)) func(*storm) {
		return func(s *storm) {
			for range times { // in the middle of the storm
				s.goOn(100)
				trouble(s)
			}
		}
	}
	// Python asks once before it waits, which costs a fourth command a hand-over.
	for language, commands := range map[string]float64{"go": 3.2, "c": 3.2, "python": 4.2} {
		t.Run("none, in "+language, func(t *testing.T) {
			s := newStorm(t, slices.DeleteFunc(slices.Clone(all), func(d *drivers.Driver) bool { return drivers.LanguageOf(d.Name) != language }),
				stormClients, testredis.Start(t))
			s.limit = stuckLimit
			s.run(func(s *storm) { s.cost(commands) })
			s.inOrder(s.holds())
			requireNoKeys(t, stuckLimit, s.server)
		})
	}
	for _, test := range []struct {
		name    string
		allowed []string
		trouble func(s *storm)
	}{
		{"scripts are forgotten", nil, again(5, func(s *storm) { s.server.Do("SCRIPT", "FLUSH") })},
		// A release that is sent again may meet another connection that is just being closed.
		{"connections are killed", []string{"UNAVAILABLE"}, again(3, func(s *storm) { s.server.Do("CLIENT", "KILL", "TYPE", "normal") })},
		{"subscriptions are killed", nil, again(5, func(s *storm) { s.server.Do("CLIENT", "KILL", "TYPE", "pubsub") })},
		{"all keys are deleted", []string{"LOST"}, again(3, (*storm).flush)},
		{"the server restarts empty", []string{"LOST", "UNAVAILABLE"}, again(2, (*storm).restart)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStorm(t, all, stormClients, testredis.Start(t))
			s.allowed, s.limit = test.allowed, stuckLimit
			s.run(test.trouble)
			s.verdict()
		})
	}
}

// verdict checks what clients and servers have to show.
func (s *storm) verdict() {
	holds := s.holds()
	s.inOrder(holds)
	s.nobodyStuck(holds)
	if !s.anyFailed() { // those may have held it without noting so
		require.Equal(s, len(holds), s.count(), "lost updates")
	}
	requireNoKeys(s, s.limit, s.servers...)
}

func newStorm(t *testing.T, all []*drivers.Driver, clients int, servers ...*testredis.Server) *storm {
	s := &storm{T: t, server: servers[0], servers: servers, counter: filepath.Join(t.TempDir(), "counter"), logs: t.TempDir()}
	require.NoError(t, os.WriteFile(s.counter, make([]byte, 8), 0o600))
	for i, driver := range all {
		for j := range clients {
			s.clients = append(s.clients, &stormer{driver: driver, name: fmt.Sprintf("%d.%d %s", i, j, filepath.Base(t.Name()))})
		}
	}
	// Patient, so that many processes on a small machine are slow and not unavailable.
	options := []line.Field{field("node_timeout_ms", "1500")}
	for _, server := range servers {
		options = append(options, field("node", server.URL))
	}
	s.each(func(c *stormer) { s.ok(c, "open", slices.Clone(options)...) })
	return s
}

func (s *storm) each(f func(c *stormer)) {
	var all sync.WaitGroup
	for _, c := range s.clients {
		all.Go(func() { f(c) })
	}
	all.Wait()
	if s.Failed() {
		s.FailNow()
	}
}

func (s *storm) ok(c *stormer, verb string, fields ...line.Field) {
	call := c.request(verb, fields...)
	reply, err := c.driver.Await(call, time.Minute)
	if assert.NoError(s, err) {
		assert.Equal(s, "OK", reply.Word, "%s of %s: %s", verb, c.driver.Name, reply)
	}
}

func (c *stormer) request(verb string, fields ...line.Field) *drivers.Call {
	return c.driver.Send(verb, append(fields, field("client", c.name))...)
}

// run lets all clients hammer while there is trouble, and once more each when it is over.
func (s *storm) run(trouble func(*storm)) {
	over := make(chan struct{})
	var troubling sync.WaitGroup
	troubling.Go(func() {
		defer close(over)
		trouble(s)
	})
	s.each(func(c *stormer) {
		for last := false; !last; {
			seconds := 1
			select {
			case <-over:
				seconds, last = 0, true // once
			default:
			}
			if !s.hammer(c, seconds) {
				return
			}
		}
	})
	troubling.Wait()
	s.each(func(c *stormer) { s.ok(c, "close") })
}

func (s *storm) anyFailed() bool {
	return slices.ContainsFunc(s.clients, func(c *stormer) bool { return c.failed > 0 })
}

func (s *storm) hammer(c *stormer, seconds int) bool {
	log := filepath.Join(s.logs, fmt.Sprint(c.name, len(c.logs))) // one each: that of a failed one may be cut off
	c.logs = append(c.logs, log)
	c.moments = append(c.moments, boottime())
	call := c.request("hammer", field("kind", "mutex"), field("name", stormName), field("counter", s.counter),
		field("ttl_ms", fmt.Sprint(stormTTL.Milliseconds())), field("seconds", fmt.Sprint(seconds)),
		field("log", log))
	reply, err := c.driver.Await(call, time.Duration(seconds)*time.Second+2*s.limit)
	if !assert.NoError(s, err) {
		return false
	}
	c.moments = append(c.moments, boottime())
	if reply.Word != "OK" {
		c.failed++
		return assert.Contains(s, s.allowed, reply.Word, "hammer of %s: %s", c.driver.Name, reply)
	}
	n, err := reply.Int("grants", 0)
	return assert.NoError(s, err) && assert.Positive(s, n)
}

// goOn waits until the lock was held some more times.
func (s *storm) goOn(more int) {
	before := s.count()
	for deadline := time.Now().Add(s.limit); s.count() < before+more; time.Sleep(time.Millisecond) {
		if !assert.True(s, time.Now().Before(deadline), "only %d holds in %v", s.count()-before, s.limit) {
			return
		}
	}
}

// cost checks what hand-overs between processes cost.
func (s *storm) cost(commands float64) {
	s.goOn(200)
	begun, calls, holds := time.Now(), scriptCalls(s, s.server), s.count()
	s.goOn(1000)
	requireCost(s, scriptCalls(s, s.server)-calls, int64(s.count()-holds), len(s.clients), stormTTL, time.Since(begun), commands)
}

// flush deletes all keys, and checks that the tokens go on from there.
func (s *storm) flush() {
	counter := fence(stormName)
	var last *redis.StringCmd
	_, err := s.server.Client().TxPipelined(context.Background(), func(tx redis.Pipeliner) error {
		last = tx.Get(context.Background(), counter)
		tx.FlushAll(context.Background())
		return nil
	})
	if err == redis.Nil {
		return // nobody has held it since the last time
	}
	assert.NoError(s, err)
	before, err := last.Uint64()
	assert.NoError(s, err)
	s.eras = append(s.eras, before)
}

// restart restarts the server. Tokens are times of its clock, in µs since 1970, as long as there is less than one a µs.
func (s *storm) restart() {
	s.server.Stop()
	s.eras = append(s.eras, uint64(time.Now().UnixMicro()))
	s.server.Restart()
}

// holds reads what all clients noted of the holds that they gave back.
func (s *storm) holds() (holds []interval) {
	for _, c := range s.clients {
		for _, log := range c.logs {
			text, err := os.ReadFile(log)
			require.NoError(s, err)
			for line := range strings.Lines(string(text)) {
				if !strings.HasSuffix(line, "\n") && c.failed > 0 {
					break // the hammer ended in the middle of it
				}
				h := interval{who: c.name}
				_, err := fmt.Sscan(line, &h.begin, &h.end, &h.fence)
				require.NoError(s, err, "%s: %q", log, line)
				holds = append(holds, h)
				c.moments = append(c.moments, h.begin, h.end)
			}
		}
	}
	return holds
}

// inOrder checks that no two held it at once and that tokens increase: after a server has forgotten all, for
// those that held it since then.
func (s *storm) inOrder(holds []interval) {
	byEra := make([][]interval, len(s.eras)+1)
	for _, h := range holds {
		era, _ := slices.BinarySearch(s.eras, h.fence) // a token that is the last of an era belongs to it
		byEra[era] = append(byEra[era], h)
	}
	for era, holds := range byEra {
		require.NoError(s, conflict(holds), "era %d", era)
	}
	slices.SortFunc(holds, func(a, b interval) int { return cmp.Compare(a.fence, b.fence) })
	for i := 1; i < len(holds); i++ {
		require.NotEqual(s, holds[i-1].fence, holds[i].fence, "a token of two holders: %+v and %+v", holds[i-1], holds[i])
	}
	require.NotEmpty(s, byEra[len(byEra)-1], "nobody held it when the trouble was over")
}

// nobodyStuck checks for how long each client waited at most.
func (s *storm) nobodyStuck(holds []interval) {
	var longest time.Duration
	failed := 0
	for _, c := range s.clients {
		failed += c.failed
		slices.Sort(c.moments)
		for i := 1; i < len(c.moments); i++ {
			longest = max(longest, time.Duration(c.moments[i]-c.moments[i-1]))
		}
	}
	s.Logf("%d holds of %d clients, the longest wait was %v; %d hammers ended early", len(holds), len(s.clients), longest, failed)
	require.LessOrEqual(s, longest, s.limit)
}

// count reads the counter that nothing but the lock protects.
func (s *storm) count() int {
	counter, err := os.ReadFile(s.counter)
	if !assert.NoError(s, err) || !assert.Len(s, counter, 8) {
		return 0
	}
	return int(binary.LittleEndian.Uint64(counter))
}
