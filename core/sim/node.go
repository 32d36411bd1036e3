package sim

import (
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// node is a server with a clock of its own, that may be silent for a time.
type node struct {
	world  *world
	index  int
	name   string
	clock  clock
	server *Server

	published []string // by the script that is being executed

	stalledUntil core.Time // executes nothing before
	downUntil    core.Time // can't be connected to before
}

// epoch is when worlds begin, in microseconds since 1970.
const epoch = 1_700_000_000_000_000

func newNode(w *world, index int) *node {
	n := &node{world: w, index: index, name: "node " + strconv.Itoa(index)}
	n.clock = newClock(w.rand, pick[int64](w.rand, 0, 3_000_000, 150_000_000))
	n.server = NewServer(func() int64 { return epoch + n.clock.at(w.now) })
	n.server.Publish = func(channel, payload string) int64 { return w.publish(n, channel, payload) }
	n.server.Listening = func(channel string) int64 { return w.listening(n, channel) }
	w.logf(n.name, "clock %+v", n.clock)
	if w.plan.ahead {
		for _, name := range w.plan.names {
			counter := 2*epoch + w.rand.Int64N(4)
			n.server.Put(fenceKeys[name], "string", strconv.FormatInt(counter, 10), int64(core.MinFenceTTL/core.Millisecond))
		}
	}
	return n
}

// heal ends what is wrong with a node, other libraries' values included.
func (n *node) heal() {
	n.stalledUntil, n.downUntil = 0, 0
	for _, name := range n.world.plan.names {
		if e, ok := n.server.look(name); ok && (e.kind != "string" || e.text == foreignValue) {
			n.server.Delete(name)
		}
	}
}

// execute runs a call that has arrived.
func (n *node) execute(m *message) {
	w := n.world
	switch {
	case w.now < n.stalledUntil:
		w.queue.push(n.stalledUntil, func() { n.execute(m) })
		return
	case w.now < n.downUntil:
		m.fault(core.Unknown, "the server closed the connection")
		return
	case w.chance(w.plan.failing):
		n.fail(m)
		return
	case w.chance(w.plan.forgetful):
		n.server.ForgetScripts()
	}
	if w.plan.lawless && w.chance(w.plan.vanish) {
		n.vanish(pick(w.rand, w.plan.names...))
	}
	reply, err := n.do(m)
	if err != nil {
		w.logf(n.name, "%v: %v", m, err)
		m.reply(&core.Answer{Fault: core.ErrorReply, Cause: err.Error()})
		return
	}
	w.logf(n.name, "%v: %v", m, reply)
	w.check.executed(m, reply)
	w.check.command(w, m)
	if w.chance(w.plan.nonsense) {
		reply = pick(w.rand, nil, integers(), integers(9), []core.Value{{Str: "1", IsString: true}})
	}
	m.reply(&core.Answer{Reply: reply})
}

// do executes a call, and checks what it did.
func (n *node) do(m *message) ([]core.Value, error) {
	name := m.keys()[0]
	before := n.holder(name)
	n.published = n.published[:0]
	reply, err := n.server.Do(m.call.Args)
	n.world.check.order(n, m, before, reply, err)
	n.world.check.noteExpiry(n, name)
	return reply, err
}

// vanish removes a lock, or one of the keys of its queue.
func (n *node) vanish(name string) {
	key := name
	if n.world.rand.IntN(4) == 0 {
		key = strings.Replace(fenceKeys[name], ":fence:", pick(n.world.rand, ":queue:", ":places:"), 1)
		n.world.check.forgetTurns(name)
	}
	n.world.logf(n.name, "%q vanishes", key)
	n.server.Delete(key)
}

// fail answers with an error, before the call was executed or behind its first write.
func (n *node) fail(m *message) {
	cause := "LOADING Redis is loading the dataset in memory"
	if n.world.chance(0.5) && m.script == "mutex_acquire" {
		n.server.breakNext = true
		_, err := n.do(m)
		n.server.breakNext = false
		if err != nil {
			cause = err.Error()
		}
	}
	n.world.logf(n.name, "%v: %s", m, cause)
	m.reply(&core.Answer{Fault: core.ErrorReply, Cause: cause})
}
