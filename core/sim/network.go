package sim

import (
	"fmt"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// link is the way from a client to a node.
type link struct{ client, node int }

// cut is a link that nothing gets through.
type cut struct {
	until core.Time
	holds bool // what is sent arrives afterwards; else it is lost
}

// message is a call on its way.
type message struct {
	client   *client
	call     core.Call
	script   string
	storm    bool // it was sent then
	answered bool
}

func (m *message) String() string {
	return fmt.Sprintf("%s#%d %s", m.client.name, m.call.ID, m.script)
}

// send takes a call to its node, or does not, and sees to it that it is answered once, by its timeout at the latest.
func (w *world) send(c *client, call core.Call) {
	w.result.Calls++
	m := &message{client: c, call: call, script: scriptOf(call.Args), storm: w.phase == storm}
	w.check.call(w, c, m)
	n := w.nodes[call.Node]
	w.logf(c.name, "-> %s #%d %s", n.name, call.ID, m.script)

	patience := c.clock.when(c.clock.at(w.now)+int64(call.Timeout)) - w.now
	w.after(core.Duration(patience), func() { m.fault(core.Unknown, "timeout") })
	switch {
	case w.now < n.downUntil, w.chance(w.plan.refused):
		w.after(w.delay(), func() { m.fault(core.Refused, "connection refused") })
		return
	case w.chance(w.plan.broken): // it may be executed before or after the client hears of it
		w.after(w.between(0, core.Duration(patience)), func() { m.fault(core.Unknown, "connection reset by peer") })
	}
	if delay, ok := w.way(c, n); ok {
		w.after(delay, func() { n.execute(m) })
	}
}

// way is how long a message takes between a client and a node; false if it gets lost.
func (w *world) way(c *client, n *node) (core.Duration, bool) {
	delay := w.delay()
	if cut, ok := w.cuts[link{c.index, n.index}]; ok && w.now < cut.until {
		delay += core.Duration(cut.until - w.now)
		if !cut.holds {
			return 0, false
		}
	}
	return delay, !w.chance(w.plan.lost)
}

func (w *world) delay() core.Duration {
	switch {
	case w.chance(w.plan.slow):
		return w.between(w.plan.latency, 300*core.Millisecond)
	case w.chance(w.plan.stuck):
		return w.between(w.plan.latency, 3*w.plan.maxTTL)
	case w.phase != storm:
		return w.between(50, calmLatency)
	}
	return w.between(50, w.plan.latency)
}

// calmLatency is how long a message takes at most when nothing goes wrong any more.
const calmLatency = 800 * core.Microsecond

// reply takes an answer back to the client.
func (m *message) reply(answer *core.Answer) {
	w := m.client.world
	if delay, ok := w.way(m.client, w.nodes[m.call.Node]); ok {
		w.after(delay, func() { m.answer(answer) })
	}
}

func (m *message) fault(fault core.Fault, cause string) {
	m.answer(&core.Answer{Fault: fault, Cause: cause})
}

// answer answers the call, unless that was done already.
func (m *message) answer(answer *core.Answer) {
	w := m.client.world
	m.client.deliver(func() {
		if m.answered {
			return
		}
		m.answered = true
		answer.Call = m.call.ID
		if answer.Fault != core.NoFault {
			m.client.logf("<- %s #%d %s", w.nodes[m.call.Node].name, m.call.ID, answer.Cause)
		}
		abandoned := w.check.abandoned(m, answer)
		m.client.step(answer)
		if abandoned {
			w.check.expectUndo(w, m)
		}
	})
}

// scriptOf names the script that a command runs; "" if it is none.
func scriptOf(args []string) string {
	for _, known := range script.All {
		if len(args) > 2 && (args[0] == "EVALSHA" && args[1] == known.SHA || args[0] == "EVAL" && args[1] == known.Source) {
			return known.Name
		}
	}
	return ""
}
