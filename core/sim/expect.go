package sim

import (
	"slices"

	"github.com/libredlock/libredlock/core"
)

// statuses are those that a request may end with.
var statuses = map[string][]core.Status{
	"acquire":       {core.OK, core.Held, core.Timeout, core.Unavailable, core.Canceled, core.WrongKind, core.Unsupported, core.Closed},
	"renew":         {core.OK, core.Lost, core.Unavailable, core.Canceled, core.Invalid, core.NotHeld, core.Closed},
	"release":       {core.OK, core.Lost, core.Unavailable, core.NotHeld, core.Closed},
	"inspect":       {core.OK, core.Unavailable, core.WrongKind, core.Unsupported, core.Closed},
	"force_release": {core.OK, core.Unavailable, core.NotHeld, core.WrongKind, core.Unsupported, core.Closed},
	"close":         {core.OK},
}

// refusals are those that a request may end with that can't succeed.
var refusals = []core.Status{core.Invalid, core.Unsupported, core.NotHeld, core.Closed}

// outcome checks that a request ended with a status that fits it, and in time.
func (ch *checks) outcome(w *world, c *client, r *request, o core.Outcome) {
	allowed := statuses[r.verb]
	if r.wrong {
		allowed = refusals
	}
	if !slices.Contains(allowed, o.Status) || !ch.fits(w, c, r, o) {
		w.fail("%s: #%d (%s) ended with %v %s", c.name, o.Op, r.verb, o.Status, o.Message)
	}
	late := core.Duration(c.now()-r.asked) - r.limit
	if slack := 4*tickLate + core.Millisecond; late > slack && w.now > c.pausedUntil+core.Time(r.limit+slack) {
		w.fail("%s: #%d (%s) ended %d µs too late", c.name, o.Op, r.verb, late)
	}
	e, isAcquire := r.event.(*core.Acquire)
	if isAcquire && !r.wrong {
		ch.bounded(w, c, r, e)
	}
	switch {
	case isAcquire && o.Status == core.OK:
		ch.granted(w, c, e, o)
	case r.verb == "renew" && o.Status == core.OK && o.Deadline < r.lease.deadline:
		w.fail("%s: #%d is renewed until %d, but was told to end at %d", c.name, r.lease.op, o.Deadline, r.lease.deadline)
	}
}

// fits tells whether a status is what this request deserves.
func (ch *checks) fits(w *world, c *client, r *request, o core.Outcome) bool {
	e, isAcquire := r.event.(*core.Acquire)
	valid := r.lease != nil && core.Time(c.clock.at(w.now)) < r.lease.deadline && !r.lease.lostTold
	if r.forgot && o.Status != core.NotHeld && o.Status != core.Closed {
		return false
	}
	switch o.Status {
	case core.Unavailable: // a wait without limit bears failing nodes for a time, or ends with the one before it in line
		if !isAcquire || e.Wait != core.Forever || w.plan.tooOld {
			return true
		}
		if core.Duration(c.now()-r.asked) >= c.bears {
			c.weary[e.Name] = w.result.Steps
		}
		return c.weary[e.Name] == w.result.Steps
	case core.Held:
		return e.Wait == 0
	case core.Timeout:
		return e.Wait != 0
	case core.Unsupported:
		return r.wrong || w.plan.tooOld
	case core.Closed:
		return c.closing || c.asksToClose()
	case core.Canceled:
		return r.canceled || r.verb == "renew" && r.lease.over
	case core.NotHeld:
		return r.wrong || r.verb == "force_release" || r.forgot
	case core.Lost: // a key is not gone before its lease's deadline, except by ourselves
		return !valid || w.plan.lawless
	case core.OK:
		return !isAcquire || c.leases[o.Op] == nil
	}
	return true
}

// roundLimit is when a question to all nodes is over at the latest: once they have their time anew, if one did not know
// the script.
func roundLimit(w *world, ttl core.Duration) core.Duration { return 2 * nodeTimeout(w, ttl) }

// nodeTimeout is how long one node may take, as docs/reference.md has it, or some clients have set it.
func nodeTimeout(w *world, ttl core.Duration) core.Duration {
	if w.plan.nodes > 1 {
		return max(min(ttl/10, 250*core.Millisecond), core.MinNodeWait, w.plan.patience)
	}
	return max(min(ttl/3, 2*core.Second), core.MinNodeWait, w.plan.patience)
}

// acquireLimit is when an acquire has its outcome at the latest: a try has a round of questions and one for the
// fencing token.
func acquireLimit(w *world, c *client, e *core.Acquire) core.Duration {
	switch e.Wait {
	case 0:
		return 2 * roundLimit(w, e.TTL)
	case core.Forever:
		return core.Forever / 2
	}
	return e.Wait
}
