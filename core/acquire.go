package core

import (
	"cmp"
	"strconv"

	"github.com/libredlock/libredlock/core/script"
)

// hold is an acquire and what becomes of it.
type hold struct {
	id    OpID
	state state
	lock  lock
	who   string
	seed  [16]byte
	wall  Time // the wall clock is now + wall

	// While it waits.
	attempts    int
	beats       int
	yielded     bool     // before its first attempt
	paused      bool     // it was pausing when it gave up
	attempt     *attempt // the one in flight, then the one that won
	limited     bool     // Wait is not 0
	limit       Time     // of the wait
	next        Time     // attempt, while pausing
	policy      bool     // the caller has said how to poll
	retryDelay  Duration // before it: so long,
	retryJitter Duration // and up to this longer
	maxTries    int      // 0: as many as the limit allows
	backoff     Duration // before the next attempt that found too few nodes; 0: the last one did not
	badSince    Time     // since when it finds too few nodes, if backoff is not 0
	lastFailure *Outcome // of the attempt before; nil: none has ended yet

	// While it is held.
	deadline    Time
	autoRenew   bool
	unconfirmed bool     // it was handed over, and has still to be given its whole ttl
	maxHold     Duration // 0: no limit
	most        Time     // the deadline never exceeds it
	renewAt     Time     // when the next renewal is due; Never while one is outstanding
	renewal     *renewal // outstanding
	trouble     string   // why the last renewal failed; "" if it did not
	lostWhy     string
	timer       timer
}

// attempt asks every node for the lock, with a token of its own.
type attempt struct {
	round
	hold     *hold
	token    string
	begun    Time
	slot     string // of a semaphore: on several nodes the one that is proposed; "" until it is known
	fence    int64  // what a quorum agrees on
	grants   []grant
	disputed bool     // nobody seems to have a quorum of what it was refused
	placed   bool     // it may have a place in the queue
	turn     int64    // what the script said of that place last: see refusal() in queue.lua
	cleanup  *cleanup // once it did not win, or the hold has ended

	oneVote  [1]vote
	oneGrant [1]grant
}

// grant is what one node did with an attempt.
type grant struct {
	granted bool  // it said yes at least once
	asked   bool  // no answer yet
	again   bool  // it was asked a second time: see regrant
	open    bool  // whether it takes effect is not known: no answer, or an unknown outcome
	end     Time  // of the lease there
	fence   int64 // the counter there

	// Of a refusal: what stands at the key, for how long, and what it will tell. See refusal() in queue.lua.
	retryIn Duration
	turn    int64
	rivals  int64
	holder  string
	slots   string // that are free, by number, with commas between
}

func (m *Machine) acquire(e *Acquire) {
	kind, status, wrong := kindOf(e.Kind)
	if wrong != "" {
		m.fail(e.Op, status, wrong)
		return
	}
	h := &hold{
		id:    e.Op,
		lock:  lock{kind: kind, key: m.config.Prefix + e.Name, ttl: e.TTL, permits: e.Permits},
		who:   m.config.Who,
		seed:  e.Seed,
		wall:  Time(e.Wall) - m.now,
		limit: m.now.add(e.Wait),
	}
	h.limited = e.Wait != 0
	h.maxTries = e.Retry.MaxTries
	h.policy = e.Retry.Delay != 0
	h.retryDelay, h.retryJitter = cmp.Or(e.Retry.Delay, retryDelay), cmp.Or(e.Retry.Jitter, e.Retry.Delay, retryDelay)
	h.autoRenew = e.AutoRenew != Off
	h.maxHold = e.MaxHold
	if h.lock.ttl == 0 {
		h.lock.ttl = DefaultTTL
	}
	h.lock.fencing = e.Fencing != Off
	h.lock.queued = e.Queue != Off && len(m.config.Nodes) == 1
	h.lock.announced = e.Queue != Off && len(m.config.Nodes) > 1
	if h.lock.fencing || h.lock.queued {
		h.lock.side = sideKeysOf(h.lock.kind.name, h.lock.key)
	}
	if e.Metadata != "" {
		h.who += "/" + Escape(e.Metadata)
	}
	if status, wrong := m.checkAcquire(e, h); wrong != "" {
		m.fail(e.Op, status, wrong)
		return
	}
	h.lock.ttl = wholeMs(h.lock.ttl)
	m.holds[h.id] = h
	m.owed[h.id] = h
	if h.limited {
		m.waiters++
		m.schedule(h)
	}
	if h.waitsInLine() {
		m.line(h, e)
	} else {
		m.attempt(h)
	}
}

// checkAcquire says what is wrong with a request; "" if nothing.
func (m *Machine) checkAcquire(e *Acquire, h *hold) (Status, string) {
	switch {
	case h.lock.kind.slots && (e.Permits < 1 || e.Permits > MaxPermits):
		return Invalid, "permits is " + strconv.Itoa(e.Permits) + "; 1 to " + strconv.Itoa(MaxPermits) + " are allowed"
	case !h.lock.kind.slots && e.Permits != 0:
		return Invalid, "permits are for a semaphore"
	case e.Queue != Off && e.Retry != Retry{}:
		return Invalid, "retry_delay, retry_jitter and max_tries are for a wait without the queue: set queue to off"
	case e.MaxHold != 0 && e.MaxHold < MinTTL:
		return Invalid, "max_hold is " + milliseconds(e.MaxHold) + "; at least " + milliseconds(MinTTL) + ", or 0 for no limit, are allowed"
	case e.Wait < 0:
		return Invalid, "the wait is negative; 0 tries once"
	case len(h.who) > MaxWhoBytes:
		room := MaxWhoBytes - len(m.config.Who) - 1
		return Invalid, "the metadata takes " + strconv.Itoa(len(h.who)-len(m.config.Who)-1) +
			" bytes when percent-encoded; at most " + strconv.Itoa(room) + " are allowed here"
	case e.Retry.Delay != 0 && (e.Retry.Delay < Millisecond || e.Retry.Delay > retryMost):
		return Invalid, "retry_delay is " + milliseconds(e.Retry.Delay) + "; 1 ms to 1 h are allowed"
	case e.Retry.Jitter < 0 || e.Retry.Jitter > retryMost:
		return Invalid, "retry_jitter is " + milliseconds(e.Retry.Jitter) + "; 0 to 1 h are allowed"
	case e.Retry.MaxTries < 0:
		return Invalid, "max_tries is negative; 0 tries until the wait ends"
	case h.limited && m.waiters >= MaxWaiters:
		return Invalid, "more than " + strconv.Itoa(MaxWaiters) + " requests wait in this client"
	}
	if wrong := checkTTL(h.lock.ttl); wrong != "" {
		return Invalid, wrong
	}
	return Invalid, checkName(h.lock.key)
}

// wholeMs is what a server can be told of a duration.
func wholeMs(d Duration) Duration { return d - d%Millisecond }

func checkTTL(ttl Duration) string {
	if ttl < MinTTL || ttl > MaxTTL {
		return "the ttl is " + milliseconds(ttl) + "; 100 ms to 24 h are allowed"
	}
	return ""
}

// attempt asks all nodes at once.
func (m *Machine) attempt(h *hold) {
	n := len(m.config.Nodes)
	prefix := silentPrefix
	if h.lock.queued || h.lock.announced {
		prefix = tellingPrefix
	}
	a := &attempt{
		hold:  h,
		begun: m.now,
		token: newToken(prefix, h.seed, h.attempts, h.who),
		round: round{wait: m.config.nodeTimeout(h.lock.ttl), ttl: h.lock.ttl},
	}
	a.votes, a.grants = perNode(n, &a.oneVote), perNode(n, &a.oneGrant)
	for i := range a.grants {
		a.grants[i].open, a.grants[i].asked = true, true
	}
	if h.lock.kind.slots && n > 1 {
		a.slot = m.propose(h)
	}
	h.attempts++
	h.attempt = a
	if c := m.contests[h.lock.id()]; c != nil && h.contends() {
		c.attempted()
	}
	m.ask(&a.round, a, a, h.lock.kind.scripts.Acquire, m.attemptCommand(h, a))
}

func (m *Machine) attemptCommand(h *hold, a *attempt) []string {
	unresolved := m.unresolved(h.lock.key)
	switch {
	case h.takesPlace():
		m.queue.places[a.token] = a
		return h.lock.queuedCommand(a.token, m.queue.client, m.now, unresolved)
	case h.lock.queued:
		return h.lock.queuedCommand(a.token, "", m.now, unresolved)
	case len(m.config.Nodes) > 1:
		return h.lock.acquireCommand(a.token, a.slot, strconv.FormatInt(int64(m.now+h.wall), 10), unresolved)
	}
	return h.lock.acquireCommand(a.token, "", "", unresolved) // one deployment: the server's time
}

// wake is called when the nodes have had their time.
func (a *attempt) wake(m *Machine) {
	a.timeOut()
	m.decide(a)
}

// answered brings a node's answer to the attempt, or to its raise.
func (a *attempt) answered(m *Machine, c *call, v vote, values []Value) {
	switch c.script {
	case a.hold.lock.kind.scripts.Beat:
		m.beaten(a, c, v, values)
		return
	case a.hold.lock.kind.scripts.Raise:
		if v.answer == yes {
			a.grants[c.node].fence = max(a.grants[c.node].fence, a.fence)
		}
	default:
		v = a.settle(m, c, v, values)
	}
	switch {
	case a.cleanup != nil:
		a.cleanup.settled(m, c.node, v.answer == yes || a.placed)
		m.learn(a, c.node, v)
	case a.hold.state == held:
		m.extend(a.hold)
		if r := a.hold.renewal; r != nil {
			r.join(m, c.node)
		}
	case a.votes[c.node].answer == pending || v.answer == yes: // a late yes counts, a late no changes nothing
		if v.answer == yes && a.hold.state == raising && a.grants[c.node].fence > a.fence {
			// The token was chosen before this grant. On a node whose counter is past it another may have it too.
			v = vote{answer: noAnswer, cause: "granted late, with a larger fencing token"}
		}
		a.votes[c.node] = v
		m.decide(a)
	}
}

// settle notes what a node did with the lock.
func (a *attempt) settle(m *Machine, c *call, v vote, values []Value) vote {
	g := &a.grants[c.node]
	g.asked = false
	switch v.answer {
	case yes:
		g.granted = true
		fence, ok := a.given(values)
		if !ok {
			v = c.senseless() // though it may well have been granted
			break
		}
		g.fence = fence
		g.end = max(g.end, leaseEnd(c.sent, c.ttl)) // a renewal may have come in before
	case no:
		if left, ok := integers(values, 1); ok && left[0].Int >= 0 {
			g.retryIn = Duration(left[0].Int+1) * Millisecond
		}
		if told, ok := integers(values, 2); ok && c.code == script.No && a.hold.takesPlace() {
			a.placed, g.granted = true, true // from now on it may be handed over at any moment
			a.turn = told[1].Int
		}
		if told, ok := integers(values, 3); ok && len(values) >= 4 && values[3].IsString {
			g.turn, g.rivals, g.holder = told[1].Int, min(told[2].Int, MaxWaiters), values[3].Str
		}
		if len(values) == 5 && values[4].IsString {
			g.slots = values[4].Str
		}
	case noAnswer:
		g.granted = g.granted || c.fault == ErrorReply // a script that failed may have got halfway
	}
	g.open = c.fault == Unknown
	return v
}

// given takes in what a script gave with the lock.
func (a *attempt) given(values []Value) (fence int64, ok bool) {
	if !a.hold.lock.kind.slots {
		numbers, ok := integers(values, 1)
		if ok {
			fence = numbers[0].Int
		}
		return fence, ok
	}
	numbers, ok := integers(values, 2)
	if !ok || numbers[1].Int < 0 || numbers[1].Int >= MaxPermits {
		return 0, false
	}
	slot := strconv.FormatInt(numbers[1].Int, 10)
	if len(a.grants) > 1 && slot != a.slot {
		return 0, false // not the one that was asked for
	}
	a.slot = slot
	return numbers[0].Int, true
}

// decide looks whether the votes of an attempt in flight are enough.
func (m *Machine) decide(a *attempt) {
	h := a.hold
	switch t := count(a.votes); {
	case t.won():
		m.win(h)
	case t.refused() && a.placed:
		m.takePlace(h)
	case t.refused() && h.lock.kind.slots && t.pending > 0 && len(a.freeSlots()) == 0: // another node may know of a free slot
	case t.refused(), t.hopeless():
		m.loseAttempt(h, m.verdict(a.votes))
	}
}

// win makes an attempt that a quorum granted a hold, when a quorum has its fencing token.
func (m *Machine) win(h *hold) {
	a := h.attempt
	if h.lock.fencing && m.raise(a) {
		return
	}
	deadline := a.deadline()
	if deadline <= m.now {
		m.loseAttempt(h, Outcome{Status: Unavailable, Message: "the nodes answered too late: the lease of " + milliseconds(h.lock.ttl) + " was over"})
		return
	}
	m.hold(h, deadline)
}

// hold tells that an attempt has become a hold.
func (m *Machine) hold(h *hold, deadline Time) {
	a := h.attempt
	m.move(h, granted)
	m.timers.set(&a.timer, nil, Never)
	delete(m.queue.places, a.token)
	h.most = Never
	if h.maxHold != 0 {
		h.most = m.now.add(h.maxHold)
	}
	h.deadline = min(deadline, h.most)
	if h.yielded && h.attempts == 1 {
		m.yieldedInVain(h)
	}
	m.answerAcquire(h, Outcome{Status: OK, Token: a.token, Fence: a.fence, Slot: slotNumber(a.slot), Deadline: h.deadline})
	m.planRenewal(h)
}

// raise sees to it that a quorum has the fencing token, the largest that a node gave (protocol: quorum
// fencing tokens). It tells whether nodes had to be asked: those that granted the lock with a smaller one.
func (m *Machine) raise(a *attempt) bool {
	h := a.hold
	if h.state == asking {
		for i := range a.votes {
			if a.votes[i].answer == yes {
				a.fence = max(a.fence, a.grants[i].fence)
			}
		}
	}
	behind := 0
	for i := range a.votes {
		if a.votes[i].answer == yes && a.grants[i].fence < a.fence {
			behind++
		}
	}
	if count(a.votes).yes-behind >= quorum(len(a.votes)) {
		return false
	}
	args := h.lock.raiseCommand(a.token, a.slot, a.fence)
	for i := range a.votes {
		if a.votes[i].answer == yes && a.grants[i].fence < a.fence {
			a.votes[i].answer = pending
			m.send(call{asker: a, node: i, script: h.lock.kind.scripts.Raise, args: args, wait: a.wait})
		}
	}
	if h.state == asking {
		m.move(h, split)
		a.prolonged = false
		m.timers.set(&a.timer, a, m.now.add(a.wait))
	}
	return true
}

// deadline is until when a quorum is certainly ours.
func (a *attempt) deadline() Time {
	var ends [MaxNodes]Time
	for i := range a.grants {
		ends[i] = a.grants[i].end
	}
	return quorumEnd(ends[:len(a.grants)])
}
