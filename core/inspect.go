package core

import (
	"cmp"
	"slices"

	"github.com/libredlock/libredlock/core/script"
)

// query asks all nodes about a name, for an Inspect or a ForceRelease, and waits for all that answer.
type query struct {
	round
	op      OpID
	kind    *kindOfLock
	force   bool
	removed bool // by a ForceRelease, on some node
	result  Inspection
}

func (m *Machine) inspect(e *Inspect) {
	m.query(&query{op: e.Op}, e.Kind, e.Name)
}

func (m *Machine) forceRelease(e *ForceRelease) {
	if len(e.Digest) != 40 {
		m.fail(e.Op, Invalid, "the digest is not one that inspect shows: 40 hex digits")
		return
	}
	m.query(&query{op: e.Op, force: true}, e.Kind, e.Name, e.Digest)
}

func (m *Machine) query(q *query, kind Kind, name string, args ...string) {
	known, status, wrong := kindOf(kind)
	if wrong != "" {
		m.fail(q.op, status, wrong)
		return
	}
	l := lock{kind: known, key: m.config.Prefix + name, ttl: DefaultTTL}
	if wrong := checkName(l.key); wrong != "" {
		m.fail(q.op, Invalid, wrong)
		return
	}
	l.side, l.fencing, l.queued = sideKeysOf(known.name, l.key), true, true
	s := known.scripts.Inspect
	if q.force {
		s = known.scripts.Force
	}
	wait := m.config.nodeTimeout(l.ttl)
	q.round = round{votes: make([]vote, len(m.config.Nodes)), wait: wait}
	q.kind, q.result.Kind = known, kind
	m.owed[q.op] = q
	m.ask(&q.round, q, q, s, l.command(s, args...))
}

func (q *query) answered(m *Machine, c *call, v vote, values []Value) {
	if q.op == 0 {
		return
	}
	if v.answer != noAnswer && v.wrongKind == "" && !q.read(c, values) {
		v = c.senseless()
	}
	if v.answer == no && v.wrongKind == "" {
		v.answer = yes // it has told what we asked
	}
	q.votes[c.node] = v
	q.decide(m)
}

// read takes in what one node told.
func (q *query) read(c *call, values []Value) bool {
	if q.force {
		q.removed = q.removed || c.code == script.Yes
		return true
	}
	if q.kind.slots {
		return q.readSlots(values)
	}
	left := Forever
	if c.code == script.Yes {
		if len(values) < 2 || !values[0].IsString || values[1].IsString {
			return false
		}
		if values[1].Int >= 0 {
			left = Duration(values[1].Int) * Millisecond
		}
		q.hold(values[0].Str, 0, left)
		values = values[2:]
	}
	return q.readName(values)
}

// readSlots takes in what a node told of a semaphore: what it knows of the name, and then of each holder.
func (q *query) readSlots(values []Value) bool {
	if !q.readName(values) {
		return false
	}
	const each = 4 // token, ms left, slot, fencing token
	for rest := values[3:]; len(rest) > 0; rest = rest[each:] {
		if len(rest) < each || !rest[0].IsString {
			return false
		}
		told, ok := integers(rest[1:], each-1)
		if !ok {
			return false
		}
		q.hold(rest[0].Str, int(told[1].Int), Duration(told[0].Int)*Millisecond)
	}
	return true
}

// readName takes in what a node knows of a name beside its holders.
func (q *query) readName(values []Value) bool {
	told, ok := integers(values, 3)
	if ok {
		q.result.Fence = max(q.result.Fence, told[0].Int)
		q.result.QueueLength = max(q.result.QueueLength, told[1].Int)
		q.result.QueueAge = max(q.result.QueueAge, Duration(told[2].Int)*Millisecond)
	}
	return ok
}

// hold counts one node's holder.
func (q *query) hold(token string, slot int, left Duration) {
	holder := holderOf(token)
	for i := range q.result.Holders {
		if known := &q.result.Holders[i]; known.Digest == holder.Digest {
			known.Nodes++
			known.TTL = max(known.TTL, left)
			return
		}
	}
	holder.Nodes = 1
	holder.TTL, holder.Slot = left, slot
	q.result.Holders = append(q.result.Holders, holder)
}

func (q *query) wake(m *Machine) {
	q.timeOut()
	q.decide(m)
}

func (q *query) decide(m *Machine) {
	t := count(q.votes)
	if t.pending > 0 {
		return
	}
	o := Outcome{Status: OK}
	switch {
	case !t.won():
		o = m.verdict(q.votes)
	case q.force && !q.removed:
		o = Outcome{Status: NotHeld, Message: "nobody holds it with this digest"}
	case !q.force:
		slices.SortStableFunc(q.result.Holders, func(a, b Holder) int {
			return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Slot, b.Slot))
		})
		o.Inspection = &q.result
	}
	q.end(m, o)
}

func (q *query) end(m *Machine, o Outcome) {
	m.timers.set(&q.timer, nil, Never)
	o.Op = q.op
	q.op = 0
	m.outcome(o)
}

// giveUp ends a query because the client closes; a Cancel leaves it alone, since it ends by itself.
func (q *query) giveUp(m *Machine, status Status, message string) {
	if status != Canceled {
		q.end(m, Outcome{Status: status, Message: message})
	}
}
