package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// lease is a hold as its owner sees it.
type lease struct {
	client       *client
	op           core.OpID
	name         string
	token        string
	deadline     core.Time // on the client's clock
	most         core.Time // that the deadline may be, for a MaxHold
	over         bool      // lost, or its release was asked for
	releaseAsked bool
	lostTold     bool
	told         core.Time // when the owner heard of it
	renewed      bool      // a renewal was asked for
	early        bool      // it was told before the acquire had its answer
}

// valid tells whether the owner may use what the lock protects.
func (l *lease) valid(now core.Time) bool {
	return !l.over && core.Time(l.client.clock.at(now)) < l.deadline
}

// grant is one fencing token that was handed out.
type grant struct {
	begun core.Time // when its attempt was sent
	told  core.Time
	fence int64
}

// checks is what the world knows of all clients, to compare with what a machine says.
type checks struct {
	clients  int
	machines []*client // all there were

	begun    map[string]core.Time // when the first call of an attempt was sent, by its token
	leases   map[string][]*lease  // by name; some of them over
	grants   map[string][]grant   // by name, in the order of the outcomes
	fences   map[string]map[int64]bool
	acquired map[string]bool // since the calm began

	standing map[place]bool       // tokens that nodes have granted, until an undo or release is executed
	undoSent map[place]int        // the step in which one was sent last
	undone   map[string]core.Time // when the first undo was sent, by its token
	placed   map[place]core.Time  // when a token came to stand at a lock's key

	// On one deployment: order.go, prompt.go and cost.go.
	turns     map[string][]*turn   // by name, in their order
	asked     map[string]*message  // by token, the latest acquire of it
	reported  map[string]*lease    // by token
	handOvers map[string]*handOver // by token
	commands  map[string]int       // by token
	expires   map[string]core.Time // by name, when what a script left there ends
	rooted    map[string]bool      // tokens that were given in the storm, or by a call from then
	calm      core.Time            // when it began
	settled   map[string]core.Time // by name, when the storm was felt there last
}

func newChecks() checks {
	return checks{
		begun:    map[string]core.Time{},
		leases:   map[string][]*lease{},
		grants:   map[string][]grant{},
		fences:   map[string]map[int64]bool{},
		acquired: map[string]bool{},
		standing: map[place]bool{},
		undoSent: map[place]int{},
		undone:   map[string]core.Time{},
		placed:   map[place]core.Time{},

		turns:     map[string][]*turn{},
		asked:     map[string]*message{},
		reported:  map[string]*lease{},
		handOvers: map[string]*handOver{},
		commands:  map[string]int{},
		expires:   map[string]core.Time{},
		rooted:    map[string]bool{},
		settled:   map[string]core.Time{},
	}
}

// missing is a name that nobody has acquired; "" if there is none.
func (ch *checks) missing(names []string) string {
	for _, name := range names {
		if !ch.acquired[name] {
			return name
		}
	}
	return ""
}

// call looks at what a machine sends.
func (ch *checks) call(w *world, c *client, m *message) {
	switch {
	case m.call.ID <= c.lastCall:
		w.fail("%s: call #%d after #%d", c.name, m.call.ID, c.lastCall)
	case m.call.Node < 0 || m.call.Node >= len(w.nodes):
		w.fail("%v goes to node %d", m, m.call.Node)
	case m.call.Timeout <= 0 || m.call.Timeout > core.MaxTTL:
		w.fail("%v has %d µs", m, m.call.Timeout)
	case m.script == "":
		w.fail("%v runs no script: %q", m, m.call.Args)
	}
	c.lastCall = m.call.ID
	switch m.script {
	case "mutex_acquire", "mutex_regrant":
		if _, given := ch.undoSent[m.place()]; given {
			w.fail("%v is sent after its undo", m)
		}
		if _, known := ch.begun[m.token()]; !known {
			ch.begun[m.token()] = w.now
		}
		ch.asked[m.token()] = m
	case "mutex_undo", "mutex_release":
		if _, known := ch.undone[m.token()]; !known && m.script == "mutex_undo" {
			ch.undone[m.token()] = w.now
			ch.expectRemoval(w, m)
		}
		ch.undoSent[m.place()] = w.result.Steps
	}
}

// granted checks a new lease.
func (ch *checks) granted(w *world, c *client, e *core.Acquire, o core.Outcome) {
	w.result.Acquisitions++
	l := &lease{client: c, op: o.Op, name: e.Name, token: o.Token, deadline: o.Deadline, told: w.now, early: !ch.asked[o.Token].answered}
	if c.leases[o.Op] != nil || o.Token == "" {
		w.fail("%s: hold #%d is not new, or has no token", c.name, o.Op)
	}
	if l.most = core.Never; e.MaxHold != 0 {
		l.most = c.now() + core.Time(e.MaxHold)
	}
	if o.Deadline <= c.now() || o.Deadline > l.most {
		w.fail("%s: hold #%d was over before it was told, or is to last for too long", c.name, o.Op)
	}
	if (o.Fence != 0) != (e.Fencing != core.Off) {
		w.fail("%s: hold #%d has the fencing token %d", c.name, o.Op, o.Fence)
	}
	c.leases[o.Op] = l
	c.live = append(c.live, l)
	ch.acquired[e.Name] = true
	ch.reported[o.Token] = l
	c.logf("holds %q as #%d until %.6f, fence %d", e.Name, o.Op, float64(c.clock.when(int64(o.Deadline)))/1e6, o.Fence)
	ch.exclusive(w, l)
	ch.inLine(w, c, o.Op, e)
	ch.expectConfirmation(w, l)
	ch.leases[e.Name] = append(ch.leases[e.Name], l)
	if o.Fence != 0 {
		ch.fence(w, e.Name, grant{begun: ch.begun[o.Token], told: w.now, fence: o.Fence})
	}
}

// exclusive fails if another lease of the name is valid, or if this one is not what the nodes have.
func (ch *checks) exclusive(w *world, l *lease) {
	if w.plan.lawless || !l.valid(w.now) {
		return
	}
	live := ch.leases[l.name][:0]
	for _, other := range ch.leases[l.name] {
		if other != l && other.valid(w.now) {
			w.fail("two leases of %q: %s #%d and %s #%d", l.name, other.client.name, other.op, l.client.name, l.op)
		}
		if other.valid(w.now) {
			live = append(live, other)
		}
	}
	ch.leases[l.name] = live
	if until := l.client.clock.when(int64(l.deadline)); ch.backing(w, l, until) < l.client.quorum {
		w.fail("%s: the lease #%d of %q until %.6f has no quorum of nodes", l.client.name, l.op, l.name, float64(until)/1e6)
	}
}

// robbed fails if a script took a valid lease's token from a node that its quorum needs.
func (ch *checks) robbed(w *world, m *message, before, after string) {
	l := ch.reported[strings.TrimPrefix(before, "string ")]
	if l == nil || before == after || w.plan.lawless || !l.valid(w.now) {
		return
	}
	if ch.backing(w, l, l.client.clock.when(int64(l.deadline))) < l.client.quorum {
		w.fail("%v takes %q from %s #%d, which has it until %d", m, l.name, l.client.name, l.op, l.deadline)
	}
}

// backing counts the nodes that have a lease's token until a true time.
func (ch *checks) backing(w *world, l *lease, until core.Time) (nodes int) {
	for _, n := range w.nodes {
		e, ok := n.server.look(l.name)
		if ok && e.text == l.token && n.clock.when((e.expires+1)*1000-epoch) >= until {
			nodes++
		}
	}
	return nodes
}

// fence checks a fencing token against those before. Where clocks mean nothing leases overlap: the
// order is then the one of grants of which the first was told before the second was asked for.
func (ch *checks) fence(w *world, name string, g grant) {
	for _, earlier := range ch.grants[name] {
		if earlier.fence == g.fence {
			w.fail("the fencing token %d of %q was handed out twice", g.fence, name)
		}
		if earlier.fence > g.fence && (earlier.told < g.begun || !w.plan.lawless) {
			w.fail("the fencing token %d of %q follows %d", g.fence, name, earlier.fence)
		}
	}
	ch.grants[name] = append(ch.grants[name], g)
}

// losses are parts of what the machine says of a lost hold.
var losses = []string{"could not be renewed", "max_hold", "another's", "ran out", "closed"}

// notice checks what a machine tells of its own.
func (ch *checks) notice(w *world, c *client, n core.Notice) {
	l := c.leases[n.Hold]
	if n.Kind == core.NoticeHealth {
		return
	}
	if l == nil || l.releaseAsked || l.lostTold {
		w.fail("%s: a notice for #%d, which is not held: %+v", c.name, n.Hold, n)
	}
	switch n.Kind {
	case core.NoticeDeadline:
		c.logf("holds #%d until %.6f now", n.Hold, float64(c.clock.when(int64(n.Deadline)))/1e6)
		l.deadline = n.Deadline
		if l.deadline > l.most {
			w.fail("%s: #%d goes on beyond its MaxHold", c.name, n.Hold)
		}
		ch.exclusive(w, l)
	case core.NoticeLost:
		c.logf("lost #%d: %s", n.Hold, n.Cause)
		w.result.Losses++
		for _, why := range losses {
			if strings.Contains(n.Cause, why) {
				w.result.Coverage.add("lost: " + why)
			}
		}
		if l.valid(w.now) && !w.plan.lawless && !c.closing && !c.asksToClose() {
			w.fail("%s: #%d is lost before its deadline: %s", c.name, n.Hold, n.Cause)
		}
		l.lostTold, l.over = true, true
	}
}

// asksToClose tells whether a Close has no outcome yet.
func (c *client) asksToClose() bool {
	for _, r := range c.requests {
		if r.verb == "close" {
			return true
		}
	}
	return false
}

// checkRest fails if anything remains after everything was given back.
func (w *world) checkRest() {
	for _, c := range w.check.machines {
		if c.crashed {
			continue
		}
		if len(c.requests) > 0 {
			for op, r := range c.requests {
				w.fail("%s: the request #%d (%s) never got an outcome", c.name, op, r.verb)
			}
		}
		if stats := c.machine.Stats(); stats != (core.Stats{}) {
			w.fail("%s: the machine is not at rest: %+v", c.name, stats)
		}
		if c.wake != core.Never {
			w.fail("%s: the machine wants to wake at %d", c.name, c.wake)
		}
	}
	if len(w.queue.events) > 0 {
		w.fail("%d things are still to happen", len(w.queue.events))
	}
	for _, n := range w.nodes {
		for _, key := range n.server.Keys() {
			switch {
			case strings.Contains(key, ":redlock:mutex:queue:"), strings.Contains(key, ":redlock:mutex:places:"):
				w.checkPlaces(n, key)
			case !slices.Contains(slices.Collect(maps.Values(fenceKeys)), key):
				w.fail("%s: the key %q is left", n.name, key)
			}
		}
	}
	w.now += core.Time(queueKeep * core.Millisecond)
	for _, n := range w.nodes {
		for _, key := range n.server.Keys() {
			if !strings.Contains(key, ":fence:") {
				w.fail("%s: the key %q is still there after a minute", n.name, key)
			}
		}
	}
	w.now += core.Time(core.MinFenceTTL + core.MaxTTL)
	for _, n := range w.nodes {
		if keys := n.server.Keys(); len(keys) > 0 {
			w.fail("%s: the keys %q never expire", n.name, keys)
		}
	}
}

// checkPlaces fails if a client that lives has left a place: those of the others die by themselves.
func (w *world) checkPlaces(n *node, key string) {
	e, _ := n.server.look(key)
	for token, place := range e.fields {
		if life, _, _ := strings.Cut(place, " "); number(life) < n.server.now() {
			continue // it came after the last undo
		}
		for _, c := range w.check.machines {
			if strings.HasSuffix(token, ":sim/"+c.name+"/go") && !c.crashed && !c.closing {
				w.fail("%s: %s has left its place %s in %q", n.name, c.name, token, key)
			}
		}
	}
}
