//go:build linux && cgo

package main

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/libredlock/libredlock/core"
)

const (
	maxOutcomes = 1_000_000 // submitted by one client, and not drained
	maxHealth   = 64        // the newest are kept
)

// queue holds what is to be told to the owner of a client, and a descriptor that is readable while there is something.
//
// It is bounded although nobody may ever drain it: an outcome takes its place when its request is
// submitted, a loss is dropped when its hold is released, and only the newest notices of health are kept.
type queue struct {
	mu       sync.Mutex
	fd       int // an eventfd; -1: closed
	signaled bool
	losses   map[uint64]string // handles of holds, and why
	notices  []event           // of health
	done     []event
	places   int                    // of outcomes: in done, or to come
	running  map[core.OpID]struct{} // submitted, without an outcome yet
}

// event is one redlock_event to be.
type event struct {
	kind     int32
	op       core.OpID
	err      *core.Error // nil: OK
	node     int         // of a notice of health, with its cause
	cause    string
	lost     uint64 // the handle of a loss
	hold     *held  // of a DONE that is OK
	acquired bool   // and that is an acquire's
}

func newQueue() (*queue, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	watchFD(fd, true)
	return &queue{fd: fd, losses: map[uint64]string{}, running: map[core.OpID]struct{}{}}, nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	unix.Write(q.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // wakes who polls it; closing would not
	watchFD(q.fd, false)
	unix.Close(q.fd)
	q.fd = -1
	q.losses, q.notices, q.done = nil, nil, nil
}

// begin takes the places of the outcomes of n requests that are about to be submitted, from this one on.
func (q *queue) begin(first core.OpID, n int) *core.Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.places+n > maxOutcomes {
		return errFull
	}
	q.places += n
	for i := range n {
		q.running[first+core.OpID(i)] = struct{}{}
	}
	return nil
}

// giveUp gives the place of a request back that was not submitted after all.
func (q *queue) giveUp(op core.OpID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.places--
	delete(q.running, op)
}

// end brings the outcome of a request.
func (q *queue) end(op core.OpID, e event) {
	e.kind, e.op = eventDone, op
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, op)
	if q.fd >= 0 {
		q.done = append(q.done, e)
		q.signal()
	}
}

// isRunning tells whether this was submitted and has no outcome yet.
func (q *queue) isRunning(op core.OpID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, running := q.running[op]
	return running
}

func (q *queue) lost(handle uint64, cause string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fd >= 0 {
		q.losses[handle] = cause
		q.signal()
	}
}

// forget drops a loss that nobody needs to be told any more.
func (q *queue) forget(handle uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.losses, handle)
}

func (q *queue) health(node int, cause string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fd < 0 {
		return
	}
	if len(q.notices) == maxHealth {
		q.notices = append(q.notices[:0], q.notices[1:]...)
	}
	q.notices = append(q.notices, event{kind: eventHealth, node: node, cause: cause})
	q.signal()
}

// signal makes the descriptor readable; once is enough until everything is drained.
func (q *queue) signal() {
	if !q.signaled {
		q.signaled = true
		unix.Write(q.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // can't fail: the counter is 0
	}
}

// take takes up to n events: losses first, since they are urgent, and outcomes, of which there may
// always be more, last.
func (q *queue) take(n int) ([]event, *core.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fd < 0 {
		return nil, errClosed
	}
	events := make([]event, 0, min(n, len(q.losses)+len(q.notices)+len(q.done)))
	for handle, cause := range q.losses {
		if len(events) == n {
			return events, nil
		}
		delete(q.losses, handle)
		events = append(events, event{kind: eventLost, lost: handle, err: &core.Error{Status: core.Lost, Message: cause}})
	}
	events, q.notices = move(events, q.notices, n)
	before := len(events)
	events, q.done = move(events, q.done, n)
	q.places -= len(events) - before
	if q.signaled && len(q.notices)+len(q.done) == 0 {
		q.signaled = false
		unix.Read(q.fd, make([]byte, 8))
	}
	return events, nil
}

// move moves events from one slice to the other, until that has n.
func move(to, from []event, n int) (moved, rest []event) {
	count := min(len(from), n-len(to))
	to = append(to, from[:count]...)
	clear(from[:count]) // let go of what they refer to
	if count == len(from) {
		return to, from[:0]
	}
	return to, from[count:]
}
