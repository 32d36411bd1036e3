package core

import (
	"slices"
	"strings"
)

// Waiting on several nodes. No node can hand over there: each would choose its own next holder. So a release is published on every
// node, and those who wait ask again when enough nodes may be free, each after a random delay that grows with their
// number. What is missed, or was never told, is found out by asking again after a time.
//
// A client's acquires of a lock wait in one line here too; the first of it contends.

// contest is what a client knows of a lock that it waits for on several nodes. It outlives the wait for a time, since who has waited
// once often does so again.
type contest struct {
	id        lockID
	free      []bool   // by node: it did not refuse the last attempt, or has told of a release since that was sent
	listening []bool   // by node: releases are told
	freed     string   // the slot of the last release that was told
	rivals    int64    // clients that listen, by the last refusal
	took      Duration // that it took
	splits    int      // attempts in a row after which nobody had a quorum
	lingering timer
}

const releasedChannel = "redlock:released:"

// What a refusal on one of several nodes says of the holder.
const holderSilent = 2 // its release is published nowhere; 1: it is

// contends tells whether an acquire waits for a release on several nodes.
func (h *hold) contends() bool { return h.lock.announced && h.limited }

// contend is how long an attempt that others' grants ruled out waits for the next one, if no release is told before.
func (m *Machine) contend(h *hold) Duration {
	a := h.attempt
	c := m.contest(h.lock.id())
	var holders [MaxNodes]string
	untils, silent, rivals := make([]Duration, 0, MaxNodes), false, int64(0)
	for i := range a.grants {
		g := &a.grants[i]
		switch a.votes[i].answer {
		case yes:
			c.free[i] = true
		case no:
			holders[i] = g.holder
			rivals = max(rivals, g.rivals)
			silent = silent || g.turn == holderSilent
		}
		switch {
		case c.free[i]:
			untils = append(untils, 0)
		case g.retryIn > 0:
			untils = append(untils, g.retryIn)
		default:
			untils = append(untils, Forever)
		}
	}
	c.rivals, c.took = rivals, Duration(m.now-a.begun)
	switch {
	case c.mayBeFree():
		return c.draw(h)
	case a.disputed(holders[:len(a.grants)]):
		c.splits++
		return c.draw(h)
	}
	c.splits = 0
	again := h.jitter(contendAgainMin, contendAgainMax)
	if silent {
		again = h.jitter(h.retryDelay, h.retryDelay+h.retryJitter)
	}
	slices.Sort(untils)
	if expiry := untils[quorum(len(untils))-1]; expiry < again {
		again = expiry + c.draw(h)
	}
	return again
}

const (
	contendAgainMin = 1000 * Millisecond
	contendAgainMax = 1250 * Millisecond
	contendMost     = 1 * Second // of a random delay
	contestLingers  = 5 * Second
)

// contest finds what is known of a lock, or begins to listen.
func (m *Machine) contest(id lockID) *contest {
	c := m.contests[id]
	if c == nil {
		n := len(m.config.Nodes)
		c = &contest{id: id, free: make([]bool, n), listening: make([]bool, n)}
		m.contests[id] = c
		m.listen(c, true)
	}
	m.timers.set(&c.lingering, nil, Never)
	return c
}

func (m *Machine) listen(c *contest, on bool) {
	for node := range m.config.Nodes {
		m.effects.Subscriptions = append(m.effects.Subscriptions, Subscription{Node: node, Channel: releasedChannel + c.id.key, On: on})
	}
}

// leave is called when nobody here waits for the lock any more.
func (c *contest) leave(m *Machine) {
	m.timers.set(&c.lingering, c, m.now.add(contestLingers))
}

func (c *contest) wake(m *Machine) {
	m.listen(c, false)
	delete(m.contests, c.id)
}

// mayBeFree tells whether enough nodes may be free for a quorum.
func (c *contest) mayBeFree() bool { return countTrue(c.free) >= quorum(len(c.free)) }

func countTrue(flags []bool) (n int) {
	for _, flag := range flags {
		if flag {
			n++
		}
	}
	return n
}

// sameQuorum tells whether one holder is named by a quorum.
func sameQuorum(holders []string) bool {
	for _, holder := range holders {
		same := 0
		for _, other := range holders {
			if holder != "" && other == holder {
				same++
			}
		}
		if same >= quorum(len(holders)) {
			return true
		}
	}
	return false
}

// yield is a lock that this client has just released while others wait for it: they come first.
type yield struct {
	id    lockID
	timer timer // until then
}

// yield notes how many have heard of a release on some node, which took so long.
func (m *Machine) yield(id lockID, heard int64, took Duration) {
	if m.contests[id] != nil {
		heard-- // this client itself
	}
	if heard <= 0 {
		return
	}
	y := m.yields[id]
	if y == nil {
		y = &yield{id: id}
		m.yields[id] = y
	}
	if until := m.now.add(spread(heard, took, 0)); y.timer.index == 0 || until > y.timer.at {
		m.timers.set(&y.timer, y, until)
	}
}

func (y *yield) wake(m *Machine) { delete(m.yields, y.id) }

// draw is a random delay after which one of the rivals is likely to be the only one for as long as an attempt
// takes: one within twice that for each of them, doubled while nobody wins, and less for who has tried before, so that nobody
// is always the last.
func (c *contest) draw(h *hold) Duration {
	if c.rivals <= 1 && c.splits == 0 {
		return 0
	}
	return h.jitter(0, spread(c.rivals, c.took, c.splits)/Duration(max(1, min(h.attempts, patienceCounts))))
}

// spread is within what time so many rivals try again.
func spread(rivals int64, took Duration, splits int) Duration {
	took = min(max(took, contendTookMin), contendTookMax)
	return min(2*took*Duration(rivals+1)<<min(splits, 6), contendMost)
}

const (
	contendTookMin = 200 * Microsecond
	contendTookMax = 50 * Millisecond
	patienceCounts = 4 // attempts up to which another one makes the delay shorter
)

// wakeContender lets the first in line ask again, if it waits.
func (m *Machine) wakeContender(c *contest) {
	l := m.queue.lines[c.id]
	if l == nil || l.holds[0].state != pausing {
		return
	}
	h := l.holds[0]
	h.next = min(h.next, m.now.add(c.draw(h)))
	m.schedule(h)
}

// released tells that a node has published a release: the kind of lock, and the slot of a semaphore.
func (m *Machine) released(node int, key, payload string) {
	kind, slot, _ := strings.Cut(payload, " ")
	for _, c := range m.contestsOf(key) {
		if c.id.kind.name != kind || node < 0 || node >= len(c.free) {
			continue
		}
		c.free[node], c.freed = true, slot
		if c.mayBeFree() {
			m.wakeContender(c)
		}
	}
}

// hears notes whether a node's releases are told. When a quorum's begin to be, some may have been missed.
func (m *Machine) hears(node int, key string, on bool) {
	for _, c := range m.contestsOf(key) {
		if node < 0 || node >= len(c.listening) || c.listening[node] == on {
			continue
		}
		c.listening[node] = on
		if on && countTrue(c.listening) == quorum(len(c.listening)) {
			m.wakeContender(c)
		}
	}
}

// contestsOf finds the contests of a name, of whatever kind.
func (m *Machine) contestsOf(key string) (contests []*contest) {
	for _, kind := range kinds {
		if c := m.contests[lockID{kind, key}]; c != nil {
			contests = append(contests, c)
		}
	}
	return contests
}
