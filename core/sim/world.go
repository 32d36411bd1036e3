package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// Result is what happened in a world.
type Result struct {
	Seed         uint64
	Failure      string // "" if every check held
	Acquisitions int
	Losses       int
	Steps        int
	Calls        int
	HandOvers    int           // to one that was told
	Beats        int           // of waiters
	Waited       core.Duration // by all of them together
	Coverage     Coverage
}

// Run runs the world of a seed to its end, and logs every event to log unless it is nil.
func Run(seed uint64, log io.Writer) (result Result) {
	w := &world{
		rand:   rand.New(rand.NewPCG(seed, 0x6c6f636b73)),
		output: log,
		result: Result{Seed: seed, Coverage: Coverage{}},
	}
	defer func() {
		result = w.result
		switch failure := recover().(type) {
		case nil:
		case violation:
			result.Failure = string(failure)
		default: // the machine's own
			result.Failure = fmt.Sprintf("panic: %v\n%s", failure, debug.Stack())
		}
	}()
	w.run()
	return w.result
}

// violation is what a check panics with.
type violation string

// fail ends the world: a check does not hold.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf("at %.6f s: ", float64(w.now)/1e6) + fmt.Sprintf(format, args...)
	w.logf("FAIL", "%s", text)
	panic(violation(text))
}

type phase int

const (
	storm phase = iota
	calm
	drain
)

// world is everything there is. Its time is the true one.
type world struct {
	plan   plan
	rand   *rand.Rand
	now    core.Time
	queue  queue
	phase  phase
	output io.Writer
	result Result

	nodes         []*node
	clients       []*client
	cuts          map[link]cut
	subscriptions []*subscription
	check         checks
}

func (w *world) run() {
	w.plan = newPlan(w.rand)
	w.logf("world", "%+v", w.plan)
	w.cuts = map[link]cut{}
	w.check = newChecks()
	for i := range w.plan.nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i := range w.plan.clients {
		w.clients = append(w.clients, nil)
		w.newClient(i)
	}
	w.disaster()
	w.until(core.Time(w.plan.storm))

	w.beginCalm()
	begun := w.now
	bound := 4*w.plan.maxTTL + 5*core.Second
	for w.check.missing(w.plan.names) != "" {
		if w.now > begun+core.Time(bound) || !w.next() {
			w.fail("nobody acquired %q within %v of calm", w.check.missing(w.plan.names), bound)
		}
	}

	w.logf("world", "drain: what is held is given back, and nobody asks for more")
	w.phase = drain
	w.until(w.now + core.Time(30*core.Second+10*w.plan.maxTTL))
	w.checkRest()
}

// beginCalm ends all that is wrong. Messages that are on their way may still come very late.
func (w *world) beginCalm() {
	w.logf("world", "calm: nothing goes wrong any more")
	w.phase = calm
	w.check.calm = w.now
	clear(w.cuts)
	clear(w.check.acquired)
	for _, n := range w.nodes {
		n.heal()
	}
	if !w.plan.quiet && w.rand.IntN(2) == 0 { // who holds or waits is dead at once
		w.crash(pick(w.rand, w.clients...))
	}
	for _, c := range w.clients {
		c.deliver(c.connect)
	}
}

// after calls f some time from now.
func (w *world) after(d core.Duration, f func()) { w.queue.push(w.now+core.Time(max(d, 0)), f) }

// next lets the next event happen; false if there is none.
func (w *world) next() bool {
	at, f, ok := w.queue.pop()
	if ok {
		w.now = max(w.now, at)
		f()
	}
	return ok
}

// until lets happen what happens before a time.
func (w *world) until(end core.Time) {
	for len(w.queue.events) > 0 && w.queue.events[0].at <= end {
		w.next()
	}
	w.now = max(w.now, end)
}

// logf writes a line about who did what.
func (w *world) logf(who, format string, args ...any) {
	if w.output != nil {
		text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
		fmt.Fprintf(w.output, "%11.6f  %-8s %s\n", float64(w.now)/1e6, who, text)
	}
}

// chance is true with this probability, and never when nothing may go wrong.
func (w *world) chance(p float64) bool {
	return w.phase == storm && p > 0 && w.rand.Float64() < p
}

// between draws a duration from low..high.
func (w *world) between(low, high core.Duration) core.Duration {
	return low + core.Duration(w.rand.Int64N(int64(high-low)+1))
}

// queue holds what is to happen, the earliest first, and in the order of the calls at one time.
type queue struct {
	events []event
	pushed uint64
}

type event struct {
	at    core.Time
	order uint64
	f     func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

func (q *queue) push(at core.Time, f func()) {
	q.pushed++
	q.events = append(q.events, event{at, q.pushed, f})
	for i := len(q.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.events[i].before(&q.events[parent]) {
			break
		}
		q.events[i], q.events[parent] = q.events[parent], q.events[i]
		i = parent
	}
}

func (q *queue) pop() (core.Time, func(), bool) {
	last := len(q.events) - 1
	if last < 0 {
		return 0, nil, false
	}
	top := q.events[0]
	q.events[0] = q.events[last]
	q.events[last].f = nil
	q.events = q.events[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q.events[child+1].before(&q.events[child]) {
			child++
		}
		if !q.events[child].before(&q.events[i]) {
			break
		}
		q.events[i], q.events[child] = q.events[child], q.events[i]
		i = child
	}
	return top.at, top.f, true
}
