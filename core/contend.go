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
	nodes     []contested
	rivals    int64    // clients that listen, by the last refusal
	took      Duration // that it took
	splits    int      // attempts in a row after which nobody had a quorum
	missed    bool     // a release may have been, between the attempt in flight and the listening
	lingering timer
}

// contested is what a contest knows of one node.
type contested struct {
	listening bool   // its releases are told
	released  string // whose release was told last: the holder, as refusals name it, or the slot of a semaphore
}

const releasedChannel = "redlock:released:"

// What a refusal on one of several nodes says of the holder.
const holderTells = 1 // its release is published; 2: it is not

// contends tells whether an acquire waits for a release on several nodes.
func (h *hold) contends() bool { return h.lock.announced && h.limited }

// contend is how long an attempt that others' grants ruled out waits for the next one, if no release is told before.
func (m *Machine) contend(h *hold) Duration {
	a, c := h.attempt, m.contest(h.lock.id())
	c.took, c.rivals = Duration(m.now-a.begun), 0
	for i := range a.grants {
		c.rivals = max(c.rivals, a.grants[i].rivals)
	}
	if y := m.yields[c.id]; y != nil && y.vain { // not any more
		m.timers.set(&y.timer, nil, Never)
		delete(m.yields, c.id)
	}
	switch missed := c.missed; {
	case missed, c.mayBeFree(a):
		c.missed = false
		return c.draw(h)
	case !a.heldByOne():
		a.disputed = true
		c.splits++
		return c.draw(h)
	}
	c.splits = 0
	return m.lookAgain(h, c)
}

// promote lets the next in line wait on for one that gave up between two attempts.
func (m *Machine) promote(next, h *hold) {
	next.attempt, next.attempts, next.next, next.yielded = h.attempt, h.attempts, h.next, h.yielded
	next.lastFailure = h.lastFailure
	if next.attempt != nil {
		next.attempt.hold = next
	}
	m.move(next, promoted)
	m.schedule(next) // its own limit may have passed, too
}

// learn takes in what a node answers to an attempt that was given up before: who has the lock may be known only now.
func (m *Machine) learn(a *attempt, node int, v vote) {
	h := a.hold
	if a != h.attempt || h.state != pausing || !h.contends() || a.votes[node].answer != pending {
		return
	}
	a.votes[node] = v
	c := m.contest(h.lock.id())
	if a.disputed && a.heldByOne() && !c.mayBeFree(a) {
		a.disputed = false
		c.splits = 0
		h.next = m.now.add(m.lookAgain(h, c))
		m.schedule(h)
	}
}

// lookAgain is after what time to ask again whether somebody still has the lock: sooner if its release will not be told, or if
// enough keys expire.
func (m *Machine) lookAgain(h *hold, c *contest) Duration {
	a, need := h.attempt, quorum(len(c.nodes))
	var untils []Duration // the nodes may be free
	telling, audible := 0, 0
	for i := range c.nodes {
		g, until := &a.grants[i], Forever
		switch free := c.isFree(a, i); {
		case free:
			until = 0
		case g.retryIn > 0:
			until = g.retryIn
		}
		untils = append(untils, until)
		if until == 0 || a.votes[i].answer == no && g.turn == holderTells {
			telling++
		}
		if n := &m.nodes[i]; !n.deaf && !n.mute {
			audible++
		}
	}
	again := h.jitter(contendAgainMin, contendAgainMax)
	if telling < need || audible < need {
		again = h.jitter(h.retryDelay, h.retryDelay+h.retryJitter)
	}
	slices.Sort(untils)
	if expiry := untils[need-1]; expiry < again {
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
		c = &contest{id: id, nodes: make([]contested, len(m.config.Nodes))}
		if others := m.contestsOf(id.key); len(others) > 0 { // of another kind, but on the same channel
			for i := range c.nodes {
				c.nodes[i].listening = others[0].nodes[i].listening
			}
		} else {
			m.listen(c, true)
		}
		m.contests[id] = c
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
	delete(m.contests, c.id)
	if len(m.contestsOf(c.id.key)) == 0 {
		m.listen(c, false)
	}
}

// mayBeFree tells whether enough nodes may be free for a quorum, by what an attempt and the releases since have told.
func (c *contest) mayBeFree(a *attempt) bool {
	free := 0
	for i := range c.nodes {
		if c.isFree(a, i) {
			free++
		}
	}
	return free >= quorum(len(c.nodes))
}

func (c *contest) isFree(a *attempt, node int) bool {
	switch a.votes[node].answer {
	case yes: // and undone
		return true
	case no:
		told := c.nodes[node].released
		return told != "" && (a.hold.lock.kind.slots || told == a.grants[node].holder)
	}
	return false
}

// attempted is called when a new attempt is sent.
func (c *contest) attempted() {
	c.missed = false
	for i := range c.nodes {
		if c.id.kind.slots { // a holder's name is only told once
			c.nodes[i].released = ""
		}
	}
}

// heldByOne tells whether one holder is named by a quorum; of a semaphore, whether no slot may be free on one.
func (a *attempt) heldByOne() bool {
	if a.hold.lock.kind.slots {
		return len(a.freeSlots()) == 0
	}
	for i := range a.grants {
		same := 0
		for j := range a.grants {
			if a.votes[i].answer == no && a.votes[j].answer == no && a.grants[i].holder == a.grants[j].holder {
				same++
			}
		}
		if same >= quorum(len(a.grants)) {
			return true
		}
	}
	return false
}

// draw is a random delay after which one of the rivals is likely to be the only one for as long as an attempt
// takes: one within twice that for each of them, doubled while nobody wins, and less for who has tried before, so that nobody
// is always the last.
func (c *contest) draw(h *hold) Duration {
	if c.rivals <= 1 && c.splits == 0 {
		return 0
	}
	within := min(2*attemptTime(c.took)*Duration(c.rivals+1)<<min(c.splits, 6), contendMost)
	return h.jitter(0, within/Duration(max(1, min(h.attempts, patienceCounts))))
}

// attemptTime is what an attempt may be expected to take, if one took so long.
func attemptTime(took Duration) Duration { return min(max(took, contendTookMin), contendTookMax) }

const (
	contendTookMin = 200 * Microsecond
	contendTookMax = 50 * Millisecond
	patienceCounts = 4 // attempts up to which another one makes the delay shorter
	yieldFor       = 6 // times what an attempt takes: the first of any number of rivals comes after about twice that
)

// wakeContender lets the first in line ask again, if it waits. Who yields has not asked yet, and goes on yielding.
func (m *Machine) wakeContender(c *contest) {
	if l := m.queue.lines[c.id]; l != nil && l.holds[0].state == pausing && l.holds[0].attempts > 0 {
		h := l.holds[0]
		h.next = min(h.next, m.now.add(c.draw(h)))
		m.schedule(h)
	}
}

// released tells that a node has published a release: the kind of lock, and what is free. Of other holders of a mutex, such as
// those of the same name in another database, it is none of our business.
func (m *Machine) released(node int, key, payload string) {
	kind, what, ok := strings.Cut(payload, " ")
	for _, c := range m.contestsOf(key) {
		if c.id.kind.name != kind || !ok || node < 0 || node >= len(c.nodes) {
			continue
		}
		c.nodes[node].released = what
		if l := m.queue.lines[c.id]; l != nil && l.holds[0].attempt != nil && c.mayBeFree(l.holds[0].attempt) {
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

// hears notes whether a node's releases are told. When a quorum's begin to be, some may have been missed.
func (m *Machine) hears(node int, key string, on bool) {
	for _, c := range m.contestsOf(key) {
		if node < 0 || node >= len(c.nodes) || c.nodes[node].listening == on {
			continue
		}
		c.nodes[node].listening = on
		if on && c.listening() == quorum(len(c.nodes)) {
			c.missed = true
			m.wakeContender(c)
		}
	}
}

// listening counts the nodes whose releases are told.
func (c *contest) listening() (n int) {
	for i := range c.nodes {
		if c.nodes[i].listening {
			n++
		}
	}
	return n
}

// yield is a lock that this client has just released while others listened: they come first. If nobody came after all, they
// only lingered, or watch: then it is in vain for some time.
type yield struct {
	id    lockID
	vain  bool
	timer timer // until then
}

// yield notes how many have heard of a release on some node, which took so long.
func (m *Machine) yield(id lockID, node int, heard int64, took Duration) {
	if c := m.contests[id]; c != nil && c.nodes[node].listening {
		heard-- // this client itself
	}
	y := m.yields[id]
	if heard <= 0 || y != nil && y.vain {
		return
	}
	if y == nil {
		y = &yield{id: id}
		m.yields[id] = y
	}
	if until := m.now.add(yieldFor * attemptTime(took)); y.timer.index == 0 || until > y.timer.at {
		m.timers.set(&y.timer, y, until)
	}
}

// yieldsTo is until when an acquire holds back; 0 if it does not have to, or can't wait so long.
func (m *Machine) yieldsTo(h *hold) Time {
	y := m.yields[h.lock.id()]
	if y == nil || y.vain || !h.contends() || y.timer.at >= h.limit {
		return 0
	}
	return y.timer.at
}

// yieldedInVain notes that nobody took the lock before one who held back.
func (m *Machine) yieldedInVain(h *hold) {
	y := &yield{id: h.lock.id(), vain: true}
	m.yields[y.id] = y
	m.timers.set(&y.timer, y, m.now.add(contestLingers))
}

func (y *yield) wake(m *Machine) { delete(m.yields, y.id) }
