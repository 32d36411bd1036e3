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
	debts   []debt   // by node
	again   [2]Time  // when to tell those who are not done again
	stage   int      // how many of these have passed
	timer   timer

	op    OpID   // the Release that waits for it, 0 if none does (any more)
	votes []vote // for that
	limit Time   // of that

	prolonged bool // limit was, once

	oneDebt [1]debt
	oneVote [1]vote
}

// debt is what a cleanup has still to do at one node.
type debt struct {
	done    bool // it certainly holds nothing of ours, and never will
	untold  int  // how many calls to it have no answer
	unsure  bool // another release than the one that is answered may have been executed
	retried bool // the release was sent once more, after a failure
}

// abandon undoes an attempt that did not win.
func (m *Machine) abandon(a *attempt) {
	m.timers.set(&a.timer, nil, Never)
	delete(m.queue.places, a.token)
	m.clean(a.hold, a.hold.lock.kind.scripts.Undo, 0)
}

// clean begins a cleanup of a hold's attempt; op is the release that waits for it, or 0.
func (m *Machine) clean(h *hold, s *script.Script, op OpID) {
	a := h.attempt
	n := len(a.grants)
	wait := m.config.nodeTimeout(h.lock.ttl)
	c := &cleanup{
		attempt: a,
		script:  s,
		args:    h.lock.endCommand(s, a.token, a.slot),
		wait:    wait,
		again:   [2]Time{m.now.add(min(undoAgainAfter, h.lock.ttl/2)), m.now.add(max(undoAgainAfter, h.lock.ttl/2))},
		op:      op,
		limit:   m.now.add(wait),
	}
	c.debts = perNode(n, &c.oneDebt)
	a.cleanup = c
	for i, g := range a.grants {
		c.debts[i].done = !g.granted && !g.open
	}
	if op != 0 {
		c.votes = perNode(n, &c.oneVote)
		m.owed[op] = c
		for i := range c.votes {
			if c.debts[i].done {
				c.votes[i].answer = no
			}
		}
	}
	if c.finished() {
		if op != 0 {
			c.decide(m)
		}
		return
	}
	m.cleanups[h.lock.key] = append(m.cleanups[h.lock.key], c)
	c.tellAll(m)
	c.schedule(m)
	if oldest := m.cleanups[h.lock.key][0]; len(m.cleanups[h.lock.key]) > maxCleanups && oldest.op == 0 {
		oldest.forget(m)
	}
}

// finished tells whether nothing of ours is left anywhere.
func (c *cleanup) finished() bool {
	for i := range c.debts {
		if !c.debts[i].done {
			return false
		}
	}
	return true
}

func (c *cleanup) tell(m *Machine, node int) {
	d := &c.debts[node]
	d.unsure = d.unsure || d.untold > 0
	d.untold++
	m.send(call{asker: c, node: node, script: c.script, args: c.args, wait: c.wait, early: c.attempt.grants[node].open})
}

func (c *cleanup) tellAll(m *Machine) {
	for node := range c.debts {
		if !c.debts[node].done {
			c.tell(m, node)
		}
	}
}

// schedule sets the timer: for the release's limit, the next repetition, or the end.
func (c *cleanup) schedule(m *Machine) {
	at := Never
	if c.stage < len(c.again) {
		at = c.again[c.stage]
	}
	if c.op != 0 {
		at = min(at, c.limit)
	}
	m.timers.set(&c.timer, c, at)
}

func (c *cleanup) prolong(m *Machine) {
	if c.op != 0 && !c.prolonged {
		c.prolonged = true
		c.limit = m.now.add(c.wait)
		c.schedule(m)
	}
}

func (c *cleanup) wake(m *Machine) {
	if c.op != 0 && m.now >= c.limit {
		timedOut := round{votes: c.votes, wait: c.wait}
		timedOut.timeOut()
		c.decide(m)
	}
	before := c.stage
	for c.stage < len(c.again) && m.now >= c.again[c.stage] {
		c.stage++
	}
	if c.stage > before {
		c.tellAll(m)
	}
	if c.stage == len(c.again) && c.op == 0 {
		c.forget(m)
		return
	}
	c.schedule(m)
}

// answered brings a node's answer to an undo or release.
func (c *cleanup) answered(m *Machine, answered *call, v vote, values []Value) {
	node := answered.node
	d, g := &c.debts[node], &c.attempt.grants[node]
	d.untold--
	// What was removed may have come from either of two calls: the other may still be executed.
	if v.answer == yes && !(g.open && g.again) || v.answer == no && !answered.early {
		d.done = true
	}
	if c.op != 0 {
		failed := answered.fault == Unknown || answered.fault == Refused
		d.unsure = d.unsure || answered.fault == Unknown || answered.fault == ErrorReply // a script that failed may have got halfway
		if failed && !d.retried {
			d.retried = true
			c.tell(m, node)
			return
		}
		if v.answer == no && d.unsure && m.now < g.end {
			v.answer = yes // gone, or another's already: by our own release, since the lease there is not over
		}
		if v.answer == yes {
			m.told(c, answered, values)
		}
		if c.votes[node].answer != yes {
			c.votes[node] = v
		}
		c.decide(m)
	}
	if c.finished() {
		c.forget(m)
	}
}

// told takes in how many have heard of a release, or why none could.
func (m *Machine) told(c *cleanup, answered *call, values []Value) {
	heard, ok := integers(values, 1)
	if !ok {
		return // nobody was to hear of it
	}
	m.yield(c.attempt.hold.lock.id(), answered.node, heard[0].Int, Duration(m.now-answered.sent))
	n, mute := &m.nodes[answered.node], len(values) == 2 && values[1].IsString
	if mute && !n.muteTold {
		n.muteTold = true
		m.notice(Notice{Kind: NoticeHealth, Node: answered.node, Cause: "a release can't be published, so that waiters find it out up to a second later: " + values[1].Str})
	}
	n.mute = mute
}

// settled brings a node's late answer to the acquire itself.
func (c *cleanup) settled(m *Machine, node int, granted bool) {
	d, g := &c.debts[node], &c.attempt.grants[node]
	switch {
	case d.done:
	case granted: // after the undo, for all we know
		c.tell(m, node)
	case !g.open && !g.granted:
		d.done = true
		if c.finished() && c.op == 0 {
			c.forget(m)
		}
	}
}

// decide answers the release when a quorum has confirmed it, or can't.
func (c *cleanup) decide(m *Machine) {
	switch t := count(c.votes); {
	case t.won():
		c.answerRelease(m, Outcome{Status: OK})
	case t.refused():
		c.answerRelease(m, Outcome{Status: Lost, Message: "its key was gone or another's before the release"})
	case t.hopeless():
		o := m.verdict(c.votes)
		o.Message += "; the release is being repeated in the background"
		c.answerRelease(m, o)
	}
}

func (c *cleanup) answerRelease(m *Machine, o Outcome) {
	o.Op = c.op
	c.op = 0
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
		if c.op == 0 { // else its owner still waits to hear that it was there
			tokens = append(tokens, c.attempt.token)
		}
	}
	return tokens
}

const (
	maxUnresolved = 32   // named by an attempt
	maxCleanups   = 1024 // of one key under way: a node that hangs makes one an attempt; then the oldest are not repeated any more
)
