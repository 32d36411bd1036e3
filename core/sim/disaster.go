package sim

import (
	"github.com/libredlock/libredlock/core"
)

const foreignValue = "another library's value"

// disaster does something bad to the world, again and again while the storm lasts.
func (w *world) disaster() {
	if w.plan.quiet {
		return
	}
	w.after(w.between(0, 2*w.plan.disasters), func() {
		if w.phase != storm {
			return
		}
		i := w.rand.IntN(len(w.clients))
		n := pick(w.rand, w.nodes...)
		long := core.Time(w.between(core.Millisecond, 2*w.plan.maxTTL))
		switch w.rand.IntN(8) {
		case 0:
			w.clients[i].pausedUntil = max(w.clients[i].pausedUntil, w.now+long)
			w.clients[i].logf("pauses for %d ms", long/1000)
		case 1:
			w.crash(w.clients[i])
		case 2:
			w.cuts[link{i, n.index}] = cut{w.now + long, w.rand.IntN(2) == 0}
			w.logf("network", "%s and %s are cut off for %d ms", w.clients[i].name, n.name, long/1000)
		case 3:
			n.stalledUntil = w.now + long
			w.logf(n.name, "stalls for %d ms", long/1000)
		case 4:
			n.downUntil = w.now + long
			w.logf(n.name, "can't be connected to for %d ms", long/1000)
		case 5:
			w.intrude()
		case 6:
			for _, s := range w.subscriptions {
				if s.client == w.clients[i] {
					s.drop()
				}
			}
		case 7:
			if w.plan.lawless {
				n.clock.offset += w.rand.Int64N(4_000_000) - 2_000_000
				w.check.darken()
				w.logf(n.name, "its clock jumps: %+v", n.clock)
			}
		}
		w.disaster()
	})
}

// intrude puts a value that is not ours at a free name, on some nodes.
func (w *world) intrude() {
	name := pick(w.rand, w.plan.names...)
	kind := pick(w.rand, "string", "list")
	ttl := pick[int64](w.rand, 0, 30, int64(w.plan.maxTTL/core.Millisecond))
	for _, n := range w.nodes {
		if _, taken := n.server.look(name); !taken && w.rand.IntN(4) > 0 {
			n.server.Put(name, kind, foreignValue, ttl)
			w.logf(n.name, "somebody puts a %s at %q for %d ms", kind, name, ttl)
		}
	}
}
