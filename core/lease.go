package core

import "github.com/libredlock/libredlock/core/script"

// renewal extends a hold on all nodes: for its owner, or because it is due.
type renewal struct {
	round
	hold  *hold
	op    OpID // of the owner's request; 0 if there is none, or no more
	over  bool
	won   bool
	args  []string
	nodes []renewing

	oneVote [1]vote
	oneNode [1]renewing
}

// renewing is how far a renewal is at one node.
type renewing struct {
	later   bool // it waits for the answer to the acquire: it could overtake it, find nothing, and be undone by it
	retried bool // asked a second time
	gone    bool // the node has forgotten the hold
}

func (m *Machine) renew(e *Renew) {
	h := m.holds[e.Hold]
	ttl := e.TTL
	if h != nil && ttl == 0 {
		ttl = h.lock.ttl
	}
	switch {
	case h == nil || h.state.waiting():
		m.fail(e.Op, NotHeld, "not held: never acquired, or released already")
		return
	case h.state == lost:
		m.fail(e.Op, Lost, h.lostWhy)
		return
	case h.renewal != nil && h.renewal.op != 0:
		m.fail(e.Op, Invalid, "a renewal of this hold is under way; one at a time is allowed")
		return
	}
	if wrong := checkTTL(ttl); wrong != "" {
		m.fail(e.Op, Invalid, wrong)
		return
	}
	h.lock.ttl = wholeMs(ttl)
	m.shorten(h)
	m.beginRenewal(h, e.Op)
}

// shorten makes a lease end no later than one of the lock's ttl from now would: the holder
// has asked for less, and counts on no more, even if the nodes never hear of it.
func (m *Machine) shorten(h *hold) {
	most := leaseEnd(m.now, h.lock.ttl)
	for i := range h.attempt.grants {
		g := &h.attempt.grants[i]
		g.end = min(g.end, most)
	}
	m.extend(h)
}

// beginRenewal asks all nodes to extend a hold. What is under way without an owner gives way.
func (m *Machine) beginRenewal(h *hold, op OpID) {
	n := len(m.config.Nodes)
	wait := m.config.nodeTimeout(h.lock.ttl)
	if op == 0 {
		wait = max(min(wait, Duration(h.deadline-m.now)/3), MinNodeWait) // there may be time for another
	}
	r := &renewal{
		hold:  h,
		op:    op,
		round: round{wait: wait, ttl: h.lock.ttl},
		args:  h.lock.renewCommand(h.attempt.token, h.attempt.slot),
	}
	r.votes, r.nodes = perNode(n, &r.oneVote), perNode(n, &r.oneNode)
	if h.renewal != nil {
		h.renewal.stop(m)
	}
	h.renewal = r
	h.renewAt = Never
	m.schedule(h)
	if op != 0 {
		m.owed[op] = r
	}
	for node, g := range h.attempt.grants {
		r.nodes[node].later = g.asked
		if !g.asked {
			r.send(m, node)
		}
	}
	m.timers.set(&r.timer, r, m.now.add(r.wait))
}

func (r *renewal) send(m *Machine, node int) {
	m.send(call{asker: r, node: node, script: r.hold.lock.kind.scripts.Renew, args: r.args, wait: r.wait, ttl: r.ttl})
}

// join asks a node that has answered the acquire at last.
func (r *renewal) join(m *Machine, node int) {
	if n := &r.nodes[node]; n.later {
		n.later = false
		r.send(m, node)
	}
}

// extend takes over what the nodes' leases say about the deadline.
func (m *Machine) extend(h *hold) {
	deadline := min(h.attempt.deadline(), h.most)
	if deadline == h.deadline {
		return
	}
	h.deadline = deadline
	m.schedule(h)
	m.notice(Notice{Kind: NoticeDeadline, Hold: h.id, Deadline: deadline})
}

// planRenewal sets the time of the next renewal: when a third of the ttl has passed since the last one that a quorum confirmed
// was sent, or a little earlier, so that many holds are renewed at the same time.
func (m *Machine) planRenewal(h *hold) {
	h.renewAt = Never
	if end := h.attempt.deadline(); h.autoRenew && end < h.most {
		period := h.lock.ttl / 3
		h.renewAt = end.add(period - (h.lock.ttl - drift(h.lock.ttl)))
		h.renewAt -= h.renewAt % Time(period/renewTogether)
	}
	m.schedule(h)
}

// hurryRenewal sets the time of the next renewal after one that failed: the sooner, the less is left.
func (m *Machine) hurryRenewal(h *hold) {
	if h.autoRenew || h.unconfirmed {
		left := Duration(h.deadline - m.now)
		h.renewAt = m.now.add(max(left/renewHurry, renewAgainMin))
		m.schedule(h)
	}
}

const (
	renewTogether = 32               // parts of a period: holds that are due in the same part are renewed together
	renewHurry    = 8                // the part of what is left after which a failed renewal is tried again
	renewAgainMin = 20 * Millisecond // and at the soonest
)

// autoRenew renews a hold that is due.
func (m *Machine) autoRenew(h *hold) {
	if h.renewal != nil { // its owner's: what follows is planned at its end
		h.renewAt = Never
		m.schedule(h)
		return
	}
	m.beginRenewal(h, 0)
}

func (r *renewal) answered(m *Machine, c *call, v vote, _ []Value) {
	h := r.hold
	if h.state == held {
		switch {
		case v.answer == yes: // a late one counts too
			g := &h.attempt.grants[c.node]
			g.end = max(g.end, leaseEnd(c.sent, c.ttl))
			m.extend(h)
		case v.answer == no && c.code == script.Gone:
			r.nodes[c.node].gone = true
			if r.won {
				m.regrant(h, c.node)
			}
		}
	}
	if r.over {
		return
	}
	if n := &r.nodes[c.node]; (c.fault == Unknown || c.fault == Refused) && !n.retried {
		n.retried = true
		r.send(m, c.node)
		return
	}
	r.votes[c.node] = v
	r.decide(m)
}

func (r *renewal) wake(m *Machine) {
	r.timeOut()
	r.decide(m)
}

func (r *renewal) decide(m *Machine) {
	h := r.hold
	switch t := count(r.votes); {
	case t.won():
		r.won = true
		h.trouble, h.unconfirmed = "", false
		r.end(m, Outcome{Status: OK, Deadline: h.deadline})
		m.planRenewal(h)
		for node := range r.nodes {
			if r.nodes[node].gone {
				m.regrant(h, node)
			}
		}
	case t.refused():
		m.lose(h, taken, "its key is gone or another's")
	case t.hopeless():
		o := m.verdict(r.votes)
		h.trouble = (&Error{Message: o.Message, Nodes: o.Nodes}).line()
		o.Message += "; held until the deadline"
		r.end(m, o)
		m.hurryRenewal(h)
	}
}

// regrant lets a node that has forgotten a hold grant it again, since a quorum confirms it. Like any grant it is
// undone on that node if the answer does not come.
func (m *Machine) regrant(h *hold, node int) {
	a := h.attempt
	g := &a.grants[node]
	if g.asked {
		return
	}
	g.asked, g.open, g.again = true, true, true
	m.send(call{asker: a, node: node, script: h.lock.kind.scripts.Regrant, args: h.lock.regrantCommand(a.token, a.slot, a.fence), wait: a.wait, ttl: h.lock.ttl})
}

// end answers the owner's request, if there is one.
func (r *renewal) end(m *Machine, o Outcome) {
	op := r.op
	r.stop(m)
	if op != 0 {
		o.Op = op
		m.outcome(o)
	}
}

// stop lets a renewal decide nothing any more.
func (r *renewal) stop(m *Machine) {
	m.timers.set(&r.timer, nil, Never)
	r.op, r.over = 0, true
	r.hold.renewal = nil
}

// giveUp ends the owner's request. The nodes may still extend the lease.
func (r *renewal) giveUp(m *Machine, status Status, message string) {
	r.end(m, Outcome{Status: status, Message: message})
	if r.hold.state == held {
		m.hurryRenewal(r.hold)
	}
}

// lose ends a hold that is ours no longer, and says so. All nodes get a
// release, since the last renewal may have landed after all.
func (m *Machine) lose(h *hold, on trigger, why string) {
	m.move(h, on)
	h.lostWhy = why
	if h.renewal != nil {
		h.renewal.giveUp(m, Lost, why)
	}
	m.timers.set(&h.timer, nil, Never)
	m.clean(h, h.lock.kind.scripts.Release, 0)
	m.notice(Notice{Kind: NoticeLost, Hold: h.id, Cause: why})
}

// whyExpired tells why the deadline came.
func (h *hold) whyExpired() string {
	switch {
	case h.deadline == h.most:
		return "its max_hold of " + milliseconds(h.maxHold) + " passed"
	case h.trouble != "":
		return "its lease of " + milliseconds(h.lock.ttl) + " ran out, since it could not be renewed: " + h.trouble
	}
	return "its lease of " + milliseconds(h.lock.ttl) + " ran out"
}

func (m *Machine) release(e *Release) {
	h := m.holds[e.Hold]
	if h == nil || h.state.waiting() {
		m.fail(e.Op, NotHeld, "not held: never acquired, or released already")
		return
	}
	wasLost := h.state == lost
	m.move(h, released)
	if h.renewal != nil {
		h.renewal.giveUp(m, Canceled, "the lock was released meanwhile")
	}
	m.timers.set(&h.timer, nil, Never)
	delete(m.holds, h.id)
	if wasLost {
		m.fail(e.Op, Lost, h.lostWhy)
		return
	}
	m.clean(h, h.lock.kind.scripts.Release, e.Op)
}
