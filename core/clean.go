package core

import (
	"slices"

	"github.com/libredlock/libredlock/core/script"
)

// cleanup removes a token from every node that may have it: after an attempt that did not win, and
// after a hold. It is detached from whoever asked for the lock.
//
// A node whose answer to the acquire is not known may execute it after the undo, if they go by different
// connections. So such a node hears of the undo at once, after 1 s and after ttl/2, unless it
// confirms a removal or its answer comes. What still gets through lives for the key's ttl.
type cleanup struct {
	attempt *attempt
	script  *script.Script // undo or release
	args    []string
	wait    Duration // for one node's answer
	done    []bool   // nodes that certainly hold nothing of ours, and never will
	untold  []int    // how many calls to each node have no answer
	again   []Time   // when to tell the others again
	timer   timer

	release *releasing // whoever waits for it, if anybody does
}

// releasing is a Release that has no outcome yet.
type releasing struct {
	op      OpID
	votes   []vote
	limit   Time
	unsure  []bool // nodes where another release than the one that is answered may have been executed
	retried []bool
}

// abandon undoes an attempt that did not win.
func (m *Machine) abandon(a *attempt) {
	m.timers.set(&a.timer, nil, Never)
	m.clean(a.hold, script.MutexUndo, 0)
}

// clean begins a cleanup of a hold's attempt; op is the release that waits for it, or 0.
func (m *Machine) clean(h *hold, s *script.Script, op OpID) {
	a := h.attempt
	n := len(a.grants)
	wait := m.config.nodeTimeout(h.lock.ttl)
	c := &cleanup{
		attempt: a,
		script:  s,
		args:    h.lock.cleanCommand(s, a.token),
		wait:    wait,
		done:    make([]bool, n),
		untold:  make([]int, n),
		again:   []Time{m.now.add(min(undoAgainAfter, h.lock.ttl/2)), m.now.add(max(undoAgainAfter, h.lock.ttl/2))},
	}
	a.cleanup = c
	if op != 0 {
		c.release = &releasing{op: op, votes: make([]vote, n), limit: m.now.add(wait), unsure: make([]bool, n), retried: make([]bool, n)}
		m.owed[op] = c
	}
	for i, g := range a.grants {
		c.done[i] = !g.granted && !g.open
		if c.done[i] && op != 0 {
			c.release.votes[i].answer = no
		}
	}
	if slices.Contains(c.done, false) {
		m.cleanups[h.lock.key] = append(m.cleanups[h.lock.key], c)
		c.tellAll(m)
		c.schedule(m)
		if oldest := m.cleanups[h.lock.key][0]; len(m.cleanups[h.lock.key]) > maxCleanups && oldest.release == nil {
			oldest.forget(m)
		}
	}
}

func (c *cleanup) tell(m *Machine, node int) {
	if c.release != nil && c.untold[node] > 0 {
		c.release.unsure[node] = true
	}
	c.untold[node]++
	m.send(call{asker: c, node: node, script: c.script, args: c.args, wait: c.wait})
}

func (c *cleanup) tellAll(m *Machine) {
	for node, done := range c.done {
		if !done {
			c.tell(m, node)
		}
	}
}

// schedule sets the timer: for the release's limit, the next repetition, or the end.
func (c *cleanup) schedule(m *Machine) {
	at := Never
	if len(c.again) > 0 {
		at = c.again[0]
	}
	if c.release != nil {
		at = min(at, c.release.limit)
	}
	m.timers.set(&c.timer, c, at)
}

func (c *cleanup) prolong(m *Machine) {
	if c.release != nil {
		c.release.limit = m.now.add(c.wait)
		c.schedule(m)
	}
}

func (c *cleanup) wake(m *Machine) {
	if r := c.release; r != nil && m.now >= r.limit {
		timedOut := round{votes: r.votes, wait: c.wait}
		timedOut.timeOut()
		c.decide(m)
	}
	due := 0
	for due < len(c.again) && m.now >= c.again[due] {
		due++
	}
	if due > 0 {
		c.again = c.again[due:]
		c.tellAll(m)
	}
	if len(c.again) == 0 && c.release == nil {
		c.forget(m)
		return
	}
	c.schedule(m)
}

// answered brings a node's answer to an undo or release.
func (c *cleanup) answered(m *Machine, answered *call, v vote, _ []Value) {
	node := answered.node
	c.untold[node]--
	if v.answer == yes || v.answer == no && !c.attempt.grants[node].open {
		c.done[node] = true
	}
	if r := c.release; r != nil {
		failed := answered.fault == Unknown || answered.fault == Refused
		r.unsure[node] = r.unsure[node] || answered.fault == Unknown
		if failed && !r.retried[node] {
			r.retried[node] = true
			c.tell(m, node)
			return
		}
		if v.answer == no && r.unsure[node] && m.now < c.attempt.grants[node].end {
			v.answer = yes // gone, or another's already: by our own release, since the lease there is not over
		}
		if r.votes[node].answer != yes {
			r.votes[node] = v
		}
		c.decide(m)
	}
	if !slices.Contains(c.done, false) {
		c.forget(m)
	}
}

// settled brings a node's late answer to the acquire itself.
func (c *cleanup) settled(m *Machine, node int, granted bool) {
	switch {
	case c.done[node]:
	case granted: // after the undo, for all we know
		c.tell(m, node)
	case !c.attempt.grants[node].open && !c.attempt.grants[node].granted:
		c.done[node] = true
		if !slices.Contains(c.done, false) && c.release == nil {
			c.forget(m)
		}
	}
}

// decide answers the release when a quorum has confirmed it, or can't.
func (c *cleanup) decide(m *Machine) {
	switch t := count(c.release.votes); {
	case t.won():
		c.answerRelease(m, Outcome{Status: OK})
	case t.refused():
		c.answerRelease(m, Outcome{Status: Lost, Message: "its key was gone or another's before the release"})
	case t.hopeless():
		o := m.verdict(c.release.votes)
		o.Message += "; the release is being repeated in the background"
		c.answerRelease(m, o)
	}
}

func (c *cleanup) answerRelease(m *Machine, o Outcome) {
	o.Op = c.release.op
	c.release = nil
	m.outcome(o)
}

// giveUp does nothing: a release can't be cancelled, and a Close waits for it.
func (c *cleanup) giveUp(*Machine, Status, string) {}

// forget ends the cleanup, done or not.
func (c *cleanup) forget(m *Machine) {
	m.timers.set(&c.timer, nil, Never)
	key := c.attempt.hold.lock.key
	list := m.cleanups[key]
	if i := slices.Index(list, c); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(m.cleanups, key)
	} else {
		m.cleanups[key] = list
	}
}

// unresolved are this client's tokens that may stand at a key though nobody here holds it, the newest few: an
// attempt names them, and the node treats them as its own.
func (m *Machine) unresolved(key string) (tokens []string) {
	list := m.cleanups[key]
	for _, c := range list[max(0, len(list)-maxUnresolved):] {
		if c.release == nil { // else its owner still waits to hear that it was there
			tokens = append(tokens, c.attempt.token)
		}
	}
	return tokens
}

const (
	maxUnresolved = 32   // named by an attempt
	maxCleanups   = 1024 // of one key under way: a node that hangs makes one an attempt; then the oldest are not repeated any more
)
