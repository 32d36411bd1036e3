//go:build linux

// Command capi is libredlock-core.so: the Go side of the C library. What C calls is redlock.h, in
// front of this (redlock.c); what that calls is here, by way of the table in table.c (core.h).
package main

/*
#cgo CFLAGS: -std=gnu99 -Wall -Werror=incompatible-pointer-types -Werror=implicit-function-declaration
#include <string.h>

#include "core.h"

void core_watch_fd(int fd, int open);
*/
import "C"

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9/logging"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/driver"
)

func main() {} // a library has none, but the Go tool wants it

const (
	eventDone   = C.REDLOCK_EVENT_DONE
	eventLost   = C.REDLOCK_EVENT_LOST
	eventHealth = C.REDLOCK_EVENT_HEALTH
)

// watchFD tells the front of a descriptor, to be closed in a forked child.
var watchFD = func(fd int, open bool) {}

//export coreStart
func coreStart(firstHandle C.uint64_t) {
	registry.before, registry.last = uint64(firstHandle), uint64(firstHandle)
	watchFD = func(fd int, open bool) {
		flag := C.int(0)
		if open {
			flag = 1
		}
		C.core_watch_fd(C.int(fd), flag)
	}
	logging.Disable() // it would write to the program's standard error
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the heap is a few MB: collecting it less often costs little memory and saves much time
	}
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2) // with 1 each hand-over between caller and network costs more than twice
	}
}

// answer is around every export: it makes the outcome the caller's, and a panic INTERNAL.
func answer(e *C.redlock_error, f func() *core.Error) (status C.redlock_status) {
	defer func() {
		if r := recover(); r != nil {
			status = report(e, &core.Error{Status: core.Internal, Message: fmt.Sprint("a bug, please report it: ", r)})
		}
	}()
	return report(e, f())
}

// onClient and onHeld are answer for what a handle stands for.
func onClient(handle C.redlock_client, e *C.redlock_error, f func(*client) *core.Error) C.redlock_status {
	return answer(e, func() *core.Error {
		c, err := registry.client(uint64(handle))
		if err != nil {
			return err
		}
		return f(c)
	})
}

func onHeld(handle C.redlock_held, e *C.redlock_error, f func(*held) *core.Error) C.redlock_status {
	return answer(e, func() *core.Error {
		l, err := registry.hold(uint64(handle))
		if err != nil {
			return err
		}
		return f(l)
	})
}

// report writes what went wrong.
func report(e *C.redlock_error, err *core.Error) C.redlock_status {
	if err == nil {
		return C.REDLOCK_OK
	}
	if e != nil {
		e.status = C.int32_t(err.Status)
		e.node = C.int32_t(firstNode(err))
		room := int(e.size) - int(unsafe.Offsetof(e.message))
		put(unsafe.Slice(&e.message[0], room), describe(err))
	}
	return C.redlock_status(err.Status)
}

// describe gives the sentence, then a line for each node.
func describe(err *core.Error) string {
	text := err.Message
	for _, node := range err.Nodes {
		text += "\n" + node.String()
	}
	return text
}

func firstNode(err *core.Error) int {
	if len(err.Nodes) == 0 {
		return -1
	}
	return err.Nodes[0].Node
}

// put writes text with a NUL, cut to fit.
func put(to []C.char, text string) {
	n := copy(unsafe.Slice((*byte)(unsafe.Pointer(&to[0])), len(to)-1), text)
	to[n] = 0
}

func text(s *C.char, length C.int64_t) string {
	return C.GoStringN(s, C.int(length))
}

// terminated reads a text that ends with a NUL. C.GoString would read, though not use, what is behind it.
func terminated(s *C.char, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return C.GoStringN(s, C.int(min(C.strlen(s), math.MaxInt32)))
}

// duration and span convert milliseconds; what is too long to be said stays too long to be allowed.
func duration(ms C.int64_t) core.Duration {
	const most = math.MaxInt64 / int64(core.Millisecond)
	if int64(ms) > most {
		return core.Forever
	}
	return core.Duration(max(int64(ms), -most)) * core.Millisecond
}

func span(ms C.int64_t) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(min(int64(ms), most), -most)) * time.Millisecond
}

func toggle(value C.uint32_t, what string) (core.Toggle, *core.Error) {
	if value > C.REDLOCK_OFF {
		return 0, invalid(what + " is " + strconv.Itoa(int(value)) + "; REDLOCK_DEFAULT, REDLOCK_ON and REDLOCK_OFF are allowed")
	}
	return core.Toggle(value), nil
}

func invalid(message string) *core.Error {
	return &core.Error{Status: core.Invalid, Message: message}
}

// readAcquire reads a request.
func readAcquire(r *C.redlock_const_request) (*core.Acquire, *core.Error) {
	fencing, err1 := toggle(r.fencing, "fencing")
	autoRenew, err2 := toggle(r.auto_renew, "auto_renew")
	queue, err3 := toggle(r.queue, "queue")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	wait := duration(r.wait_ms)
	if r.wait_ms == -1 {
		wait = core.Forever
	}
	if wait < 0 {
		return nil, invalid("wait_ms is " + strconv.FormatInt(int64(r.wait_ms), 10) + "; -1 (without limit), 0 (try once) and more are allowed")
	}
	return &core.Acquire{
		Kind:      core.Kind(r.kind),
		Name:      text(r.name, r.name_len),
		TTL:       duration(r.ttl_ms),
		Wait:      wait,
		Fencing:   fencing,
		AutoRenew: autoRenew,
		Queue:     queue,
		Retry: core.Retry{
			Delay:    duration(r.retry_delay_ms),
			Jitter:   duration(r.retry_jitter_ms),
			MaxTries: int(max(-1, min(int64(r.max_tries), math.MaxInt))),
		},
		Permits:  int(max(-1, min(int64(r.permits), math.MaxInt))),
		MaxHold:  duration(r.max_hold_ms),
		Metadata: text(r.metadata, r.metadata_len),
	}, nil
}

//export coreOpen
func coreOpen(options *C.redlock_const_options, handle *C.redlock_client, e *C.redlock_error) C.redlock_status {
	return answer(e, func() *core.Error {
		config := driver.Config{
			Prefix:           terminated(options.prefix, ""),
			Language:         terminated(options.language, "c"),
			NodeTimeout:      span(options.node_timeout_ms),
			UnavailableAfter: span(options.unavailable_after_ms),
			BlockingReads:    true,
		}
		for _, url := range unsafe.Slice(options.nodes, options.node_count) {
			config.Nodes = append(config.Nodes, terminated(url, ""))
		}
		c, err := open(config)
		if err == nil {
			*handle = C.redlock_client(c.handle)
		}
		return err
	})
}

//export coreClose
func coreClose(handle C.redlock_client, e *C.redlock_error) C.redlock_status {
	return answer(e, func() *core.Error {
		c, err := registry.removeClient(uint64(handle))
		if err != nil {
			return err
		}
		return c.close()
	})
}

//export coreAcquire
func coreAcquire(handle C.redlock_client, request *C.redlock_const_request, h *C.redlock_held, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		acquire, err := readAcquire(request)
		if err != nil {
			return err
		}
		l, err := c.acquire(acquire)
		if err == nil {
			*h = C.redlock_held(l.handle)
		}
		return err
	})
}

//export coreRenew
func coreRenew(h C.redlock_held, ttlMs C.int64_t, e *C.redlock_error) C.redlock_status {
	return onHeld(h, e, func(l *held) *core.Error {
		return l.Renew(context.Background(), span(ttlMs))
	})
}

//export coreRelease
func coreRelease(h C.redlock_held, e *C.redlock_error) C.redlock_status {
	return answer(e, func() *core.Error {
		l, err := registry.removeHold(uint64(h))
		if err != nil {
			return err
		}
		return l.Release()
	})
}

//export coreRemaining
func coreRemaining(h C.redlock_held) (ms C.int64_t) {
	onHeld(h, nil, func(l *held) *core.Error {
		ms = C.int64_t(l.Remaining().Milliseconds())
		return nil
	})
	return ms
}

//export coreFence
func coreFence(h C.redlock_held) (fence C.uint64_t) {
	onHeld(h, nil, func(l *held) *core.Error {
		fence = C.uint64_t(l.Fence)
		return nil
	})
	return fence
}

//export coreSlot
func coreSlot(h C.redlock_held) (slot C.uint32_t) {
	onHeld(h, nil, func(l *held) *core.Error {
		slot = C.uint32_t(l.Slot)
		return nil
	})
	return slot
}

//export coreToken
func coreToken(h C.redlock_held, buffer *C.char, size C.size_t, e *C.redlock_error) C.redlock_status {
	return onHeld(h, e, func(l *held) *core.Error {
		needed := len(l.Token) + 1
		if uint64(size) < uint64(needed) {
			return invalid("size is " + strconv.FormatUint(uint64(size), 10) + "; this token needs " + strconv.Itoa(needed))
		}
		put(unsafe.Slice(buffer, needed), l.Token)
		return nil
	})
}

//export coreInspect
func coreInspect(handle C.redlock_client, request *C.redlock_const_request, found *C.redlock_inspection, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		result := c.Do(context.Background(), &core.Inspect{Kind: core.Kind(request.kind), Name: text(request.name, request.name_len)})
		if result.Err == nil {
			writeInspection(found, result.Inspection)
		}
		return result.Err
	})
}

func writeInspection(to *C.redlock_inspection, from *core.Inspection) {
	to.kind = C.uint32_t(from.Kind)
	to.fence = C.uint64_t(from.Fence)
	to.holder_count = C.uint64_t(len(from.Holders))
	to.queue_length = C.uint64_t(from.QueueLength)
	to.queue_age_ms = C.int64_t(from.QueueAge / core.Millisecond)
	for i := range min(len(from.Holders), len(to.holders)) {
		to.holders[i] = holderOf(&from.Holders[i])
	}
	if to.all_holders != nil {
		room := min(uint64(len(from.Holders)), uint64(to.all_capacity))
		for i, all := 0, unsafe.Slice(to.all_holders, room); i < len(all); i++ {
			all[i] = holderOf(&from.Holders[i])
		}
	}
}

func holderOf(from *core.Holder) (h C.redlock_holder) {
	put(h.who[:], from.Who)
	put(h.digest[:], from.Digest)
	h.slot = C.uint32_t(from.Slot)
	h.nodes = C.int64_t(from.Nodes)
	h.ttl_ms = -1
	if from.TTL != core.Forever {
		h.ttl_ms = C.int64_t(from.TTL / core.Millisecond)
	}
	return h
}

//export coreForceRelease
func coreForceRelease(handle C.redlock_client, request *C.redlock_const_request, digest *C.redlock_const_char, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		return c.Do(context.Background(), &core.ForceRelease{
			Kind:   core.Kind(request.kind),
			Name:   text(request.name, request.name_len),
			Digest: terminated((*C.char)(digest), ""),
		}).Err
	})
}

//export coreSubmitAcquire
func coreSubmitAcquire(handle C.redlock_client, request *C.redlock_const_request, id *C.uint64_t, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		op, err := c.submit(func() operation { return c.readAcquisition(request) })
		*id = C.uint64_t(op)
		return err
	})
}

// readAcquisition reads a request as something to submit.
func (c *client) readAcquisition(request *C.redlock_const_request) operation {
	acquire, err := readAcquire(request)
	if err != nil {
		return operation{wrong: err}
	}
	return c.acquisition(acquire)
}

//export coreSubmitRenew
func coreSubmitRenew(h C.redlock_held, ttlMs C.int64_t, id *C.uint64_t, e *C.redlock_error) C.redlock_status {
	return onHeld(h, e, func(l *held) *core.Error {
		op, err := l.client.submit(func() operation { return l.renewal(span(ttlMs)) })
		*id = C.uint64_t(op)
		return err
	})
}

//export coreSubmitRelease
func coreSubmitRelease(h C.redlock_held, id *C.uint64_t, e *C.redlock_error) C.redlock_status {
	return onHeld(h, e, func(l *held) *core.Error {
		op, err := l.client.submit(func() operation {
			if _, err := registry.removeHold(l.handle); err != nil {
				return operation{wrong: err}
			}
			return l.ending()
		})
		*id = C.uint64_t(op)
		return err
	})
}

//export coreSubmit
func coreSubmit(handle C.redlock_client, operations *C.redlock_const_operation, count C.size_t, first *C.uint64_t, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		all := unsafe.Slice(operations, count)
		op, err := c.submitAll(len(all), func(i int) operation { return c.readOperation(&all[i]) })
		*first = C.uint64_t(op)
		return err
	})
}

// readOperation reads one of many operations.
func (c *client) readOperation(o *C.redlock_const_operation) operation {
	if o.kind == C.REDLOCK_SUBMIT_ACQUIRE {
		return c.readAcquisition(o.request)
	}
	l, err := registry.holdOf(c, uint64(o.held), o.kind == C.REDLOCK_SUBMIT_RELEASE)
	switch {
	case err != nil:
		return operation{wrong: err}
	case o.kind == C.REDLOCK_SUBMIT_RELEASE:
		return l.ending()
	}
	return l.renewal(span(o.ttl_ms))
}

//export coreCancel
func coreCancel(handle C.redlock_client, id C.uint64_t, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		if c.events.isRunning(core.OpID(id)) {
			c.Cancel(core.OpID(id))
		}
		return nil
	})
}

//export coreFD
func coreFD(handle C.redlock_client, fd *C.int, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		*fd = C.int(c.fd)
		return nil
	})
}

//export coreDrain
func coreDrain(handle C.redlock_client, to *C.redlock_event, capacity C.size_t, count *C.size_t, e *C.redlock_error) C.redlock_status {
	return onClient(handle, e, func(c *client) *core.Error {
		events, err := c.drain(int(capacity))
		for i, records := 0, unsafe.Slice(to, capacity); i < len(events); i++ {
			writeEvent(&records[i], &events[i])
		}
		*count = C.size_t(len(events))
		return err
	})
}

func writeEvent(to *C.redlock_event, from *event) {
	to.id = C.uint64_t(from.op)
	to.held = C.redlock_held(from.lost)
	to.fence, to.remaining_ms, to.slot = 0, 0, 0
	to.kind = C.int32_t(from.kind)
	to.status = C.REDLOCK_OK
	to.node = -1
	message := ""
	switch {
	case from.kind == eventHealth:
		to.node = C.int32_t(from.node)
		message = from.cause
	case from.err != nil:
		to.status = C.int32_t(from.err.Status)
		to.node = C.int32_t(firstNode(from.err))
		message = describe(from.err)
	case from.hold != nil:
		to.remaining_ms = C.int64_t(from.hold.Remaining().Milliseconds())
		if from.acquired {
			to.held = C.redlock_held(from.hold.handle)
			to.fence = C.uint64_t(from.hold.Fence)
			to.slot = C.uint32_t(from.hold.Slot)
		}
	}
	put(to.message[:], message)
}
