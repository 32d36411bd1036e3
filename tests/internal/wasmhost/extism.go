package wasmhost

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// extism steps by Extism's kernel, which carries input and output.
type extism struct {
	kernel  api.Module
	stepper api.Function
}

// call calls a function of the kernel. They do not fail.
func (e *extism) call(ctx context.Context, name string, args ...uint64) uint64 {
	results, err := e.kernel.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		panic(fmt.Sprintf("Extism's %s: %v", name, err))
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

func (e *extism) step(ctx context.Context, input []byte) ([]byte, error) {
	e.call(ctx, "reset")
	length := uint64(len(input))
	block := e.call(ctx, "alloc", length)
	e.kernel.Memory().Write(uint32(block), input)
	e.call(ctx, "input_set", block, length)
	var stack [1]uint64
	if err := e.stepper.CallWithStack(ctx, stack[:]); err != nil {
		return nil, err
	}
	failure := e.call(ctx, "error_get")
	if code := int32(stack[0]); (code != 0) != (failure != 0) {
		return nil, fmt.Errorf("the step returned %d, but its error is at %d", code, failure)
	}
	if failure != 0 {
		return nil, StepError(e.read(ctx, failure))
	}
	return e.memory(e.call(ctx, "output_offset"), e.call(ctx, "output_length")), nil
}

func (e *extism) read(ctx context.Context, block uint64) []byte {
	return e.memory(block, e.call(ctx, "length", block))
}

func (e *extism) memory(offset, length uint64) []byte {
	view, ok := e.kernel.Memory().Read(uint32(offset), uint32(length))
	if !ok {
		panic(fmt.Sprintf("%d bytes at %d are outside the kernel's memory", length, offset))
	}
	return view
}
