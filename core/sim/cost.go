package sim

import (
	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// beats counts what a place costs while its client waits.
type beats struct {
	count, early int
	last         core.Time
	next         core.Duration // after the last one, there is a reason for another
	due          core.Time     // when there is one at the latest, where nothing goes wrong
}

// beat counts a sign of life that was executed, and what its answer gives reason for.
func (b *beats) beat(w *world, t *turn, reply []core.Value) {
	if b.last != 0 {
		w.result.Beats++
		b.count++
		if core.Duration(w.now-b.last)+w.trips(3) < b.next {
			b.early++
		}
	}
	b.last, b.next = w.now, t.period()
	if reply[0].Int == script.Yes {
		return
	}
	latest := b.next
	if left := core.Duration(reply[1].Int) * core.Millisecond; reply[2].Int != 0 && left >= 0 { // the first waits for the holder's key to expire,
		b.next, latest = min(b.next, left), min(latest, left+3*core.Millisecond)
	}
	if reply[2].Int == 2 { // or polls, if nobody will hand over to it
		b.next, latest = min(b.next, pollMin), min(latest, pollMax)
	}
	b.due = w.now + core.Time(latest+latest/50)
}

// Who waits for a holder that hands over to nobody asks again after a time between these.
const (
	pollMin = 50 * core.Millisecond
	pollMax = 100 * core.Millisecond
)

// check fails if a waiter beats more often than it has reason to. All of a client beat together, so that one may be early after
// each that came between; and one comes when the subscription stands.
func (b *beats) check(w *world, t *turn) {
	w.result.Waited += core.Duration(w.now - t.since)
	if w.plan.quiet && b.early > 2+b.count-b.early {
		w.fail("%s has beaten %d times in %d ms, of them %d too early", t.token, b.count, core.Duration(w.now-t.since)/1000, b.early)
	}
}

// commands counts what was executed for an attempt and its hold, but for beats.
func (ch *checks) command(w *world, m *message) {
	switch m.script {
	case "mutex_acquire", "mutex_renew", "mutex_release", "mutex_undo":
	default:
		return
	}
	token := m.token()
	ch.commands[token]++
	h, l := ch.handOvers[token], ch.reported[token]
	if !w.plan.quiet || m.script != "mutex_release" || h == nil || l == nil || l.renewed {
		return
	}
	most := 3
	if l.early { // the answer to the acquire shows that it was not under way any more, and the release is repeated
		most++
	}
	// Who holds for longer renews.
	if held := core.Duration(w.now - l.told); held < core.Duration(h.ttl)*core.Millisecond/4 && ch.commands[token] > most {
		w.fail("%s: #%d took %d commands from the acquire to the release", l.client.name, l.op, ch.commands[token])
	}
	w.result.Coverage.add("counted the commands of a hand-over")
}
