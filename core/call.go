package core

import (
	"slices"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core/script"
)

// answer is what a node has said to a question.
type answer int

const (
	pending answer = iota
	yes
	no
	noAnswer // failed: see cause
)

// vote is one node's answer to one question.
type vote struct {
	answer      answer
	wrongKind   string // the type that stands at the key, if that is why it said no
	unsupported bool   // it failed because the server can't do it
	denied      bool   // it failed because of how the client is configured: asking again won't help
	cause       string // why it failed
}

func count(votes []vote) (t tally) {
	for i := range votes {
		switch votes[i].answer {
		case yes:
			t.yes++
		case no:
			t.no++
		case noAnswer:
			t.failed++
		default:
			t.pending++
		}
	}
	return t
}

// asker is who made a call: it gets the one answer.
type asker interface {
	// answered brings a node's answer. For yes, values are what followed the code.
	answered(m *Machine, c *call, v vote, values []Value)
	// prolong gives the nodes their time anew, once, since one did not know the script and is sent it.
	prolong(m *Machine)
}

// call is a call without an answer.
type call struct {
	asker  asker
	node   int
	script *script.Script
	args   []string // EVALSHA and so on; may be shared by several calls
	sent   Time
	wait   Duration // how long the node may take
	ttl    Duration // of the lease that it asks for
	early  bool     // an undo that the node may have executed before what it undoes
	fault  Fault    // of its answer
	code   int64    // of its answer, if fault is NoFault
}

// send calls a node.
func (m *Machine) send(c call) {
	m.lastCall++
	c.sent = m.now
	var kept *call
	if last := len(m.spare) - 1; last >= 0 {
		kept, m.spare = m.spare[last], m.spare[:last]
	} else {
		kept = new(call)
	}
	*kept = c
	m.calls[m.lastCall] = kept
	m.effects.Calls = append(m.effects.Calls, Call{ID: m.lastCall, Node: c.node, Args: c.args, Timeout: c.wait})
}

// answered is the one place where a node's answer is read.
func (m *Machine) answered(e *Answer) {
	c := m.calls[e.Call]
	if c == nil {
		return
	}
	delete(m.calls, e.Call)
	if e.Fault == ErrorReply && c.args[0] == "EVALSHA" && strings.HasPrefix(e.Cause, "NOSCRIPT") {
		if a, isAttempt := c.asker.(*attempt); !isAttempt || a.cleanup == nil {
			c.args = append([]string{"EVAL", c.script.Source}, c.args[2:]...)
			m.send(*c)
			c.asker.prolong(m)
			return
		}
		e = &Answer{Call: e.Call, Fault: Refused, Cause: e.Cause} // given up meanwhile: as good as never sent
	}
	v, values := c.read(e)
	if unfit := m.nodes[c.node].unfit; unfit != "" {
		c.fault = ErrorReply
		v = vote{answer: noAnswer, unsupported: m.nodes[c.node].tooOld, denied: true, cause: unfit}
	}
	c.asker.answered(m, c, v, values)
	if len(m.spare) < maxSpare {
		*c = call{}
		m.spare = append(m.spare, c)
	}
}

const maxSpare = 1024

// read decodes the reply of a script. Whatever makes no sense is a failure that the node has answered.
func (c *call) read(e *Answer) (vote, []Value) {
	c.fault = e.Fault
	if e.Fault != NoFault {
		cause := e.Cause
		if e.Fault == ErrorReply && strings.HasPrefix(cause, "ERR Protocol error: unauthenticated") {
			cause = "NOAUTH Authentication required" // a server reads no more than ten arguments before
		}
		return vote{
			answer:      noAnswer,
			cause:       cause,
			unsupported: e.Fault == ErrorReply && strings.HasPrefix(cause, "ERR unknown command"),
			denied:      e.Fault == ErrorReply && denies(cause),
		}, nil
	}
	if len(e.Reply) > 0 && !e.Reply[0].IsString {
		c.code = e.Reply[0].Int
		values := e.Reply[1:]
		switch {
		case c.code == script.Yes:
			return vote{answer: yes}, values
		case c.code == script.No || c.code == script.Gone:
			return vote{answer: no}, values
		case c.code == script.WrongKind && len(values) == 1 && values[0].IsString:
			return vote{answer: no, wrongKind: values[0].Str}, nil
		}
	}
	return c.senseless(), nil
}

// denials are how errors begin that only a change of user, password, rights or database mends.
var denials = []string{"WRONGPASS", "NOAUTH", "NOPERM", "ERR DB index", "ERR invalid password"}

func denies(cause string) bool {
	return slices.ContainsFunc(denials, func(d string) bool { return strings.HasPrefix(cause, d) })
}

// senseless makes an answer that no script gives a failure.
func (c *call) senseless() vote {
	c.fault = ErrorReply
	return vote{answer: noAnswer, cause: "the reply to " + c.script.Name + " makes no sense: is this a Redis server?"}
}

// integers takes n integers out of a reply, or nothing.
func integers(values []Value, n int) ([]Value, bool) {
	if len(values) < n {
		return nil, false
	}
	for _, v := range values[:n] {
		if v.IsString {
			return nil, false
		}
	}
	return values[:n], true
}

// round is a question to all nodes, with their votes.
type round struct {
	votes     []vote
	wait      Duration // for each node's answer
	ttl       Duration // of the lease that it asks for, if it does
	timer     timer
	prolonged bool
}

// ask begins a round with one call for each node that is still pending.
func (m *Machine) ask(r *round, by asker, owner timed, s *script.Script, args []string) {
	for i := range r.votes {
		if r.votes[i].answer == pending {
			m.send(call{asker: by, node: i, script: s, args: args, wait: r.wait, ttl: r.ttl})
		}
	}
	m.timers.set(&r.timer, owner, m.now.add(r.wait))
}

func (r *round) prolong(m *Machine) {
	if r.timer.index != 0 && !r.prolonged { // without a timer the round is decided
		r.prolonged = true
		m.timers.set(&r.timer, r.timer.owner, m.now.add(r.wait))
	}
}

// perNode makes room for something of each node: in one's own place if there is one node, as there mostly is.
func perNode[T any](nodes int, one *[1]T) []T {
	if nodes == 1 {
		return one[:]
	}
	return make([]T, nodes)
}

// timeOut ends the wait for the nodes that have not answered.
func (r *round) timeOut() {
	for i := range r.votes {
		if r.votes[i].answer == pending {
			r.votes[i] = vote{answer: noAnswer, cause: "timeout after " + milliseconds(r.wait)}
		}
	}
}

// causes lists the nodes that failed, then those that have not answered yet.
func (m *Machine) causes(votes []vote) (causes []NodeCause) {
	for _, of := range []answer{noAnswer, pending} {
		for i := range votes {
			if votes[i].answer != of {
				continue
			}
			cause := votes[i].cause
			if of == pending {
				cause = "no answer yet"
			}
			causes = append(causes, NodeCause{Node: i, Address: m.config.Nodes[i], Cause: cause})
		}
	}
	return causes
}

// inVain tells whether so many nodes deny the client that asking again won't help.
func inVain(votes []vote) bool {
	denied := 0
	for i := range votes {
		if votes[i].denied {
			denied++
		}
	}
	return denied > len(votes)-quorum(len(votes))
}

// verdict puts a question that was not won into words.
func (m *Machine) verdict(votes []vote) Outcome {
	kinds, unsupported, other := 0, 0, ""
	for i := range votes {
		if votes[i].wrongKind != "" {
			kinds++
			other = votes[i].wrongKind
		}
		if votes[i].unsupported {
			unsupported++
		}
	}
	t := count(votes)
	need := quorum(len(votes))
	switch {
	case kinds > len(votes)-need:
		return Outcome{Status: WrongKind, Message: "the key holds a " + other + ", not a lock of this kind"}
	case t.refused():
		return Outcome{Status: Held, Message: "someone else holds it"}
	case unsupported > len(votes)-need:
		return Outcome{Status: Unsupported, Message: "the server lacks what libredlock needs", Nodes: m.causes(votes)}
	case len(votes) == 1:
		return Outcome{Status: Unavailable, Message: "the node failed", Nodes: m.causes(votes)}
	}
	message := strconv.Itoa(t.failed) + " of " + strconv.Itoa(len(votes)) + " nodes failed"
	if t.pending > 0 {
		message += " and " + strconv.Itoa(t.pending) + " had not answered"
	}
	return Outcome{Status: Unavailable, Message: message + ", " + strconv.Itoa(need) + " are needed", Nodes: m.causes(votes)}
}
