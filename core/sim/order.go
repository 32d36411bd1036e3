package sim

import (
	"slices"
	"strings"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// Who waits for a lock, and in which order, told from nothing but the scripts that a node has executed and
// what they answered. The queue's own keys are not looked at: they may be what is wrong.

// turn is a place in the queue of a lock.
type turn struct {
	token, channel string
	ttl            int64     // ms
	since          core.Time // when it was taken
	heard          core.Time // when its client was heard of last,
	shown          int64     // what the node's clock showed then,
	sent           core.Time // and when that was sent
	dark           bool      // the node's clock was set since then
	beats          beats
}

// life is how long a place lives without being heard of: three periods.
func (t *turn) life() core.Duration { return 3 * t.period() }

func (t *turn) period() core.Duration {
	return min(core.Second, core.Duration(t.ttl)*core.Millisecond/3)
}

// lives tells whether a place certainly does, as far as a node's milliseconds allow to say that.
func (t *turn) lives(n *node) bool {
	return !t.dark && core.Duration(n.server.now()-t.shown) < t.life()-2*core.Millisecond
}

func (t *turn) dead(n *node) bool {
	return !t.dark && core.Duration(n.server.now()-t.shown) > t.life()
}

// holder is what stands at a lock's key; "" if it is free.
func (n *node) holder(name string) string {
	if e, ok := n.server.look(name); ok {
		return e.kind + " " + e.text
	}
	return ""
}

// order looks at a script that was executed, and at who was the lock's holder before.
func (ch *checks) order(n *node, m *message, before string, reply []core.Value, err error) {
	w, name := n.world, m.keys()[0]
	after := n.holder(name)
	changed := after != before && after != ""
	if m.script == "mutex_undo" && !changed && len(n.published) > 0 {
		w.fail("%v tells others, though it hands nothing over: %q", m, n.published)
	}
	code := int64(-1)
	if err == nil {
		code = reply[0].Int
	}
	if changed {
		ch.placed[place{n.index, strings.TrimPrefix(after, "string ")}] = w.now
		if m.script == "mutex_renew" || m.script == "mutex_raise" {
			w.fail("%v creates %q", m, name)
		}
	}
	ch.robbed(w, m, before, after)
	if m.script == "mutex_acquire" && code == script.No {
		ch.blocked(w, m, before)
	}
	if w.plan.nodes > 1 || len(m.keys()) < 4 {
		return
	}
	ch.unsettle(w, m, before)
	switch {
	case m.script == "mutex_beat" && (code == script.No || code == script.Yes):
		if before != "string "+m.token() { // else it was told late
			ch.heardOf(n, m, reply)
		}
	case m.script == "mutex_beat" && code == script.Gone, m.script == "mutex_undo" && err == nil:
		ch.leave(w, name, m.token())
	}
	if changed {
		ch.given(n, m, before, strings.TrimPrefix(after, "string "))
	}
	if m.script == "mutex_acquire" && code == script.No && m.values()[4] != "" {
		ch.heardOf(n, m, reply)
	}
	if after == "" && err == nil && m.script != "mutex_inspect" && !(m.script == "mutex_beat" && code == script.Gone) {
		for _, t := range ch.turns[name] {
			if t.lives(n) {
				w.fail("%v leaves %q free, though %s waits", m, name, t.token)
			}
		}
	}
}

// heardOf notes a sign of life. Who has no place gets one at the end.
func (ch *checks) heardOf(n *node, m *message, reply []core.Value) {
	w, name, values := n.world, m.keys()[0], m.values()
	client, sent := values[3], values[4]
	if m.script == "mutex_acquire" {
		client, sent = values[4], values[5]
	}
	i := ch.turnOf(name, m.token())
	if i < 0 {
		i = len(ch.turns[name])
		ch.turns[name] = append(ch.turns[name], &turn{token: m.token(), channel: "redlock:wake:" + client, since: w.now})
	}
	t := ch.turns[name][i]
	t.ttl, t.heard, t.shown, t.sent, t.dark = number(values[1]), w.now, n.server.now(), m.client.clock.when(number(sent)), false
	t.beats.beat(w, t, reply)
}

func (ch *checks) turnOf(name, token string) int {
	return slices.IndexFunc(ch.turns[name], func(t *turn) bool { return t.token == token })
}

func (ch *checks) leave(w *world, name, token string) {
	if i := ch.turnOf(name, token); i >= 0 {
		ch.turns[name][i].beats.check(w, ch.turns[name][i])
		ch.turns[name] = slices.Delete(ch.turns[name], i, i+1)
	}
}

// given checks who got a lock: the first that lives, or, if nobody waits, the one that has asked.
func (ch *checks) given(n *node, m *message, before, to string) {
	w, name := n.world, m.keys()[0]
	asked := m.script != "mutex_force" && m.token() == to
	i := ch.turnOf(name, to)
	waited := i >= 0
	switch {
	case !waited && !asked:
		w.fail("%v hands %q over to %s, which does not wait", m, name, to)
	case !waited:
		// A client takes over what an attempt that it knows nothing of has got, and that attempt's turn.
		unresolved := m.values()[7:]
		if slices.Contains(unresolved, strings.TrimPrefix(before, "string ")) {
			return
		}
		i = slices.IndexFunc(ch.turns[name], func(t *turn) bool { return slices.Contains(unresolved, t.token) && n.tells(t) })
		if i < 0 {
			i = len(ch.turns[name])
		}
	}
	for _, t := range ch.turns[name][:i] {
		if t.lives(n) {
			w.fail("%v gives %q to %s before %s, which waits since %.6f", m, name, to, t.token, float64(t.since)/1e6)
		}
	}
	ch.free(w, m, before, i)
	if w.phase == storm || asked && m.storm {
		ch.rooted[to] = true
	}
	if i == len(ch.turns[name]) {
		return
	}
	t := ch.turns[name][i]
	ch.leave(w, name, t.token)
	if waited && !asked {
		if t.dead(n) {
			w.fail("%v hands %q over to %s, which was heard of last %.6f s ago", m, name, to, float64(w.now-t.heard)/1e6)
		}
		ch.handOver(n, m, t)
	}
	if waited {
		w.result.Coverage.add("handed over by " + m.script)
		ch.expectReport(w, name, t)
	}
}

// handOver checks that a new holder is told, and that it costs little if it is dead.
func (ch *checks) handOver(n *node, m *message, t *turn) {
	w, name := n.world, m.keys()[0]
	w.result.HandOvers++
	lease := min(t.ttl, handedOverMost)
	if left := n.server.left(name); left > lease || left < lease-1 {
		w.fail("%v hands %q over for %d ms, not for %d", m, name, left, lease)
	}
	if !n.tells(t) {
		w.fail("%v hands %q over to %s and tells %q", m, name, t.token, n.published)
	}
	ch.handOvers[t.token] = &handOver{turn: t, name: name, end: t.sent + w.now - t.heard + core.Time(lease)*core.Time(core.Millisecond)}
}

// tells is whether the script that was executed told one waiter, and nobody else, that it is the holder.
func (n *node) tells(t *turn) bool {
	return len(n.published) == 1 && strings.HasPrefix(n.published[0], t.channel+" mutex "+t.token+" ")
}

// forgetTurns is called when a key of the queue has vanished: all come again.
func (ch *checks) forgetTurns(name string) { delete(ch.turns, name) }

// darken is called when a node's clock was set: who lives is known again when it is heard of.
func (ch *checks) darken() {
	for _, turns := range ch.turns {
		for _, t := range turns {
			t.dark = true
		}
	}
}

// inLine fails if an acquire got its lock before another of its client that was asked for first, and still waits.
func (ch *checks) inLine(w *world, c *client, op core.OpID, e *core.Acquire) {
	if w.plan.nodes > 1 || !lines(e) {
		return
	}
	for other, r := range c.requests {
		if o, ok := r.event.(*core.Acquire); ok && other < op && o.Name == e.Name && lines(o) && !r.wrong {
			w.fail("%s: #%d gets %q before #%d", c.name, op, e.Name, other)
		}
	}
}

// lines tells whether an acquire waits in its client's line.
func lines(e *core.Acquire) bool { return e.Wait != 0 && e.Queue != core.Off }
