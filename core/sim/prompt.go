package sim

import (
	"strings"

	"github.com/libredlock/libredlock/core"
)

// handOver is a lock that was given to one who waited for it, by somebody else's call.
type handOver struct {
	*turn
	name string
	end  core.Time // when the lease ends that its client may count on, but for drift
}

// trips is how long this many messages one after the other take at most where nothing goes wrong, with a late tick and a node's rounding.
func (w *world) trips(count core.Duration) core.Duration {
	return count*max(w.plan.latency, calmLatency) + 2*core.Millisecond + 2*tickLate
}

// givenUp tells whether nobody waits for a token any more, or its client can't.
func (ch *checks) givenUp(w *world, token string) bool {
	_, undone := ch.undoSent[place{0, token}]
	c := ch.asked[token].client
	return undone || c.crashed || c.closing || c.asksToClose()
}

// told is called when a client was told of a hand-over: it reports a lease that is not over.
func (ch *checks) told(w *world, c *client, payload string) {
	words := strings.Fields(payload)
	if len(words) < 2 || ch.handOvers[words[1]] == nil {
		return
	}
	h := ch.handOvers[words[1]]
	margin := 5*core.Millisecond + core.Duration(h.end-h.sent)*3/100
	if ch.reported[h.token] == nil && !h.dark && !ch.givenUp(w, h.token) && w.nodes[0].holder(h.name) == "string "+h.token && w.now+core.Time(margin) < h.end {
		w.fail("%s was told that it has %q by %s until %.6f, and does not report it", c.name, h.name, h.token, float64(h.end)/1e6)
	}
}

// expectReport fails unless a new holder reports its hold as soon as messages allow. Where messages get lost a beat finds it.
func (ch *checks) expectReport(w *world, name string, t *turn) {
	if !w.plan.quiet {
		return
	}
	// At worst it was refused just before: the answer, the subscription with its confirmation, and then a beat, by a script that
	// the node does not know.
	allowed := w.trips(7)
	w.after(allowed, func() {
		if ch.reported[t.token] == nil && !ch.givenUp(w, t.token) {
			w.fail("%s has %q since %.6f, and its client does not report it", t.token, name, float64(w.now-core.Time(allowed))/1e6)
		}
	})
}

// expectConfirmation fails unless a hand-over that was reported gets its whole ttl soon.
func (ch *checks) expectConfirmation(w *world, l *lease) {
	h := ch.handOvers[l.token]
	if h == nil || !w.plan.quiet {
		return
	}
	allowed := w.trips(4) // the renewal, and once more if the node does not know the script
	w.after(allowed, func() {
		if l.over || l.renewed || l.client.closing {
			return
		}
		w.result.Coverage.add("confirmed a hand-over")
		n := w.nodes[0]
		if left := core.Duration(n.server.left(l.name)) * core.Millisecond; n.holder(l.name) != "string "+l.token ||
			left < core.Duration(h.ttl)*core.Millisecond-2*allowed {
			w.fail("%s: #%d was handed over, and after %d ms still has %d of %d ms", l.client.name, l.op, allowed/1000, left/1000, h.ttl)
		}
	})
}

// free fails if a lock has been free for long when somebody gets it, though the one at place i, or any behind it, waited.
func (ch *checks) free(w *world, m *message, before string, i int) {
	name := m.keys()[0]
	if !w.plan.quiet || before != "" || i == len(ch.turns[name]) {
		return
	}
	first := ch.turns[name][i]
	since := max(ch.expires[name], first.beats.due)
	if late := core.Duration(w.now - since); late > w.trips(4) {
		w.fail("%q was free for %d ms, though %s waited and knew when it would be", name, late/1000, first.token)
	}
}

// noteExpiry remembers when what stands at a lock's key ends.
func (ch *checks) noteExpiry(n *node, name string) {
	if e, ok := n.server.look(name); ok && e.expires != 0 {
		ch.expires[name] = n.clock.when((e.expires+1)*1000 - epoch)
	} else {
		ch.expires[name] = n.world.now
	}
}

// unsettle notes what the storm has left behind and still works on a lock: a call that was under way, and a holder of then.
func (ch *checks) unsettle(w *world, m *message, before string) {
	if w.phase != storm && (m.storm || ch.rooted[strings.TrimPrefix(before, "string ")]) {
		ch.settled[m.keys()[0]] = w.now
	}
}

// bounded fails if somebody waited for too long once nothing went wrong any more, and all were quick to release.
func (ch *checks) bounded(w *world, c *client, r *request, e *core.Acquire) {
	if w.phase == storm || w.plan.nodes > 1 || e.Wait != core.Forever || !lines(e) || w.plan.plain > 0 {
		return
	}
	begun := max(r.askedAt, ch.settled[e.Name], ch.calm, c.pausedUntil)
	corpse := min(w.plan.maxTTL, 3*core.Second)
	if w.plan.lawless { // lives are measured by clocks that were set
		corpse = 3 * core.Second
	}
	bound := 2*corpse + // one that died while it waited, and before that got the lock at the end of its life; the others are dead by then
		min(core.Second, w.plan.maxTTL/3) + // a beat finds out that the lock is free
		nodeTimeout(w, w.plan.maxTTL) + 2*core.Second + // an answer that was lost, and the pause of who could not reach the node
		core.Duration(w.plan.clients*w.plan.workers)*(10*core.Millisecond+w.trips(6)) // all others
	if waited := core.Duration(w.now - begun); waited > bound {
		w.fail("%s: #%d waited for %q for %d ms after the storm, more than %d", c.name, c.lastOp, e.Name, waited/1000, bound/1000)
	}
	w.result.Coverage.add("waited after the storm")
}
