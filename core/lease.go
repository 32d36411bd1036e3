package core

import "github.com/libredlock/libredlock/core/script"

// renewal extends a hold on all nodes.
type renewal struct {
	round
	hold    *hold
	op      OpID // 0 once it was answered
	ttl     Duration
	args    []string
	retried []bool // nodes that were asked a second time
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
	case h.renewal != nil:
		m.fail(e.Op, Invalid, "a renewal of this hold is under way; one at a time is allowed")
		return
	}
	if wrong := checkTTL(ttl); wrong != "" {
		m.fail(e.Op, Invalid, wrong)
		return
	}
	ttl = wholeMs(ttl)
	m.shorten(h, ttl)
	h.lock.ttl = ttl
	n := len(m.config.Nodes)
	wait := m.config.nodeTimeout(ttl)
	r := &renewal{
		hold:    h,
		op:      e.Op,
		ttl:     ttl,
		round:   round{votes: make([]vote, n), wait: wait},
		args:    h.lock.renewCommand(h.attempt.token),
		retried: make([]bool, n),
	}
	for i, g := range h.attempt.grants {
		if g.asked { // the renewal could overtake it, find nothing, and be undone by it
			r.votes[i] = vote{answer: noAnswer, cause: "no answer to the acquire yet"}
		}
	}
	h.renewal = r
	m.owed[e.Op] = r
	m.ask(&r.round, r, r, script.MutexRenew, r.args)
}

// shorten makes a lease end no later than one of this ttl from now would: the holder
// has asked for less, and counts on no more, even if the nodes never hear of it.
func (m *Machine) shorten(h *hold, ttl Duration) {
	most := leaseEnd(m.now, ttl)
	for i := range h.attempt.grants {
		g := &h.attempt.grants[i]
		g.end = min(g.end, most)
	}
	m.extend(h)
}

// extend takes over what the nodes' leases say about the deadline.
func (m *Machine) extend(h *hold) {
	deadline := h.attempt.deadline()
	if deadline == h.deadline {
		return
	}
	h.deadline = deadline
	m.schedule(h)
	m.notice(Notice{Kind: NoticeDeadline, Hold: h.id, Deadline: deadline})
}

func (r *renewal) answered(m *Machine, c *call, v vote, _ []Value) {
	if v.answer == yes && r.hold.state == held { // a late yes counts too
		g := &r.hold.attempt.grants[c.node]
		g.end = max(g.end, leaseEnd(c.sent, r.ttl))
		m.extend(r.hold)
	}
	if r.op == 0 {
		return
	}
	if (c.fault == Unknown || c.fault == Refused) && !r.retried[c.node] {
		r.retried[c.node] = true
		m.send(call{asker: r, node: c.node, script: script.MutexRenew, args: r.args, wait: r.wait})
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
	switch t := count(r.votes); {
	case t.won():
		r.end(m, Outcome{Status: OK, Deadline: r.hold.deadline})
	case t.refused():
		m.lose(r.hold, taken, "its key is gone or another's")
	case t.hopeless():
		o := m.verdict(r.votes)
		o.Message += "; held until the deadline"
		r.end(m, o)
	}
}

func (r *renewal) end(m *Machine, o Outcome) {
	m.timers.set(&r.timer, nil, Never)
	o.Op = r.op
	r.op = 0
	r.hold.renewal = nil
	m.outcome(o)
}

func (r *renewal) giveUp(m *Machine, status Status, message string) {
	r.end(m, Outcome{Status: status, Message: message})
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
	m.clean(h, script.MutexRelease, 0)
	m.notice(Notice{Kind: NoticeLost, Hold: h.id, Cause: why})
}

func (m *Machine) release(e *Release) {
	h := m.holds[e.Hold]
	if h == nil || h.state.waiting() {
		m.fail(e.Op, NotHeld, "not held: never acquired, or released already")
		return
	}
	if h.renewal != nil {
		h.renewal.giveUp(m, Canceled, "the lock was released meanwhile")
	}
	wasLost := h.state == lost
	m.move(h, released)
	m.timers.set(&h.timer, nil, Never)
	delete(m.holds, h.id)
	if wasLost {
		m.fail(e.Op, Lost, h.lostWhy)
		return
	}
	m.clean(h, script.MutexRelease, e.Op)
}
