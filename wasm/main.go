//go:build wasip1

// Command wasm is redlock.wasm: core's machine for hosts in any language. docs/reference.md ("The plugin: redlock.wasm")
// says what a host owes.
//
// The module has two entries to one session: that of an Extism plugin, for the SDKs of many languages, and three functions
// on linear memory, for hosts that do without an SDK.
package main

import (
	"runtime"
	"strconv"
	"unsafe"

	"github.com/extism/go-pdk"

	"github.com/libredlock/libredlock/wasm/wire"
)

func main() {} // never runs: the module is a library

// collectEvery is after how many steps the garbage collector's goroutines may run, which else they never could. Mostly the
// steps that allocate do their work, but not if the host's clock makes it seem to take too much time.
const collectEvery = 64

// abiVersion is that of both entries and of the texts.
const abiVersion = 1

var (
	session wire.Session
	sending bool // redis_send has not returned yet
	steps   uint

	// Memory that is used again and again.
	input   []byte
	failure []byte
)

//go:wasmexport abi
func extismABI() (code int32) {
	pdk.OutputString("[" + strconv.Itoa(abiVersion) + `,"` + wire.Version + `"]`)
	return 0
}

//go:wasmexport step
func extismStep() (code int32) {
	fail := func(err error) int32 {
		pdk.SetErrorString(err.Error())
		return 1
	}
	defer func() {
		if reason := recover(); reason != nil {
			code = fail(session.Fail(reason))
		}
	}()
	output, sends, err := step(pdk.Input())
	if err != nil {
		return fail(err)
	}
	pdk.Output(output)
	if sends != nil {
		block := pdk.AllocateBytes(sends)
		send(block.Offset())
		block.Free()
	}
	return 0
}

//go:wasmexport linear_abi
func linearABI() int32 { return abiVersion }

// linearBuffer gives the address of memory for the input; 0 if there is none of this length.
//
//go:wasmexport linear_buffer
func linearBuffer(length int32) (address uint32) {
	defer func() {
		if recover() != nil {
			address = 0
		}
	}()
	input = resize(input, int(length))
	return uint32(spanOf(input) >> 32)
}

//go:wasmexport linear_step
func linearStep(length int32) (span uint64) {
	fail := func(err error) uint64 {
		failure = wire.AppendText(failure[:0], err.Error())
		return spanOf(failure)
	}
	defer func() {
		if reason := recover(); reason != nil {
			span = fail(session.Fail(reason))
		}
	}()
	output, sends, err := step(input[:length])
	if err != nil {
		return fail(err)
	}
	if sends != nil {
		send(spanOf(sends))
	}
	return spanOf(output)
}

// step steps the session, unless it is called from within redis_send.
func step(input []byte) (output, sends []byte, err error) {
	if sending {
		return nil, nil, session.Fail("called from within redis_send")
	}
	if steps++; steps%collectEvery == 0 {
		runtime.Gosched()
	}
	return session.Step(input)
}

func send(at uint64) {
	sending = true
	redisSend(at)
	sending = false
}

// resize gives memory of this length, the same if it is large enough.
func resize(memory []byte, length int) []byte {
	if length > cap(memory) {
		return make([]byte, length)
	}
	return memory[:length]
}

// spanOf is an address in the upper and a length in the lower half of a number.
func spanOf(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))<<32 | uint64(len(b))
}
