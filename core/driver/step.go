package driver

import (
	"fmt"
	"time"

	"github.com/libredlock/libredlock/core"
)

// work is what a step wants done without the mutex.
type work struct {
	calls []core.Call
	ready []chan struct{} // of waiters to wake: earlier they would only queue for the mutex
	done  []func()        // callbacks
	other bool            // subscriptions were passed on
}

// step feeds events that happened at the same time.
func (d *Driver) step(events ...core.Event) (w work) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := Now()
	for _, event := range events {
		d.stepLocked(now, event, &w)
	}
	return w
}

// stepLocked steps the machine and notes what its effects say about requests and holds.
func (d *Driver) stepLocked(now core.Time, event core.Event, w *work) {
	if d.failure != nil {
		return
	}
	defer func() {
		if reason := recover(); reason != nil {
			d.fail(reason, w)
		}
	}()
	effects := d.machine.Step(now, event)
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
		w.done = append(w.done, h.lose(d.failure.Error())...)
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
		h := &Hold{ID: o.Op, Name: r.acquire.Name, Token: o.Token, Fence: o.Fence, driver: d}
		h.deadline.Store(int64(o.Deadline))
		d.holds[o.Op] = h
		r.result.Hold = h
	}
	if r.waited {
		w.ready = append(w.ready, r.ready)
	}
	if r.done != nil {
		w.done = append(w.done, func() { r.done(r.result) })
	}
}

// tell passes a notice on.
func (d *Driver) tell(n core.Notice, w *work) {
	switch n.Kind {
	case core.NoticeHealth:
		if d.config.OnHealth != nil {
			w.done = append(w.done, func() { d.config.OnHealth(n) })
		}
	case core.NoticeDeadline:
		if h := d.holds[n.Hold]; h != nil {
			h.extend(n.Deadline)
		}
	case core.NoticeLost:
		if h := d.holds[n.Hold]; h != nil {
			delete(d.holds, n.Hold)
			w.done = append(w.done, h.lose(n.Cause)...)
		}
	}
}

// perform does what a step wants done. It does not block.
func (d *Driver) perform(w work) {
	for _, call := range w.calls {
		d.nodes[call.Node].enqueue(call)
	}
	for _, ready := range w.ready {
		select {
		case ready <- struct{}{}:
		default: // it was told, and has not looked yet
		}
	}
	for _, f := range w.done {
		f()
	}
}

// tick tells the machine that its time has come.
func (d *Driver) tick() {
	var w work
	d.mu.Lock()
	d.armed = core.Never
	d.stepLocked(Now(), &core.Tick{}, &w)
	d.mu.Unlock()
	d.perform(w)
}
