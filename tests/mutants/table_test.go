package mutants

// The files of rules: the machine's, and the scripts' as the simulation executes them.
const (
	acquireGo = "core/acquire.go"
	cleanGo   = "core/clean.go"
	configGo  = "core/config.go"
	leaseGo   = "core/lease.go"
	queueGo   = "core/queue.go"
	quorumGo  = "core/quorum.go"
	waitGo    = "core/wait.go"
	scriptsGo = "core/sim/mutex.go"
	placesGo  = "core/sim/queue.go"
	serverGo  = "core/sim/server.go"
)

var mutants = []mutant{
	// The lease.
	{name: "no drift", often: true, edits: []edit{{configGo, "return ttl/100 + 2*Millisecond", "return 0"}}},
	{name: "no elapsed check", edits: []edit{{acquireGo, "\tif deadline <= m.now {\n\t\tm.loseAttempt(", "\tif false {\n\t\tm.loseAttempt("}}},
	{name: "a deadline from the reply", edits: []edit{{acquireGo, "leaseEnd(c.sent, c.ttl)) // a renewal may", "leaseEnd(m.now, c.ttl)) // a renewal may"}}},
	{name: "a renewal counts from its reply", edits: []edit{{leaseGo, "leaseEnd(c.sent, c.ttl)", "leaseEnd(m.now, c.ttl)"}}},
	{name: "a deadline of the longest lease", edits: []edit{{quorumGo, "return sorted[n-quorum(n)]", "return sorted[n-1]"}}},
	{name: "half of the nodes are a quorum", edits: []edit{{quorumGo, "return nodes/2 + 1", "return (nodes + 1) / 2"}}},
	{name: "a renewal may shorten a ttl", edits: []edit{{serverGo, "if s.left(key) < ms {", "if true {"}}},
	{name: "a renewal creates a key", edits: []edit{{scriptsGo, "\tcase !held:\n\t\treturn integers(script.Gone)\n", "\tcase !held && called == script.MutexRenew:\n\t\tc.Put(c.lock, \"string\", c.argv[0], number(c.argv[1]))\n\tcase !held:\n\t\treturn integers(script.Gone)\n"}}},
	{name: "a regrant takes another's key", edits: []edit{{scriptsGo, "\tcase holder.text != c.argv[0]:\n\t\treturn integers(script.No, c.left(c.lock))", "\tcase holder.text != c.argv[0]:\n\t\tc.Put(c.lock, \"string\", c.argv[0], number(c.argv[1]))"}}},

	// What is left behind.
	{name: "a late grant is not undone", often: true, edits: []edit{{cleanGo, "\tcase granted: // after the undo, for all we know\n\t\tc.tell(m, node)", "\tcase granted:"}}},
	{name: "an undo is sent once", edits: []edit{{cleanGo, "if c.stage > before {", "if c.stage > before && false {"}}},
	{name: "a release that is repeated is LOST", edits: []edit{{cleanGo, "if v.answer == no && d.unsure && m.now < g.end {", "if false {"}}},
	{name: "what stands there of one's own is another's", edits: []edit{{cleanGo, "if c.op == 0 { // else", "if false { // else"}}},
	{name: "who gives up keeps the place", edits: []edit{{waitGo, "if !m.bequeath(h) {", "if false {"}}},

	// Fencing tokens.
	{name: "no second round", often: true, edits: []edit{{acquireGo, "if count(a.votes).yes-behind >= quorum(len(a.votes)) {", "if true {"}}},
	{name: "a raise for whoever asks", edits: []edit{
		{scriptsGo, "\tcase !held:\n\t\treturn integers(script.Gone)\n", "\tcase !held && called != script.MutexRaise:\n\t\treturn integers(script.Gone)\n"},
		{scriptsGo, "\tcase holder.text != c.argv[0]:\n\t\treturn integers(script.No)\n", "\tcase holder.text != c.argv[0] && called != script.MutexRaise:\n\t\treturn integers(script.No)\n"},
	}},
	{name: "a hand-over keeps the fencing token", edits: []edit{{placesGo, "fence = c.fence(c.now(), number(p.keep))", "fence, _ = c.counted()"}}},

	// The queue's order.
	{name: "last come, first served", often: true, edits: []edit{{placesGo, "e.items = append(e.items, token)", "e.items = append([]string{token}, e.items...)"}}},
	{name: "an acquire takes what is free", often: true, edits: []edit{{scriptsGo, "case !held && queued && head != token:", "case !held && queued && head != token && false:"}}},
	{name: "last come, first served in a client", edits: []edit{{queueGo, "l.holds = append(l.holds, h)", "l.holds = slices.Insert(l.holds, 1, h)"}}},
	{name: "a beat does not keep the place", edits: []edit{{placesGo, "\tc.wait(token, c.argv[4], number(c.argv[5]), ttl, keep, c.argv[3])\n", ""}}},
	{name: "dead places are served", edits: []edit{{placesGo, "if p != nil && p.life >= c.now() {", "if p != nil {"}}},
	{name: "an undo leaves the place", edits: []edit{{scriptsGo, "left := c.leave(c.argv[0])", "left := false"}}},
	{name: "a place lives for long", edits: []edit{{"core/lock.go", "return 3 * l.beatPeriod()", "return 12 * l.beatPeriod()"}}},
	{name: "who lost the place does not come again", edits: []edit{{queueGo, "m.move(h, displaced)\n\t\tm.attempt(h)", "m.planBeat(h)"}}},

	// The hand-over.
	{name: "a release hands over to nobody", often: true, edits: []edit{{scriptsGo, "case script.MutexRelease:\n", "case script.MutexRelease:\n\t\tc.queue = \"\"\n"}}},
	{name: "a forced release hands over to nobody", edits: []edit{{scriptsGo, "case script.MutexForce:\n", "case script.MutexForce:\n\t\tc.queue = \"\"\n"}}},
	{name: "an undo hands over to nobody", often: true, edits: []edit{{scriptsGo, "if mine || !held {", "if false {"}}},
	{name: "an undo tells everybody", edits: []edit{{scriptsGo, "left := c.leave(c.argv[0])", "left := c.leave(c.argv[0])\n\tc.Publish(\"redlock:released:\"+c.lock, \"mutex\")"}}},
	{name: "a beat does not take what is free", edits: []edit{{placesGo, "\tif !held {\n\t\tvar fence int64", "\tif false {\n\t\tvar fence int64"}}},
	{name: "the new holder is not told", edits: []edit{{placesGo, "if token != asking && c.Publish != nil {", "if false {"}}},
	{name: "a dead waiter costs its ttl", edits: []edit{{placesGo, "min(p.ttl, handedOverMost)", "p.ttl"}}},
	{name: "a hand-over is not confirmed", often: true, edits: []edit{{queueGo, "if h.unconfirmed && h.state == held {", "if false {"}}},
	{name: "a hand-over counts from its message", edits: []edit{{queueGo, "begun := min(told.sent.add(told.elapsed-told.elapsed/100), m.now)", "begun := m.now"}}},
	{name: "a hand-over counts from the reply to a beat", edits: []edit{{queueGo, "leaseEnd(c.sent, c.ttl)", "leaseEnd(m.now, c.ttl)"}}},
	{name: "a hand-over is good for the whole ttl", edits: []edit{{queueGo, "min(a.hold.lock.ttl, handedOverMost)", "a.hold.lock.ttl"}}},
	{name: "a hand-over that is over counts", edits: []edit{
		{queueGo, "if a.deadline() <= m.now { // it came late", "if false { // it came late"},
		{queueGo, "\tif deadline <= m.now {\n\t\tm.loseAttempt(", "\tif false {\n\t\tm.loseAttempt("},
	}},
	{name: "what came before the subscription is missed", edits: []edit{{queueGo, "m.beat(m.holds[id])", "_ = id"}}},
	{name: "a place is left to one with another ttl", edits: []edit{{queueGo, "next.lock.ttl != h.lock.ttl || ", ""}}},
	{name: "the first does not await the holder's end", edits: []edit{{queueGo, "left > 0 && a.turn != 0 {", "false && left > 0 {"}}},
	{name: "waiters beat four times as often", edits: []edit{{queueGo, "\tperiod := h.lock.beatPeriod()", "\tperiod := h.lock.beatPeriod() / 4"}}},
	{name: "a hand-over is confirmed twice", edits: []edit{{queueGo, "\tif h.unconfirmed && h.state == held {\n", "\tif h.unconfirmed && h.state == held {\n\t\tm.beginRenewal(h, 0)\n"}}},
}
