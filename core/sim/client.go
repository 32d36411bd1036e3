package sim

import (
	"strconv"

	"github.com/libredlock/libredlock/core"
)

// client drives one machine, as core's documentation says that a driver does.
type client struct {
	world   *world
	index   int
	name    string
	clock   clock
	wall    int64 // by which its wall clock is ahead
	quorum  int
	machine *core.Machine

	pausedUntil core.Time
	crashed     bool
	closing     bool

	bears core.Duration  // its UnavailableAfter
	weary map[string]int // by name, the step in which a wait without limit gave up

	lastOp   core.OpID
	lastCall core.CallID
	requests map[core.OpID]*request
	leases   map[core.OpID]*lease
	live     []*lease // those whose loss is still to be told
	wake     core.Time
	wakes    int // changes of wake
}

// request is one without an outcome.
type request struct {
	event    core.Request
	verb     string
	lease    *lease    // that it is about, if it is a renewal or a release
	asked    core.Time // on the client's clock
	askedAt  core.Time
	limit    core.Duration // for its outcome
	wrong    bool          // it can't succeed
	forgot   bool          // asked after the release of its lease
	canceled bool
	then     func(core.Outcome)
}

// newClient starts a client with its workers.
func (w *world) newClient(index int) *client {
	w.check.clients++
	c := &client{
		world:    w,
		index:    index,
		name:     "client" + strconv.Itoa(w.check.clients),
		clock:    newClock(w.rand, 10_000_000),
		wall:     pick[int64](w.rand, 0, 0, 5_000, -2_000_000, 100_000_000, -100_000_000),
		quorum:   w.plan.nodes/2 + 1,
		requests: map[core.OpID]*request{},
		leases:   map[core.OpID]*lease{},
		weary:    map[string]int{},
		wake:     core.Never,
	}
	c.bears = pick(w.rand, 300*core.Millisecond, core.Second, 3*core.Second)
	config := core.Config{
		Who:              "sim/" + c.name + "/go",
		NodeTimeout:      pick(w.rand, 0, 0, w.plan.patience),
		UnavailableAfter: c.bears,
		OnTransition:     func(t core.Transition) { w.result.Coverage.add(transitionName(t)) },
	}
	for _, n := range w.nodes {
		config.Nodes = append(config.Nodes, n.name)
	}
	machine, err := core.New(config)
	if err != nil {
		w.fail("a sound configuration is refused: %v", err)
	}
	c.machine = machine
	c.logf("starts, clock %+v, wall clock ahead by %d ms", c.clock, c.wall/1000)
	w.clients[index] = c
	w.check.machines = append(w.check.machines, c)
	c.connect()
	for i := range w.plan.workers {
		k := &worker{world: w, client: c, name: c.name + "." + strconv.Itoa(i)}
		k.again()
	}
	return c
}

// connect tells the machine what a driver has read from the nodes.
func (c *client) connect() {
	w := c.world
	for i := range w.nodes {
		facts := core.Facts{Version: "7.2.4", RunID: "run" + strconv.Itoa(i), UptimeS: 86_400, Evicts: w.chance(0.1), Replica: w.chance(0.05), Unreadable: w.chance(0.05)}
		if i == 0 && w.plan.tooOld && w.phase == storm {
			facts.Version = "5.0.14"
		}
		c.step(&core.Connected{Node: i, Facts: facts})
	}
}

// crash ends a client and starts another in its place later. What it sent goes on.
func (w *world) crash(c *client) {
	if c.crashed {
		return
	}
	c.logf("crashes")
	c.crashed = true
	w.after(w.between(0, w.plan.maxTTL), func() { w.newClient(c.index) })
}

func (c *client) logf(format string, args ...any) { c.world.logf(c.name, format, args...) }

func (c *client) now() core.Time { return core.Time(c.clock.at(c.world.now)) }

// deliver lets the client do something as soon as it is awake. What came during a pause comes in any order.
func (c *client) deliver(f func()) {
	w := c.world
	switch {
	case c.crashed:
	case w.now < c.pausedUntil:
		w.queue.push(c.pausedUntil+core.Time(w.between(0, 200)), func() { c.deliver(f) })
	default:
		f()
	}
}

// ask makes a request.
func (c *client) ask(r *request) core.OpID {
	c.lastOp++
	r.event.SetOp(c.lastOp)
	r.asked, r.askedAt = c.now(), c.world.now
	r.wrong = r.wrong || c.closing
	if r.lease != nil {
		r.forgot = r.lease.releaseAsked
		r.lease.over = r.lease.over || r.verb == "release"
		r.lease.renewed = r.lease.renewed || r.verb == "renew"
	}
	c.requests[c.lastOp] = r
	if c.world.output != nil {
		c.logf("asks #%d: %s", c.lastOp, describe(r.event))
	}
	op := c.lastOp
	c.step(r.event) // tells of a loss before the request, if there was one
	if r.verb == "release" && r.lease != nil {
		r.lease.releaseAsked = true
	}
	return op
}

// step feeds the machine and does what it says.
func (c *client) step(event core.Event) {
	w := c.world
	w.result.Steps++
	effects := c.machine.Step(c.now(), event)
	for _, outcome := range effects.Outcomes {
		c.outcome(outcome)
	}
	for _, notice := range effects.Notices {
		w.check.notice(w, c, notice)
	}
	for _, call := range effects.Calls {
		w.send(c, call)
	}
	for _, effect := range effects.Subscriptions {
		w.subscribe(c, effect)
	}
	w.check.deadlines(w, c, effects.Wake)
	if effects.Wake != c.wake {
		c.wake = effects.Wake
		c.setTimer()
	}
}

// setTimer sees to a Tick, at Wake or a little later.
func (c *client) setTimer() {
	c.wakes++
	if c.wake == core.Never {
		return
	}
	number, late := c.wakes, core.Time(0)
	if c.world.chance(0.2) {
		late = core.Time(c.world.between(0, tickLate))
	}
	c.world.queue.push(c.clock.when(int64(c.wake))+late, func() {
		c.deliver(func() {
			if c.wakes == number {
				c.step(&core.Tick{})
			}
		})
	})
}

const tickLate = 2 * core.Millisecond

// outcome hands an outcome to whoever asked, after this step.
func (c *client) outcome(o core.Outcome) {
	w := c.world
	r := c.requests[o.Op]
	if r == nil {
		w.fail("%s: an outcome for #%d, which has none to get: %+v", c.name, o.Op, o)
	}
	delete(c.requests, o.Op)
	c.logf("outcome of #%d (%s): %v %s", o.Op, r.verb, o.Status, o.Message)
	w.result.Coverage.add(r.verb + " " + o.Status.String())
	w.check.outcome(w, c, r, o)
	w.after(0, func() { c.deliver(func() { r.then(o) }) })
}
