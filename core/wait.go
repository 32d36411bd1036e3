package core

import "math/bits"

// How an acquire waits when it polls, or when nodes fail, and how it ends. See queue.go and contend.go for the other ways.

// loseAttempt cleans up after an attempt and ends the request, or waits for the next attempt.
func (m *Machine) loseAttempt(h *hold, failure Outcome) {
	if failure.Status == Held && m.proposeAnother(h) {
		return
	}
	retryIn := m.pause(h, failure)
	m.abandon(h.attempt)
	final := failure.Status != Held && (failure.Status != Unavailable || inVain(h.attempt.votes))
	tired := h.maxTries > 0 && h.attempts >= h.maxTries
	weary := h.limit == Never && h.backoff > 0 && m.now >= h.badSince.add(m.config.UnavailableAfter)
	if !h.limited || final || tired || weary {
		m.move(h, failed)
		m.answerAcquire(h, failure)
		return
	}
	h.lastFailure = &failure
	m.move(h, refused)
	h.next = m.now.add(retryIn)
	m.schedule(h)
}

// pause is how long to wait before the next attempt.
func (m *Machine) pause(h *hold, failure Outcome) Duration {
	contention := failure.Status == Held
	if t := count(h.attempt.votes); h.contends() && failure.Status == Unavailable && t.no > 0 && t.yes+t.no >= quorum(t.nodes()) {
		contention = true // enough nodes are there
	}
	if failure.Status == Unavailable && !contention {
		if h.backoff == 0 {
			h.badSince = m.now
		}
		h.backoff = min(max(2*h.backoff, backoffMin), backoffMax)
		return h.jitter(h.backoff/2, h.backoff)
	}
	h.backoff = 0
	if h.contends() && contention {
		return m.contend(h)
	}
	pause := h.jitter(h.retryDelay, h.retryDelay+h.retryJitter)
	for _, g := range h.attempt.grants {
		if g.retryIn > 0 && !h.policy { // the holder's key expires then
			pause = min(pause, g.retryIn+h.jitter(0, 2*Millisecond))
		}
	}
	return pause
}

// jitter draws from low..high by the seed of the request (splitmix64).
func (h *hold) jitter(low, high Duration) Duration {
	x := uint64(h.attempts+h.beats) * 0x9e3779b97f4a7c15
	for _, b := range h.seed[:8] {
		x = bits.RotateLeft64(x, 8) ^ uint64(b)
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return low + Duration((x^x>>31)%uint64(high-low+1))
}

// answerAcquire gives an acquire its outcome; without a lock that is its end.
func (m *Machine) answerAcquire(h *hold, o Outcome) {
	o.Op = h.id
	if h.limited {
		m.waiters--
	}
	if o.Status != OK {
		m.timers.set(&h.timer, nil, Never)
		delete(m.holds, h.id)
	}
	m.outcome(o)
	if h.waitsInLine() {
		m.leaveLine(h, o)
	}
}

// giveUp ends an acquire that waits.
func (h *hold) giveUp(m *Machine, status Status, message string) {
	m.stopWaiting(h)
	m.move(h, failed)
	m.answerAcquire(h, Outcome{Status: status, Message: message})
}

// stopWaiting cleans up what an acquire that ends has under way.
func (m *Machine) stopWaiting(h *hold) {
	switch h.state {
	case pausing:
		h.paused = true
	case asking, raising:
		m.abandon(h.attempt)
	case queued:
		if !m.bequeath(h) {
			m.abandon(h.attempt)
		}
	}
}

// schedule sets the hold's timer for the next thing that it waits for.
func (m *Machine) schedule(h *hold) {
	at := h.limit
	switch h.state {
	case pausing, queued:
		at = min(h.next, h.limit)
	case held:
		at = min(h.renewAt, h.deadline)
	}
	m.timers.set(&h.timer, h, at)
}

// wake is called when the hold's timer is due.
func (h *hold) wake(m *Machine) {
	switch {
	case h.state == held && m.now < h.deadline:
		m.autoRenew(h)
	case h.state == held:
		m.lose(h, expired, h.whyExpired())
	case m.now >= h.limit:
		m.timeOut(h)
	case h.state == pausing:
		m.move(h, due)
		m.schedule(h)
		m.attempt(h)
	case h.state == queued:
		m.beat(h)
	}
}

// timeOut ends an acquire whose limit has passed: TIMEOUT if someone else held the lock, UNAVAILABLE
// if too few nodes answered.
func (m *Machine) timeOut(h *hold) {
	failure := Outcome{Status: Held}
	switch first := m.firstInLine(h); {
	case first.lastFailure != nil:
		failure = *first.lastFailure
	case first.state == asking, first.state == raising: // the first attempt is still in flight
		failure = m.verdict(first.attempt.votes)
	}
	if failure.Status == Held {
		failure = Outcome{Status: Timeout, Message: "someone else held it all the time"}
	}
	m.stopWaiting(h)
	m.move(h, failed)
	m.answerAcquire(h, failure)
}
