package sim

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// worker is one caller of a client: it acquires, holds, renews, releases, and asks for nonsense at times.
type worker struct {
	world  *world
	client *client
	name   string
}

// again lets the worker do something soon.
func (k *worker) again() {
	k.later(k.world.between(0, 40*core.Millisecond), k.act)
}

func (k *worker) later(d core.Duration, f func()) {
	k.world.after(d, func() { k.client.deliver(f) })
}

func (k *worker) act() {
	w := k.world
	if k.client.closing || w.phase == drain {
		return
	}
	choice := w.rand.IntN(100)
	switch {
	case w.phase == calm || choice < 80:
		k.acquire()
	case choice < 87:
		k.inspect()
	case choice < 96:
		k.nonsense()
	case choice < 98:
		k.close()
	default:
		k.again()
	}
}

func (k *worker) acquire() {
	w := k.world
	e := &core.Acquire{
		Name: pick(w.rand, w.plan.names...),
		TTL:  pick(w.rand, w.plan.maxTTL, w.between(core.MinTTL, w.plan.maxTTL)),
		Wait: pick(w.rand, 0, 0, w.between(1, 200*core.Millisecond), core.Forever),
		Wall: epoch + int64(w.now) + k.client.wall,
	}
	if w.phase != storm {
		e.Wait = core.Forever
	}
	if w.rand.IntN(8) == 0 {
		e.Fencing = core.Off
	}
	if w.rand.IntN(2) == 0 {
		e.AutoRenew = core.Off
	}
	if w.rand.Float64() < w.plan.plain {
		e.Queue = core.Off
	}
	if w.rand.IntN(6) == 0 {
		e.MaxHold = w.between(core.MinTTL, 2*w.plan.maxTTL)
	}
	binary.BigEndian.PutUint64(e.Seed[:], w.rand.Uint64())
	binary.BigEndian.PutUint64(e.Seed[8:], w.rand.Uint64())
	r := &request{event: e, verb: "acquire", limit: acquireLimit(w, k.client, e)}
	r.then = func(o core.Outcome) {
		if o.Status == core.OK {
			k.hold(k.client.leases[o.Op])
		} else {
			k.again()
		}
	}
	op := k.client.ask(r)
	k.maybeCancel(op, r, 0.15)
}

// maybeCancel gives a request up at a random moment.
func (k *worker) maybeCancel(op core.OpID, r *request, chance float64) {
	w := k.world
	if !w.chance(chance) {
		return
	}
	k.later(w.between(0, pick(w.rand, core.Millisecond, 10*core.Millisecond, w.plan.maxTTL)), func() {
		k.client.logf("cancels #%d", op)
		r.canceled = k.client.requests[op] == r
		k.client.step(&core.Cancel{Op: op})
	})
}

// hold does what one does with a lock.
func (k *worker) hold(l *lease) {
	w := k.world
	if k.client.closing {
		return
	}
	if w.phase != storm {
		k.later(w.between(0, 10*core.Millisecond), func() { k.release(l) })
		return
	}
	k.later(w.between(0, pick(w.rand, core.Millisecond, w.plan.maxTTL/3, 2*w.plan.maxTTL)), func() {
		switch choice := w.rand.IntN(100); {
		case choice < 40:
			k.renew(l, func() { k.hold(l) })
		case choice < 43: // two at once
			k.renew(l, func() {})
			k.renew(l, func() { k.hold(l) })
		case choice < 46: // and a release while a renewal is under way
			k.renew(l, func() {})
			k.release(l)
		default:
			k.release(l)
		}
	})
}

func (k *worker) renew(l *lease, then func()) {
	w := k.world
	r := &request{event: &core.Renew{Hold: l.op, TTL: pick(w.rand, 0, w.between(core.MinTTL, 2*w.plan.maxTTL))}, verb: "renew", lease: l}
	r.then = func(core.Outcome) { then() }
	r.limit = roundLimit(w, 2*w.plan.maxTTL)
	op := k.client.ask(r)
	k.maybeCancel(op, r, 0.1)
}

func (k *worker) release(l *lease) {
	r := &request{event: &core.Release{Hold: l.op}, verb: "release", lease: l, limit: roundLimit(k.world, 2*k.world.plan.maxTTL)}
	r.then = func(core.Outcome) {
		switch k.world.rand.IntN(12) { // forgotten now
		case 0:
			k.renew(l, k.again)
		case 1:
			k.release(l)
		default:
			k.again()
		}
	}
	k.client.ask(r)
}

// inspect looks at a name, and forces its holder out where leases mean nothing.
func (k *worker) inspect() {
	w := k.world
	name := pick(w.rand, w.plan.names...)
	r := &request{event: &core.Inspect{Name: name}, verb: "inspect", limit: roundLimit(w, core.DefaultTTL)}
	r.then = func(o core.Outcome) {
		digest := strings.Repeat("0", 40)
		if o.Status == core.OK && len(o.Inspection.Holders) > 0 && w.plan.lawless {
			digest = o.Inspection.Holders[0].Digest
		}
		force := &request{event: &core.ForceRelease{Name: name, Digest: digest}, verb: "force_release", limit: roundLimit(w, core.DefaultTTL)}
		force.then = func(core.Outcome) { k.again() }
		k.client.ask(force)
	}
	k.client.ask(r)
}

// nonsense makes a request that can't succeed.
func (k *worker) nonsense() {
	events := []core.Request{
		&core.Acquire{Name: ""},
		&core.Acquire{Name: "a", TTL: 1},
		&core.Acquire{Name: "a", Wait: -1},
		&core.Acquire{Name: "a", Kind: core.Semaphore},
		&core.Acquire{Name: "a", MaxHold: 1},
		&core.Renew{Hold: 1 << 40},
		&core.Release{Hold: 1 << 40},
		&core.Inspect{Name: "\xff"},
		&core.ForceRelease{Name: "a", Digest: "short"},
	}
	verbs := []string{"acquire", "acquire", "acquire", "acquire", "acquire", "renew", "release", "inspect", "force_release"}
	i := k.world.rand.IntN(len(events))
	r := &request{event: events[i], verb: verbs[i], wrong: true}
	r.then = func(core.Outcome) { k.again() }
	k.client.ask(r)
}

// close ends the client, and starts another one later.
func (k *worker) close() {
	w, c := k.world, k.client
	r := &request{event: &core.Close{}, verb: "close", limit: roundLimit(w, core.MaxTTL)}
	r.then = func(core.Outcome) {
		for _, event := range []core.Request{&core.Acquire{Name: "a"}, &core.Close{}, &core.Release{Hold: 1}} {
			c.ask(&request{event: event, verb: "late", wrong: true, then: func(core.Outcome) {}})
		}
		w.after(w.between(0, w.plan.maxTTL), func() { w.newClient(c.index) })
	}
	c.ask(r)
	c.closing = true
}

// describe writes a request for the log, such as "Renew{Op:2 Hold:1 TTL:300000}".
func describe(event core.Request) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", event), "*core.") + strings.TrimPrefix(fmt.Sprintf("%+v", event), "&")
}
