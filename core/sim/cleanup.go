package sim

import (
	"strings"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// place is a node and a token that may stand there.
type place struct {
	node  int
	token string
}

// keys are those that a call names, the lock's first, and values what follows them.
func (m *message) keys() []string   { return m.call.Args[3 : 3+number(m.call.Args[2])] }
func (m *message) values() []string { return m.call.Args[3+number(m.call.Args[2]):] }

// token is the one that a call is about: the first value of every script but mutex_inspect and mutex_force.
func (m *message) token() string { return m.values()[0] }

func (m *message) place() place { return place{m.call.Node, m.token()} }

// executed notes which tokens stand where.
func (ch *checks) executed(m *message, reply []core.Value) {
	switch m.script {
	case "mutex_acquire", "mutex_regrant":
		if reply[0].Int == script.Yes {
			ch.standing[m.place()] = true
			m.client.world.result.Coverage.add("granted by " + m.script)
		}
	case "mutex_undo", "mutex_release":
		delete(ch.standing, m.place())
	}
}

// abandoned tells whether an answer brings a grant that nobody waits for any more, and that no undo has removed.
func (ch *checks) abandoned(m *message, answer *core.Answer) bool {
	w := m.client.world
	grants := m.script == "mutex_acquire" || m.script == "mutex_regrant"
	if !grants || len(answer.Reply) != 2 || answer.Reply[0].Int != script.Yes || m.client.closing || m.client.asksToClose() {
		return false
	}
	_, given := ch.undoSent[m.place()]
	return given && ch.standing[m.place()] && !w.unheard(m.call.Node) // that one is undone as if it had failed
}

// expectUndo fails unless the step has sent an undo for such a grant.
func (ch *checks) expectUndo(w *world, m *message) {
	if ch.undoSent[m.place()] != w.result.Steps {
		w.fail("%v was granted too late, and is not undone", m)
	}
}

// unheard tells whether a node is too old, so that what it says does not count.
func (w *world) unheard(node int) bool { return w.plan.tooOld && node == 0 }

// blocked fails if an acquire was refused for the sake of an attempt of its own client, which it knew to be in doubt.
func (ch *checks) blocked(w *world, m *message, before string) {
	left := strings.TrimPrefix(before, "string ")
	begun := ch.begun[m.token()]
	if w.unheard(m.call.Node) {
		return
	}
	if undone, ok := ch.undone[left]; ok && ch.asked[left].client == m.client && undone < begun && begun < undone+core.Time(300*core.Millisecond) {
		w.fail("%v is refused for the sake of %s, which its client has given up at %.6f", m, left, float64(undone)/1e6)
	}
}

// expectRemoval fails if what was given up still stands when the last undo should have come, and could.
func (ch *checks) expectRemoval(w *world, m *message) {
	c, token, name := m.client, m.token(), m.keys()[0]
	acquire := ch.asked[token]
	last := max(core.Second, core.Duration(number(acquire.values()[1]))*core.Millisecond/2)
	w.after(last-last/100, func() {
		sent := w.now
		if w.phase == storm {
			return
		}
		w.after(last/50+w.trips(4), func() {
			if c.crashed || c.closing || c.asksToClose() || sent < c.pausedUntil {
				return
			}
			w.result.Coverage.add("removed what was given up")
			for _, n := range w.nodes {
				if !w.unheard(n.index) && n.holder(name) == "string "+token && ch.placed[place{n.index, token}] < sent {
					w.fail("%s: %s still holds %q since %.6f, and was given up before", n.name, token, name, float64(ch.placed[place{n.index, token}])/1e6)
				}
			}
		})
	})
}

// deadlines fails if a hold goes on beyond its deadline, or if its machine would sleep longer.
func (ch *checks) deadlines(w *world, c *client, wake core.Time) {
	live := c.live[:0]
	for _, l := range c.live {
		switch {
		case l.over:
			continue
		case c.now() >= l.deadline:
			w.fail("%s: #%d is not told to be lost, though its deadline has passed", c.name, l.op)
		case wake > l.deadline:
			w.fail("%s: the machine would sleep beyond the deadline of #%d", c.name, l.op)
		}
		live = append(live, l)
	}
	c.live = live
}
