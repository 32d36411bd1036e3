package core

import (
	"maps"
	"slices"
	"strconv"
)

// Machine is the locks of one client. Its zero value is of no use; see New.
type Machine struct {
	config  Config
	now     Time
	effects Effects
	timers  timers

	holds    map[OpID]*hold   // by the id of their acquire, until they end
	owed     map[OpID]owner   // requests that have no outcome yet
	calls    map[CallID]*call // calls that have no answer yet
	queue    queue
	contests map[lockID]*contest
	yields   map[lockID]*yield
	spare    []*call // memory of calls that have one
	cleanups map[string][]*cleanup
	nodes    []node

	waiters  int // acquires in owed that wait
	lastCall CallID
	closing  *closing // since a Close
}

// node is what is known about one node.
type node struct {
	facts  Facts
	tooOld bool   // a server without what the scripts need
	unfit  string // why its answers don't count; "" if they do
	mute   bool   // it let no release be published the last time
	deaf   bool   // it let this client not listen the last time
	// That has been told, since the last new connection.
	muteTold, deafTold bool
}

// owner is what a request belongs to.
type owner interface {
	// giveUp ends the request with CANCELED, or with CLOSED because the client closes. What
	// ends by itself soon may go on.
	giveUp(m *Machine, status Status, message string)
}

// New checks the configuration and makes a machine. The addresses of the nodes have been checked before.
func New(config Config) (*Machine, *Error) {
	switch n := len(config.Nodes); {
	case n == 0:
		return nil, errorf(Invalid, "no node given; 1 to "+strconv.Itoa(MaxNodes)+" are allowed")
	case n > MaxNodes:
		return nil, errorf(Invalid, strconv.Itoa(n)+" nodes given; 1 to "+strconv.Itoa(MaxNodes)+" are allowed")
	case len(config.Prefix) > MaxNameBytes:
		return nil, errorf(Invalid, "the prefix is longer than "+strconv.Itoa(MaxNameBytes)+" bytes")
	case len(config.Who) > MaxWhoBytes:
		return nil, errorf(Invalid, "host, pid and language take more than "+strconv.Itoa(MaxWhoBytes)+" bytes")
	case config.NodeTimeout != 0 && (config.NodeTimeout < MinNodeWait || config.NodeTimeout > MaxTTL):
		return nil, errorf(Invalid, "the node timeout is "+milliseconds(config.NodeTimeout)+"; 10 ms to 24 h are allowed")
	case config.UnavailableAfter < 0:
		return nil, errorf(Invalid, "unavailable-after is negative")
	}
	if config.Prefix != "" {
		if wrong := checkName(config.Prefix); wrong != "" {
			return nil, errorf(Invalid, "prefix: "+wrong)
		}
	}
	if config.UnavailableAfter == 0 {
		config.UnavailableAfter = DefaultUnavailableAfter
	}
	return &Machine{
		config:   config,
		holds:    map[OpID]*hold{},
		owed:     map[OpID]owner{},
		calls:    map[CallID]*call{},
		queue:    queue{lines: map[lockID]*line{}, places: map[string]*attempt{}},
		contests: map[lockID]*contest{},
		yields:   map[lockID]*yield{},
		cleanups: map[string][]*cleanup{},
		nodes:    make([]node, len(config.Nodes)),
	}, nil
}

// Step feeds one event at a time and tells what to do next. See the package's contract.
func (m *Machine) Step(now Time, event Event) Effects {
	m.now = max(m.now, now)
	m.effects = Effects{
		Calls:         m.effects.Calls[:0],
		Subscriptions: m.effects.Subscriptions[:0],
		Outcomes:      m.effects.Outcomes[:0],
		Notices:       m.effects.Notices[:0],
	}
	m.fire() // what was due before the event counts before it
	switch e := event.(type) {
	case *Acquire:
		if m.admit(e.Op) {
			m.acquire(e)
		}
	case *Renew:
		if m.admit(e.Op) {
			m.renew(e)
		}
	case *Release:
		if m.admit(e.Op) {
			m.release(e)
		}
	case *Inspect:
		if m.admit(e.Op) {
			m.inspect(e)
		}
	case *ForceRelease:
		if m.admit(e.Op) {
			m.forceRelease(e)
		}
	case *Close:
		if m.admit(e.Op) {
			m.close(e)
		}
	case *Cancel:
		if request := m.owed[e.Op]; request != nil {
			request.giveUp(m, Canceled, "canceled by the caller")
		}
	case *Answer:
		m.answered(e)
	case *Connected:
		m.connected(e)
	case *Subscribed:
		m.subscribed(e)
	case *Message:
		m.message(e)
	case *Dropped:
		m.dropped(e)
	case *Tick: // has done its work in fire
	}
	m.finishClose()
	m.effects.Wake = m.timers.next()
	return m.effects
}

// Stats count what a machine has under way.
type Stats struct {
	Holds    int // waiting, held or lost
	Requests int // without an outcome
	Calls    int // without an answer
	Cleanups int
	Places   int // in queues
	Timers   int
}

// Stats tells what is under way: all zero for a client at rest that holds nothing.
func (m *Machine) Stats() Stats {
	cleanups := 0
	for _, list := range m.cleanups {
		cleanups += len(list)
	}
	return Stats{len(m.holds), len(m.owed), len(m.calls), cleanups, len(m.queue.places), len(m.timers)}
}

// admit refuses what no request may be: without an id or with one in use, or after a Close.
func (m *Machine) admit(op OpID) bool {
	refusal := Outcome{Op: op, Status: Invalid}
	switch {
	case op == 0:
		refusal.Message = "a request needs an id other than 0"
	case m.owed[op] != nil || m.holds[op] != nil:
		refusal.Message = "the id of this request is in use"
	case m.closing != nil:
		refusal.Status, refusal.Message = Closed, "the client is closed"
	default:
		return true
	}
	m.effects.Outcomes = append(m.effects.Outcomes, refusal) // not m.outcome: who has the id is still owed one
	return false
}

// outcome answers a request.
func (m *Machine) outcome(o Outcome) {
	delete(m.owed, o.Op)
	m.effects.Outcomes = append(m.effects.Outcomes, o)
}

func (m *Machine) fail(op OpID, status Status, message string) {
	m.outcome(Outcome{Op: op, Status: status, Message: message})
}

func (m *Machine) notice(n Notice) { m.effects.Notices = append(m.effects.Notices, n) }

const closedCause = "the client was closed"

// closing is a Close that waits for the releases that it sent.
type closing struct {
	op    OpID // 0 once it was answered
	timer timer
}

func (m *Machine) close(e *Close) {
	m.closing = &closing{op: e.Op}
	for _, op := range slices.Sorted(maps.Keys(m.owed)) {
		if request := m.owed[op]; request != nil { // it may have ended with another
			request.giveUp(m, Closed, closedCause)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.holds)) {
		if h := m.holds[id]; h.state == held {
			m.lose(h, closed, closedCause)
		}
	}
	m.timers.set(&m.closing.timer, m.closing, m.now.add(m.config.nodeTimeout(MaxTTL)))
}

// finishClose answers the Close when nothing that it sent is unanswered.
func (m *Machine) finishClose() {
	if m.closing != nil && m.closing.op != 0 && len(m.calls) == 0 {
		m.closing.wake(m)
	}
}

// wake ends the client: what is not cleaned up by now is left to the keys' own ttl.
func (c *closing) wake(m *Machine) {
	if c.op == 0 {
		return
	}
	m.outcome(Outcome{Op: c.op, Status: OK})
	c.op = 0
	for _, op := range slices.Sorted(maps.Keys(m.owed)) {
		m.fail(op, Closed, closedCause)
	}
	m.timers = nil
	clear(m.calls)
	clear(m.cleanups)
	clear(m.holds)
	clear(m.queue.lines)
	clear(m.queue.places)
	clear(m.contests)
	clear(m.yields)
}

// milliseconds writes a duration for a message.
func milliseconds(d Duration) string {
	return strconv.FormatInt(int64(d/Millisecond), 10) + " ms"
}
