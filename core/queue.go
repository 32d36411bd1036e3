package core

import (
	"slices"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core/script"
)

// Waiting on one deployment. The acquire that is refused takes a place in the lock's queue, in the same script. Whoever
// gives the lock up makes the first place's token its holder and publishes that on the waiter's channel. A waiter beats: it
// says that it lives, and learns what a lost message would have told it.
//
// A client has one place for all of its acquires of a lock: they wait in a line, and the first of it has the place.

// queue is what a machine knows of its waiters.
type queue struct {
	client    string              // names this client in places and on its channel; "" before the first waiter
	phase     Duration            // of its beats
	listening bool                // to the channel
	lines     map[lockID]*line    // by lock
	places    map[string]*attempt // those that may have a place, by token
}

// line is the acquires of a client that wait for one lock, in their order. Those that ended in the
// middle are still there, until they come first or there are too many of them.
type line struct {
	holds []*hold
	ended int
}

const wakeChannel = "redlock:wake:"

// takesPlace tells whether an acquire may wait, and does so in the queue.
func (h *hold) takesPlace() bool { return h.lock.queued && h.limited }

// waitsInLine tells whether an acquire waits behind those of its client.
func (h *hold) waitsInLine() bool { return h.takesPlace() || h.contends() }

// line puts a new acquire at the end of its client's line. The first attempts.
func (m *Machine) line(h *hold, e *Acquire) {
	if m.queue.client == "" && h.takesPlace() {
		m.queue.client = script.Digest("libredlock client " + string(e.Seed[:]))[:secretBytes]
		m.queue.phase = h.jitter(0, beatMost)
	}
	l := m.queue.lines[h.lock.id()]
	if l == nil {
		m.queue.lines[h.lock.id()] = &line{holds: []*hold{h}}
		if until := m.yieldsTo(h); until != 0 {
			m.move(h, yielded)
			h.yielded = true
			h.next = until
			m.schedule(h)
			return
		}
		m.attempt(h)
		return
	}
	l.holds = append(l.holds, h)
	m.move(h, preceded)
}

// firstInLine is the one for whom an acquire waits within its client: itself, if it does not wait behind another.
func (m *Machine) firstInLine(h *hold) *hold {
	if h.state == behind {
		return m.queue.lines[h.lock.id()].holds[0]
	}
	return h
}

// leaveLine takes an acquire that has its outcome out of the line, and lets the next one come first.
func (m *Machine) leaveLine(h *hold, o Outcome) {
	l := m.queue.lines[h.lock.id()]
	if l == nil {
		return // the client closes
	}
	if l.holds[0] != h {
		if l.ended++; l.ended > len(l.holds)/2 {
			l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool { return !h.state.waiting() })
			l.ended = 0
		}
		return
	}
	l.holds[0] = nil
	l.holds = l.holds[1:]
	for len(l.holds) > 0 && !l.holds[0].state.waiting() {
		l.holds[0] = nil
		l.holds = l.holds[1:]
		l.ended--
	}
	if len(l.holds) == 0 || m.closing != nil {
		m.endLine(h)
		return
	}
	if o.Status == Unavailable && h.limit == Never || o.Status == Unsupported || o.Status == WrongKind {
		m.failTogether(h, o)
		return
	}
	switch next := l.holds[0]; {
	case next.state != behind:
	case h.paused && h.contends():
		m.promote(next, h)
	default:
		next.lastFailure = h.lastFailure
		if o.Status == OK {
			next.lastFailure = heldByAnother()
		}
		m.move(next, due)
		m.attempt(next)
	}
}

func (m *Machine) endLine(h *hold) {
	delete(m.queue.lines, h.lock.id())
	if c := m.contests[h.lock.id()]; c != nil {
		c.leave(m)
	}
}

// failTogether lets those fail with the one before them who would only find out the same, one after the other. Who has a limit
// bears nodes that fail until then.
func (m *Machine) failTogether(h *hold, o Outcome) {
	l := m.queue.lines[h.lock.id()]
	delete(m.queue.lines, h.lock.id())
	var rest []*hold
	for _, next := range l.holds {
		switch {
		case next.state != behind:
		case o.Status == Unavailable && next.limit != Never:
			rest = append(rest, next)
		default:
			m.move(next, failed)
			m.answerAcquire(next, o)
		}
	}
	if len(rest) == 0 {
		m.endLine(h)
		return
	}
	m.queue.lines[h.lock.id()] = &line{holds: rest}
	rest[0].lastFailure = h.lastFailure
	m.move(rest[0], due)
	m.attempt(rest[0])
}

// bequeath leaves the place of an acquire that gives up to the next in line, if that one wants the same. It tells whether it does.
func (m *Machine) bequeath(h *hold) bool {
	l := m.queue.lines[h.lock.id()]
	if l == nil || m.closing != nil {
		return false
	}
	i := 1 + slices.IndexFunc(l.holds[1:], func(next *hold) bool { return next.state == behind })
	if i == 0 {
		return false
	}
	next := l.holds[i]
	if next.lock.ttl != h.lock.ttl || next.lock.fencing != h.lock.fencing || next.lock.permits != h.lock.permits || next.who != h.who {
		return false
	}
	next.attempt, h.attempt.hold = h.attempt, next
	next.attempts, next.next = h.attempts, h.next
	next.lastFailure = h.lastFailure
	m.move(next, inherited)
	m.schedule(next)
	return true
}

// takePlace waits for one's turn.
func (m *Machine) takePlace(h *hold) {
	a := h.attempt
	m.timers.set(&a.timer, nil, Never)
	m.move(h, placed)
	if !m.queue.listening {
		m.queue.listening = true
		m.effects.Subscriptions = append(m.effects.Subscriptions, Subscription{Channel: wakeChannel + m.queue.client, On: true})
	}
	h.backoff = 0
	h.lastFailure = heldByAnother()
	m.planBeat(h)
}

func heldByAnother() *Outcome { return &Outcome{Status: Held, Message: "someone else holds it"} }

// What refusal() in queue.lua says of a place.
const (
	turnNext = 1 // it is the first: whoever gives the lock up hands it over
	turnPoll = 2 // it is the first, and the holder hands over to nobody
)

// planBeat sets the time of the next beat. All places of a client that have the same period beat at the same time, and clients
// that have the same clock do not.
func (m *Machine) planBeat(h *hold) {
	a := h.attempt
	period := h.lock.beatPeriod()
	h.beats++
	h.next = m.now.add(period)
	h.next -= (h.next + Time(m.queue.phase)) % Time(period)
	if h.next <= m.now {
		h.next = m.now.add(period)
	}
	if a.turn == turnPoll {
		h.next = min(h.next, m.now.add(h.jitter(h.retryDelay, h.retryDelay+h.retryJitter)))
	}
	if left := a.grants[0].retryIn; left > 0 && a.turn != 0 { // the holder's key expires then
		h.next = min(h.next, m.now.add(left+h.jitter(0, 2*Millisecond)))
	}
	m.schedule(h)
}

// beat says that a waiter lives.
func (m *Machine) beat(h *hold) {
	a := h.attempt
	m.send(call{
		asker:  a,
		script: h.lock.kind.scripts.Beat,
		args:   h.lock.beatCommand(a.token, m.queue.client, m.now),
		wait:   a.wait,
		ttl:    h.lock.ttl,
	})
	h.beats++
	h.next = m.now.add(h.lock.beatPeriod())
	m.schedule(h)
}

// beaten brings the answer to a beat.
func (m *Machine) beaten(a *attempt, c *call, v vote, values []Value) {
	h, g := a.hold, &a.grants[0]
	refused, ok := integers(values, 2)
	var fence int64
	if v.answer == yes {
		g.granted = true
		if fence, ok = a.given(values); !ok {
			v = c.senseless()
		}
	}
	if v.answer == yes {
		g.end = max(g.end, leaseEnd(c.sent, c.ttl))
	}
	switch {
	case a.cleanup != nil, a != h.attempt: // given up, or gone, meanwhile
	case h.state == held:
		m.extend(h)
	case h.state != queued:
	case v.answer == yes:
		m.handedOver(a, fence)
	case v.answer == no && v.wrongKind == "" && c.code == script.Gone:
		delete(m.queue.places, a.token)
		h.backoff = 0
		m.move(h, displaced)
		m.attempt(h)
	case v.answer == no && v.wrongKind == "" && ok:
		h.backoff = 0
		h.lastFailure = heldByAnother()
		a.turn, g.retryIn = refused[1].Int, 0
		if refused[0].Int >= 0 {
			g.retryIn = Duration(refused[0].Int+1) * Millisecond
		}
		m.planBeat(h)
	default:
		m.missBeat(h, v)
	}
}

// missBeat handles a beat that failed: the place lives for two more, and the wait for as long as it bears a failing node.
func (m *Machine) missBeat(h *hold, v vote) {
	a := h.attempt
	a.votes[0] = v
	failure := m.verdict(a.votes)
	if h.backoff == 0 {
		h.badSince = m.now
	}
	h.backoff = backoffMin
	weary := h.limit == Never && m.now >= h.badSince.add(m.config.UnavailableAfter)
	if failure.Status != Unavailable || inVain(a.votes) || weary {
		m.abandon(a)
		m.move(h, failed)
		m.answerAcquire(h, failure)
		return
	}
	h.lastFailure = &failure
	h.next = min(h.next, m.now.add(h.jitter(backoffMin/2, backoffMin)))
	m.schedule(h)
}

// subscribed: what was published before was missed.
func (m *Machine) subscribed(e *Subscribed) {
	if e.Node >= 0 && e.Node < len(m.nodes) {
		m.nodes[e.Node].deaf = false
	}
	if key, ok := strings.CutPrefix(e.Channel, releasedChannel); ok {
		m.hears(e.Node, key, true)
		return
	}
	if m.queue.client == "" || e.Channel != wakeChannel+m.queue.client {
		return
	}
	var waiting []OpID
	for _, l := range m.queue.lines {
		if first := l.holds[0]; first.state == queued {
			waiting = append(waiting, first.id)
		}
	}
	slices.Sort(waiting)
	for _, id := range waiting {
		m.beat(m.holds[id])
	}
}

// dropped: a message that is missed costs no more than a beat, or than asking again after a time. But one may be missing rights.
func (m *Machine) dropped(e *Dropped) {
	if key, ok := strings.CutPrefix(e.Channel, releasedChannel); ok {
		m.hears(e.Node, key, false)
	}
	if e.Node >= 0 && e.Node < len(m.nodes) && denies(e.Cause) {
		n := &m.nodes[e.Node]
		n.deaf = true
		if n.deafTold {
			return
		}
		n.deafTold = true
		m.notice(Notice{Kind: NoticeHealth, Node: e.Node, Cause: "releases can't be listened to, so that this client finds them out up to a second later: " + e.Cause})
	}
}

// message tells that the lock was handed over to one of our places. What makes no sense, or is no longer waited for, is
// ignored: it is found out by a beat, or was undone.
func (m *Machine) message(e *Message) {
	if key, ok := strings.CutPrefix(e.Channel, releasedChannel); ok {
		m.released(e.Node, key, e.Payload)
		return
	}
	if e.Channel != wakeChannel+m.queue.client {
		return
	}
	a, told := m.handOver(e.Payload)
	if a == nil || a.hold.state != asking && a.hold.state != queued || told.sent > m.now {
		return
	}
	// The node heard of this waiter after that was sent, and handed over so much later by its own clock, which may run fast.
	begun := min(told.sent.add(told.elapsed-told.elapsed/100), m.now)
	g := &a.grants[0]
	g.granted = true
	g.asked = false // the acquire was executed: without a place there is no hand-over
	g.end = max(g.end, leaseEnd(begun, min(a.hold.lock.ttl, handedOverMost)))
	if a.deadline() <= m.now { // it came late: is it still ours?
		if a.hold.state == queued {
			m.beat(a.hold)
		}
		return
	}
	a.hold.unconfirmed = true
	a.slot = told.slot
	m.handedOver(a, told.fence)
}

// handOver is what a message tells of a place that has become the holder.
type handOver struct {
	sent    Time     // by the place's client, what its node heard of it last,
	elapsed Duration // and what has passed there since
	fence   int64
	slot    string
}

// handOver reads a message, and finds the place that it is about; nil if there is none or it makes no sense. It is
// kind, token, sent, elapsed, fence, the slot of a semaphore, and the lock's name, which may have blanks.
func (m *Machine) handOver(payload string) (a *attempt, told handOver) {
	words := strings.SplitN(payload, " ", 6)
	if len(words) != 6 {
		return nil, told
	}
	if a = m.queue.places[words[1]]; a == nil || words[0] != a.hold.lock.kind.name {
		return nil, told
	}
	sent, err1 := strconv.ParseInt(words[2], 10, 64)
	elapsed, err2 := strconv.ParseInt(words[3], 10, 64)
	fence, err3 := strconv.ParseInt(words[4], 10, 64)
	key := words[5]
	if a.hold.lock.kind.slots {
		told.slot, key, _ = strings.Cut(key, " ")
	}
	if err1 != nil || err2 != nil || err3 != nil || elapsed < 0 || (fence > 0) != a.hold.lock.fencing || key != a.hold.lock.key {
		return nil, told
	}
	told.sent, told.elapsed, told.fence = Time(sent), Duration(elapsed), fence
	return a, told
}

// handedOver makes a place that has become the holder a hold.
func (m *Machine) handedOver(a *attempt, number int64) {
	h := a.hold
	deadline := a.deadline()
	if deadline <= m.now {
		m.loseAttempt(h, Outcome{Status: Unavailable, Message: "the node answered too late: the lease of " + milliseconds(h.lock.ttl) + " was over"})
		return
	}
	a.fence, a.grants[0].fence = number, number
	m.hold(h, deadline)
	if h.unconfirmed && h.state == held {
		m.beginRenewal(h, 0)
	}
}
