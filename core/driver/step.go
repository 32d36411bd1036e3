package driver

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/libredlock/libredlock/core"
)

// work is what steps want done without the mutex.
type work struct {
	calls    []core.Call
	finished []*request
	told     []func() // callbacks
	other    bool     // subscriptions were passed on
}

var works = sync.Pool{New: func() any { return new(work) }}

func newWork() *work { return works.Get().(*work) }

// free lets somebody else use the memory.
func (w *work) free() {
	clear(w.calls)
	clear(w.finished)
	clear(w.told)
	*w = work{calls: w.calls[:0], finished: w.finished[:0], told: w.told[:0]}
	works.Put(w)
}

// posted is an event for the machine, with the request that it makes, if it makes one.
type posted struct {
	request *request
	event   core.Event
}

// inbox is what waits to be stepped.
type inbox struct {
	mu     sync.Mutex
	events []posted
	// The last batch's memory, guarded by the driver's mutex.
	spare    []posted
	acquires []*core.Acquire
}

// post has events stepped soon, together with what else comes until then, and what comes of it done. So many callers
// neither queue for the machine nor need deep stacks, and what they cause leaves in one batch.
func (d *Driver) post(batch ...posted) {
	d.inbox.mu.Lock()
	first := len(d.inbox.events) == 0 && len(batch) > 0
	d.inbox.events = append(d.inbox.events, batch...)
	d.inbox.mu.Unlock()
	if first {
		go func() {
			runtime.Gosched() // others first
			d.step()
		}()
	}
}

// step feeds events that happened at the same time, and whatever is in the inbox, and does what comes of them.
func (d *Driver) step(events ...core.Event) {
	w := newWork()
	d.mu.Lock()
	now := stepTime()
	for _, event := range events {
		d.stepLocked(now, posted{event: event}, w)
	}
	d.inbox.mu.Lock()
	batch := d.inbox.events
	d.inbox.events = d.inbox.spare[:0]
	d.inbox.mu.Unlock()
	d.seedLocked(batch)
	for _, p := range batch {
		d.stepLocked(now, p, w)
	}
	clear(batch)
	d.inbox.spare = batch
	d.mu.Unlock()
	d.perform(w)
}

// seedLocked seeds the acquires of a batch.
func (d *Driver) seedLocked(batch []posted) {
	acquires := d.inbox.acquires[:0]
	for _, p := range batch {
		if e, ok := p.event.(*core.Acquire); ok {
			acquires = append(acquires, e)
		}
	}
	seed(acquires...)
	clear(acquires)
	d.inbox.acquires = acquires
}

// seed gives acquires what they need from outside, by one call for all of them.
func seed(acquires ...*core.Acquire) {
	var some [8 * len(core.Acquire{}.Seed)]byte
	wall := time.Now().UnixMicro()
	for i, e := range acquires {
		at := i * len(e.Seed) % len(some)
		if at == 0 {
			rand.Read(some[:min(len(some), (len(acquires)-i)*len(e.Seed))]) // never fails: crypto/rand ends the process instead
		}
		copy(e.Seed[:], some[at:])
		e.Wall = wall
	}
}

// stepLocked steps the machine and notes what its effects say about requests and holds.
func (d *Driver) stepLocked(now core.Time, p posted, w *work) {
	if p.request != nil {
		d.requests[p.request.result.Op] = p.request
	}
	if d.failure != nil {
		if p.request != nil {
			d.finish(&core.Outcome{Op: p.request.result.Op, Status: core.Internal, Message: d.failure.Message}, w)
		}
		return
	}
	defer func() {
		if reason := recover(); reason != nil {
			d.fail(reason, w)
		}
	}()
	effects := d.machine.Step(now, p.event)
	w.calls = append(w.calls, effects.Calls...)
	for i := range effects.Outcomes {
		d.finish(&effects.Outcomes[i], w)
	}
	for _, notice := range effects.Notices {
		d.tell(notice, w)
	}
	for _, sub := range effects.Subscriptions {
		d.nodes[sub.Node].listener.change(sub)
		w.other = true
	}
	if effects.Wake < d.armed && !d.closed {
		d.armed = effects.Wake
		// Go's timers stand still while the machine is suspended: so the clock is looked at once a second.
		d.timer.Reset(min(time.Duration(effects.Wake-now)*time.Microsecond, time.Second))
	}
}

// fail ends everything after a panic of the machine, which is of no use any more: what is under way is
// INTERNAL, as is all that comes later, and every hold is lost.
func (d *Driver) fail(reason any, w *work) {
	d.failure = &core.Error{Status: core.Internal, Message: fmt.Sprint("a bug in libredlock, please report it: ", reason)}
	for op := range d.requests {
		d.finish(&core.Outcome{Op: op, Status: core.Internal, Message: d.failure.Message}, w)
	}
	for _, h := range d.holds {
		w.told = append(w.told, h.lose(d.failure.Error())...)
	}
	clear(d.holds)
}

// finish gives a request its result.
func (d *Driver) finish(o *core.Outcome, w *work) {
	r := d.requests[o.Op]
	if r == nil {
		return
	}
	delete(d.requests, o.Op)
	if r.release != 0 {
		delete(d.holds, r.release)
	}
	r.finished = true
	r.result.Err = o.Err()
	r.result.Inspection = o.Inspection
	if r.acquire != nil && o.Status == core.OK {
		h := &Hold{ID: o.Op, Name: r.acquire.Name, Token: o.Token, Fence: o.Fence, Slot: o.Slot, driver: d}
		h.deadline.Store(int64(o.Deadline))
		d.holds[o.Op] = h
		r.result.Hold = h
	}
	if r.waited || r.done != nil {
		w.finished = append(w.finished, r)
	}
}

// tell passes a notice on.
func (d *Driver) tell(n core.Notice, w *work) {
	switch n.Kind {
	case core.NoticeHealth:
		if d.config.OnHealth != nil {
			w.told = append(w.told, func() { d.config.OnHealth(n) })
		}
	case core.NoticeDeadline:
		if h := d.holds[n.Hold]; h != nil {
			h.extend(n.Deadline)
		}
	case core.NoticeLost:
		if h := d.holds[n.Hold]; h != nil {
			delete(d.holds, n.Hold)
			w.told = append(w.told, h.lose(n.Cause)...)
		}
	}
}

// perform does what steps want done. It does not block.
func (d *Driver) perform(w *work) {
	if len(w.calls) > 0 {
		for _, n := range d.nodes {
			n.enqueue(w.calls)
		}
	}
	for _, r := range w.finished {
		if r.done != nil {
			r.done(r.result)
		} else {
			r.ready <- struct{}{} // has room
		}
	}
	for _, f := range w.told {
		f()
	}
	w.free()
}

// tick tells the machine that its time has come.
func (d *Driver) tick() {
	d.mu.Lock()
	d.armed = core.Never
	d.mu.Unlock()
	d.step(&core.Tick{})
}
