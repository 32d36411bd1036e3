package script_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// reentrantModel is a reentrant lock, as it should be.
type reentrantModel struct {
	tok, owner string // "" if it is free
	foreign    int    // the count of a hold of Redisson's
	entries    map[string]bool
	queue      []call
}

// call is one attempt's token, and its owner.
type call struct{ token, owner string }

func (m *reentrantModel) free() bool { return m.owner == "" }
func (m *reentrantModel) has(c call) bool {
	return !m.free() && m.foreign == 0 && m.owner == c.owner && m.entries[c.token]
}
func (m *reentrantModel) place(c call) int   { return slices.Index(m.queue, c) }
func (m *reentrantModel) enters(c call) bool { return m.owner == c.owner && m.foreign == 0 }

func (m *reentrantModel) take(c call) {
	m.tok, m.owner, m.entries = c.token, c.owner, map[string]bool{c.token: true}
}

func (m *reentrantModel) leave(c call) bool {
	i := m.place(c)
	if i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
	}
	return i >= 0
}

func (m *reentrantModel) handOver() {
	if m.free() && len(m.queue) > 0 {
		m.take(m.queue[0])
		m.leave(m.queue[0])
	}
}

func (m *reentrantModel) end() { m.owner, m.tok, m.foreign, m.entries = "", "", 0, nil }

// ask is an acquire, or a beat: what is counted if it is granted, else 0.
func (m *reentrantModel) ask(c call, waits bool) int {
	if m.free() && (m.place(c) == 0 || len(m.queue) == 0) {
		m.leave(c)
		m.take(c)
		return 1
	}
	m.handOver()
	if m.enters(c) {
		m.entries[c.token] = true
		m.leave(c)
		return len(m.entries)
	}
	if waits && m.place(c) < 0 {
		m.queue = append(m.queue, c)
	}
	return 0
}

// remove is a release or an undo of an entry: its code.
func (m *reentrantModel) remove(c call) int {
	defer m.handOver()
	switch {
	case m.has(c):
		if delete(m.entries, c.token); len(m.entries) == 0 {
			m.end()
		}
		return 1
	case m.free() || m.enters(c):
		return 2
	}
	return 0
}

// Random calls, some of them twice, among them Redisson's, do to a server what they do to the model.
func TestAReentrantLockIsLikeItsModel(t *testing.T) {
	f, r := startRedisson(t)
	seen := map[string]int{}
	for seed := range uint64(30) {
		f.Do("FLUSHALL")
		random := rand.New(rand.NewPCG(seed, 3))
		var calls []call
		for i := range 9 {
			calls = append(calls, call{fmt.Sprintf("rl1:%022d:", i), []string{ann, bob, "eve"}[i%3]})
		}
		m, numbers := &reentrantModel{}, map[string]int{}
		for i := range 200 {
			c := calls[random.IntN(len(calls))]
			what, code := step(f, r, m, c, random.IntN(20), random.IntN(2) == 0)
			seen[fmt.Sprint(what, " ", code)]++
			told := fmt.Sprintf("seed %d, step %d: %s of %v", seed, i, what, c)
			requireLikeModel(f, m, told)
			if m.foreign == 0 && !m.free() {
				if last := numbers[""]; numbers[m.tok] == 0 || f.fence() != numbers[m.tok] {
					require.Greater(t, f.fence(), last, told)
				}
				numbers[m.tok], numbers[""] = f.fence(), f.fence()
			}
		}
	}
	for _, outcome := range []string{
		"acquire 0", "acquire 1", "acquire 2", "acquire 3", "poll 0", "poll 1", "poll 2", "beat 0", "beat 1", "beat 2", "no place 2", "release 0", "release 1", "release 2",
		"undo 1", "undo 2", "renew 0", "renew 1", "renew 2", "force 1", "theirs 1", "theirs 0", "expiry 1",
	} {
		require.Greater(t, seen[outcome], 9, "%s was hardly tried: %v", outcome, seen)
	}
}

// step does one thing to both, and compares what they say. A call that counts is repeated if again is set.
func step(f reentrant, r redisson, m *reentrantModel, c call, which int, again bool) (what string, code int) {
	f.t.Helper()
	repeat := func(want []any, do func(token, owner string, unresolved ...string) []any) {
		f.t.Helper()
		reply := do(c.token, c.owner)
		if again {
			reply = do(c.token, c.owner)
		}
		require.Equal(f.t, want[0], reply[0])
		if want[0] == 1 {
			require.Equal(f.t, []any{1, f.fence(), want[1]}, reply)
		}
	}
	granted := func(count int) []any { return []any{min(count, 1), count} }
	switch {
	case which < 4:
		code = m.ask(c, true)
		repeat(granted(code), f.acquire)
		return "acquire", code
	case which < 6 && m.place(c) < 0: // without a queue it does not see those who wait
		if m.free() {
			m.take(c)
		}
		if m.enters(c) {
			code = m.ask(c, false)
		}
		repeat(granted(code), f.poll)
		return "poll", code
	case which < 10:
		if m.place(c) < 0 && !m.has(c) {
			require.Equal(f.t, []any{2}, f.beat(c.token, c.owner))
			return "no place", 2
		}
		code = m.ask(c, true)
		repeat(granted(code), func(token, owner string, _ ...string) []any { return f.beat(token, owner) })
		return "beat", code
	case which < 14:
		code = m.remove(c)
		require.Equal(f.t, []any{code}, f.release(c.token, c.owner))
		return "release", code
	case which < 15:
		code = 2
		if placed := m.leave(c); m.remove(c) == 1 || placed {
			code = 1
		}
		require.Equal(f.t, []any{code}, f.undo(c.token, c.owner))
		return "undo", code
	case which < 16:
		code = 0
		if m.has(c) {
			code = 1
		} else if m.free() || m.enters(c) {
			code = 2
		}
		require.Equal(f.t, []any{code}, f.renew(c.token, c.owner, ttl))
		return "renew", code
	case which < 17 && !m.free():
		secret := m.owner
		if m.foreign == 0 {
			secret = m.tok[4:26]
		}
		m.end()
		m.handOver()
		require.Equal(f.t, []any{1}, f.queued(script.Reentrant.Force, script.Digest(secret)))
		return "force", 1
	case which < 18 && !m.free():
		m.end()
		f.Do("DEL", lock)
		return "expiry", 1
	case again: // Redisson
		if m.free() || m.owner == theirs {
			m.owner, m.foreign = theirs, m.foreign+1
			require.Equal(f.t, "held", r.lock(theirs))
			return "theirs", 1
		}
		require.Positive(f.t, r.lock(theirs))
		return "theirs", 0
	case m.owner == theirs:
		if m.foreign--; m.foreign == 0 {
			m.end()
		}
		require.EqualValues(f.t, map[bool]int{true: 1}[m.free()], r.unlock(theirs))
		return "their unlock", 1
	}
	require.Nil(f.t, r.unlock(theirs))
	return "their unlock", 0
}

func requireLikeModel(f reentrant, m *reentrantModel, told string) {
	f.t.Helper()
	want := map[string]string{}
	if m.foreign > 0 {
		want[theirs] = strconv.Itoa(m.foreign)
	} else if !m.free() {
		want["tok"], want[m.owner] = m.tok, strconv.Itoa(len(m.entries))
		for token := range m.entries {
			want[token] = m.owner
		}
	}
	got := f.hash()
	delete(got, "rl1:passed")
	require.Equal(f.t, want, got, told)
	var tokens []string
	for _, c := range m.queue {
		tokens = append(tokens, c.token)
	}
	require.ElementsMatch(f.t, tokens, f.order(), told)
	if len(tokens) > 0 {
		require.Equal(f.t, tokens, f.order(), told)
		require.EqualValues(f.t, len(tokens), f.Do("HLEN", entriesPlaces), told)
	}
	if !m.free() {
		require.Positive(f.t, f.Do("PTTL", lock), told)
	}
}
