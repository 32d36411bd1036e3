//go:build wasip1

package main

// redisSend hands over the calls and subscriptions of a step: by the offset of an Extism block or the span of linear
// memory, as the step was called. The host takes note of them and returns.
//
//go:wasmimport extism:host/user redis_send
func redisSend(at uint64)
