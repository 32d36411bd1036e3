//go:build linux && cgo

package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/driver"
)

// handles is what the numbers that C has stand for. A number is never used twice, so a handle
// that was closed or released is simply not here any more.
type handles struct {
	mu      sync.RWMutex
	before  uint64 // its own are larger; smaller ones are those of parent processes, if any
	last    uint64
	clients map[uint64]*client
	holds   map[uint64]*held
	orphans []uint64 // holds whose client was closed before their release: the last few
}

const (
	maxOrphans = 10_000
	generation = 1 << 56 // handles of one process (loader.c); the front keeps those of others away, but for a redlock_submit
)

var registry = handles{clients: map[uint64]*client{}, holds: map[uint64]*held{}}

// client is what a redlock_client stands for.
type client struct {
	*driver.Driver
	handle uint64
	fd     int // of events
	events *queue
}

// held is what a redlock_held stands for. It dies with its client.
type held struct {
	*driver.Hold
	handle uint64
	client *client
}

func (h *handles) addClient(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	c.handle = h.last
	h.clients[c.handle] = c
}

func (h *handles) client(handle uint64) (*client, *core.Error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if c := h.clients[handle]; c != nil {
		return c, nil
	}
	return nil, errClosed
}

// removeClient takes a client and all its holds out.
func (h *handles) removeClient(handle uint64) (*client, *core.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clients[handle]
	if c == nil {
		return nil, errClosed
	}
	delete(h.clients, handle)
	for number, l := range h.holds {
		if l.client == c {
			delete(h.holds, number)
			h.orphans = append(h.orphans, number)
		}
	}
	if surplus := len(h.orphans) - maxOrphans; surplus > 0 {
		h.orphans = slices.Delete(h.orphans, 0, surplus)
	}
	return c, nil
}

// addHold gives a new hold its number, unless the client was closed meanwhile, which has ended the hold too.
func (h *handles) addHold(c *client, hold *driver.Hold) (*held, *core.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients[c.handle] == nil {
		return nil, errClosed
	}
	h.last++
	l := &held{Hold: hold, handle: h.last, client: c}
	h.holds[l.handle] = l
	return l, nil
}

func (h *handles) hold(handle uint64) (*held, *core.Error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if l := h.holds[handle]; l != nil {
		return l, nil
	}
	return nil, h.gone(handle)
}

// holdOf finds a hold for an operation of a client, and takes it out if it is to be released.
func (h *handles) holdOf(c *client, handle uint64, release bool) (*held, *core.Error) {
	l, err := h.hold(handle)
	switch {
	case err != nil:
		return nil, err
	case l.client != c:
		return nil, errAnothers
	case release:
		return h.removeHold(handle)
	}
	return l, nil
}

// gone tells why there is no such hold.
func (h *handles) gone(handle uint64) *core.Error {
	switch {
	case slices.Contains(h.orphans, handle):
		return errClosed
	case handle >= generation && handle <= h.before:
		return errForked
	}
	return errNotHeld
}

// removeHold takes a hold out, with the news of its loss if nobody has drained it. Of several
// releases at the same time one gets it.
func (h *handles) removeHold(handle uint64) (*held, *core.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.holds[handle]
	if l == nil {
		err := h.gone(handle)
		h.orphans = slices.DeleteFunc(h.orphans, func(orphan uint64) bool { return orphan == handle })
		return nil, err
	}
	delete(h.holds, handle)
	l.client.events.forget(handle)
	return l, nil
}

var (
	errClosed   = &core.Error{Status: core.Closed, Message: "the client is closed, or never was"}
	errForked   = &core.Error{Status: core.Closed, Message: "the process forked after this handle was made: it is the parent's"}
	errNotHeld  = &core.Error{Status: core.NotHeld, Message: "released already, or never held"}
	errAnothers = &core.Error{Status: core.Invalid, Message: "the held is another client's"}
	errFull     = &core.Error{Status: core.Invalid, Message: strconv.Itoa(maxOutcomes) +
		" outcomes are outstanding or not drained: no more are allowed in one client"}
)

func open(config driver.Config) (*client, *core.Error) {
	events, err := newQueue()
	if err != nil {
		return nil, &core.Error{Status: core.Unavailable, Message: "no descriptor for events: " + err.Error()}
	}
	config.OnHealth = func(n core.Notice) { events.health(n.Node, n.Cause) }
	config.OnSocket = watchFD
	d, failed := driver.Open(config)
	if failed != nil {
		events.close()
		return nil, failed
	}
	c := &client{Driver: d, fd: events.fd, events: events}
	registry.addClient(c)
	return c, nil
}

func (c *client) close() *core.Error {
	err := c.Close()
	c.events.close()
	return err
}

func (c *client) acquire(request *core.Acquire) (*held, *core.Error) {
	result := c.Do(context.Background(), request)
	if result.Err != nil {
		return nil, result.Err
	}
	l, err := registry.addHold(c, result.Hold)
	if err == nil {
		l.watch()
	}
	return l, err
}

// watch makes the loss of the hold an event.
func (l *held) watch() {
	l.OnLost(func(cause string) {
		registry.mu.RLock() // so that a release comes before this or after it
		defer registry.mu.RUnlock()
		if registry.holds[l.handle] != nil {
			l.client.events.lost(l.handle, cause)
		}
	})
}

// operation is something to submit: a request and the event of its result, or what is wrong with it.
type operation struct {
	request core.Request
	finish  func(driver.Result) event
	wrong   *core.Error
}

// acquisition is the operation of an acquire. The hold is watched from its event on: so its loss is told after it.
func (c *client) acquisition(request *core.Acquire) operation {
	return operation{request: request, finish: func(result driver.Result) event {
		if result.Err != nil {
			return event{err: result.Err}
		}
		l, err := registry.addHold(c, result.Hold)
		return event{err: err, hold: l, acquired: true}
	}}
}

func (l *held) renewal(ttl time.Duration) operation {
	return operation{request: l.Renewal(ttl), finish: func(result driver.Result) event {
		return event{err: result.Err, hold: l}
	}}
}

// ending is the operation of a release: the hold has ended, and is in the registry no more.
func (l *held) ending() operation {
	return operation{request: l.Ending(), finish: func(result driver.Result) event { return event{err: result.Err} }}
}

// submission is an operation under an id, for whose outcome there is a place.
func (c *client) submission(op core.OpID, o operation) driver.Submission {
	return driver.Submission{Op: op, Request: o.request, Done: func(result driver.Result) {
		c.events.end(op, o.finish(result))
	}}
}

// submit begins one operation, unless make, which is asked when there is a place for its outcome, says what is wrong with it.
func (c *client) submit(make func() operation) (core.OpID, *core.Error) {
	op := c.Reserve(1)
	if err := c.events.begin(op, 1); err != nil {
		return 0, err
	}
	o := make()
	if o.wrong != nil {
		c.events.giveUp(op)
		return 0, o.wrong
	}
	c.Submit(c.submission(op, o))
	return op, nil
}

// submitAll begins n operations, and gives the id of the first. What is wrong with one of them is its outcome.
func (c *client) submitAll(n int, each func(i int) operation) (core.OpID, *core.Error) {
	first := c.Reserve(n)
	if err := c.events.begin(first, n); err != nil {
		return 0, err
	}
	batch := make([]driver.Submission, 0, n)
	for i := range n {
		op := first + core.OpID(i)
		if o := each(i); o.wrong != nil {
			c.events.end(op, event{err: o.wrong})
		} else {
			batch = append(batch, c.submission(op, o))
		}
	}
	c.Submit(batch...)
	return first, nil
}

// drain takes up to n events.
func (c *client) drain(n int) ([]event, *core.Error) {
	events, err := c.events.take(n)
	for i := range events {
		if events[i].acquired && events[i].hold != nil {
			events[i].hold.watch()
		}
	}
	return events, err
}
