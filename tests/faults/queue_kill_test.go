package faults_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// stage is a lock's holder and those who wait for it, each a process of another language, on a server of their own.
type stage struct {
	testing.TB
	server *testredis.Server
	ttl    time.Duration
	peers  []*peer // the holder, then the waiters in their order
	grants []chan grant
	holds  []interval // that have ended
}

// grant is that somebody got the lock.
type grant struct {
	reply *line.Line
	at    int64 // boottime
	err   error
}

// newStage starts the processes and lets them take their places. rotation chooses who speaks which language.
func newStage(t testing.TB, all []*drivers.Launcher, rotation int, ttl time.Duration) *stage {
	t.Helper()
	s := &stage{TB: t, server: testredis.Start(t), ttl: ttl}
	for i := range all {
		s.peers = append(s.peers, startPeer(t, all[(i+rotation)%len(all)], s.server))
	}
	for i, p := range s.peers {
		call := p.Send("acquire", field("client", "c"), field("held", "h"), field("kind", "mutex"), field("name", "x"),
			field("ttl_ms", fmt.Sprint(ttl.Milliseconds())))
		c := make(chan grant, 1)
		s.grants = append(s.grants, c)
		go func() {
			reply, err := p.Await(call, time.Minute)
			c <- grant{reply, boottime(), err}
		}()
		if i == 0 {
			s.holds = append(s.holds, s.granted(0, slack))
			continue
		}
		eventually(t, replyLimit, "a place in the queue", func() bool { return len(queueOf(t, s.server, "x")) == i })
	}
	return s
}

// granted waits until a peer has the lock.
func (s *stage) granted(who int, limit time.Duration) interval {
	s.Helper()
	select {
	case g := <-s.grants[who]:
		require.NoError(s, g.err)
		require.Equal(s, "OK", g.reply.Word, g.reply)
		fence, err := g.reply.Int("fence", 0)
		require.NoError(s, err)
		return interval{begin: g.at, fence: uint64(fence), who: s.peers[who].Name}
	case <-time.After(limit):
		require.FailNow(s, "stuck", "%s (peer %d) does not have the lock within %v; holder %q, queue %q", s.peers[who].Name, who, limit,
			holderOf(s, s.server, "x"), queueOf(s, s.server, "x"))
		return interval{}
	}
}

// certain is until when a holder may believe at least that the lock is its own.
func (s *stage) certain(who int) int64 {
	s.Helper()
	now := boottime()
	remaining, err := s.peers[who].must(s, "remaining", field("held", "h")).Int("remaining_ms", 0)
	require.NoError(s, err)
	require.Positive(s, remaining)
	return now + remaining*int64(time.Millisecond)
}

// release ends the last hold.
func (s *stage) release(who int) {
	s.Helper()
	s.certain(who)
	s.holds[len(s.holds)-1].end = boottime()
	s.peers[who].must(s, "release", field("held", "h"))
}

// serve lets peers have the lock in this order, and give it back.
func (s *stage) serve(order ...int) {
	s.Helper()
	for _, who := range order {
		s.holds = append(s.holds, s.granted(who, slack))
		s.release(who)
	}
}

// pending checks that these peers have no lock.
func (s *stage) pending(all ...int) {
	s.Helper()
	for _, who := range all {
		require.Empty(s, s.grants[who], "peer %d has the lock", who)
	}
}

// end checks what all of it comes to.
func (s *stage) end(limit time.Duration) {
	s.Helper()
	requireNoKeys(s, limit, s.server)
	require.NoError(s, conflict(s.holds))
}

// left is for how long the lock's key will stand if nobody renews it.
func (s *stage) left() time.Duration {
	s.Helper()
	left, err := s.server.Client().PTTL(context.Background(), "x").Result()
	require.NoError(s, err)
	return left
}

// scenes runs each as a test of its own, all at the same time, since they wait most of it.
func scenes(t *testing.T, all map[string]func(t *testing.T, launchers []*drivers.Launcher)) {
	launchers := launchers(t)
	for name, scene := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, launchers)
		})
	}
}

// TestAProcessIsKilled: whoever comes next has the lock when the dead one's lease is over, and the order of the others is kept.
func TestAProcessIsKilled(t *testing.T) {
	scenes(t, map[string]func(*testing.T, []*drivers.Launcher){
		"the holder": func(t *testing.T, all []*drivers.Launcher) {
			s := newStage(t, all, 0, 2*time.Second)
			s.holds[0].end = s.certain(0)
			s.peers[0].kill(t)
			s.holds = append(s.holds, s.granted(1, s.left()+beatPeriod(s.ttl)+slack))
			s.release(1)
			s.serve(2, 3)
			s.end(cleanupLimit)
		},
		// The hand-over to the dead costs 3 s, not the ttl.
		"the first who waits": func(t *testing.T, all []*drivers.Launcher) {
			s := newStage(t, all, 1, 20*time.Second)
			s.peers[1].kill(t)
			s.release(0)
			s.holds = append(s.holds, s.granted(2, handedOverMost+beatPeriod(s.ttl)+slack))
			s.release(2)
			s.serve(3)
			s.end(cleanupLimit)
		},
		"one in the middle": func(t *testing.T, all []*drivers.Launcher) {
			s := newStage(t, all, 2, 20*time.Second)
			s.peers[2].kill(t)
			s.release(0)
			s.serve(1)
			s.holds = append(s.holds, s.granted(3, handedOverMost+beatPeriod(s.ttl)+slack))
			s.release(3)
			s.end(cleanupLimit)
		},
		"the last": func(t *testing.T, all []*drivers.Launcher) {
			s := newStage(t, all, 3, 20*time.Second)
			s.peers[3].kill(t)
			s.release(0)
			s.serve(1, 2)
			s.end(handedOverMost + slack)
		},
	})
}

// TestAProcessIsPaused, for longer than the ttl: the others go on without it, and it finds out when it goes on itself.
func TestAProcessIsPaused(t *testing.T) {
	const ttl = 2 * time.Second
	scenes(t, map[string]func(*testing.T, []*drivers.Launcher){
		"the holder": func(t *testing.T, all []*drivers.Launcher) {
			s := newStage(t, all, 0, ttl)
			s.holds[0].end = s.certain(0)
			lost := s.peers[0].Lost("h")
			s.peers[0].pause(t)
			s.holds = append(s.holds, s.granted(1, s.left()+beatPeriod(ttl)+slack))
			s.peers[0].resume(t)
			require.Equal(t, "LOST", s.peers[0].says(t, "renew", field("held", "h")))
			closed(t, lost, slack, "the loss")
			require.Equal(t, "LOST", s.peers[0].says(t, "release", field("held", "h")))
			require.Equal(t, s.peers[1].pid(), processOf(holderOf(t, s.server, "x")), "the new holder's key stays")
			s.peers[1].must(t, "renew", field("held", "h"))
			s.pending(2, 3)
			s.release(1)
			s.serve(2, 3)
			s.end(cleanupLimit)
		},
		"the first who waits": func(t *testing.T, all []*drivers.Launcher) { passedOver(t, all, 1, 2, 3, 1) },
		"one in the middle":   func(t *testing.T, all []*drivers.Launcher) { passedOver(t, all, 2, 1, 3, 2) },
		"the first, which is handed it over": func(t *testing.T, all []*drivers.Launcher) {
			s := newStage(t, all, 3, ttl)
			s.peers[1].pause(t)
			s.release(0)
			require.Equal(t, s.peers[1].pid(), processOf(holderOf(t, s.server, "x")), "its place still lived")
			s.holds = append(s.holds, s.granted(2, ttl+beatPeriod(ttl)+slack))
			s.peers[1].resume(t)
			s.returns(1)
			s.pending(1, 3)
			s.release(2)
			s.serve(3, 1)
			s.end(cleanupLimit)
		},
	})
}

// passedOver pauses a waiter until its place is dead. The lock is handed over as if it were not there, and
// when it goes on it takes a place behind all others.
func passedOver(t *testing.T, all []*drivers.Launcher, victim, next, then, last int) {
	s := newStage(t, all, victim, 2*time.Second)
	token := queueOf(t, s.server, "x")[victim-1]
	require.Equal(t, s.peers[victim].pid(), processOf(token))
	s.peers[victim].pause(t)
	eventually(t, s.ttl+slack, "the place dies", func() bool { return s.dead(token) })
	s.release(0)
	require.Equal(t, s.peers[next].pid(), processOf(holderOf(t, s.server, "x")))
	s.holds = append(s.holds, s.granted(next, slack))
	if victim == 2 { // the dead one is first now, and passed over by the next release
		s.release(next)
		require.Equal(t, s.peers[then].pid(), processOf(holderOf(t, s.server, "x")))
		s.holds = append(s.holds, s.granted(then, slack))
		next = then
	}
	s.peers[victim].resume(t)
	s.returns(victim)
	s.pending(victim)
	s.release(next)
	if next != then {
		s.serve(then)
	}
	s.serve(last)
	s.end(cleanupLimit)
}

// dead tells whether a place is one that a hand-over passes over.
func (s *stage) dead(token string) bool {
	s.Helper()
	place, err := s.server.Client().HGet(context.Background(), placesKey("x"), token).Result()
	require.NoError(s, err, "somebody removed the place")
	var until int64
	_, err = fmt.Sscan(strings.Fields(place)[0], &until)
	require.NoError(s, err)
	now, err := s.server.Client().Time(context.Background()).Result()
	require.NoError(s, err)
	return now.UnixMicro() > until
}

// returns waits until a peer is the last in the queue.
func (s *stage) returns(who int) {
	s.Helper()
	eventually(s, beatPeriod(s.ttl)+slack, "it has a place again", func() bool {
		tokens := queueOf(s, s.server, "x")
		return len(tokens) > 0 && processOf(tokens[len(tokens)-1]) == s.peers[who].pid()
	})
}
