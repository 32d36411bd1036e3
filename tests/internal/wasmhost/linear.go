package wasmhost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// linear steps through linear memory.
type linear struct {
	memory         api.Memory
	buffer, linear api.Function
}

func (l *linear) step(ctx context.Context, input []byte) ([]byte, error) {
	stack := [1]uint64{uint64(len(input))}
	if err := l.buffer.CallWithStack(ctx, stack[:]); err != nil {
		return nil, err
	}
	if address := uint32(stack[0]); address == 0 || !l.memory.Write(address, input) {
		return nil, fmt.Errorf("no memory for %d bytes at %d", len(input), address)
	}
	stack[0] = uint64(len(input))
	if err := l.linear.CallWithStack(ctx, stack[:]); err != nil {
		return nil, err
	}
	output := l.read(ctx, stack[0])
	if !bytes.HasPrefix(output, []byte(`"`)) {
		return output, nil
	}
	var failure text
	if err := json.Unmarshal(output, &failure); err != nil {
		return nil, err
	}
	return nil, StepError(failure)
}

func (l *linear) read(_ context.Context, span uint64) []byte { return readSpan(l.memory, span) }

// readSpan gives what stands at an address, in the upper half of span, in a length, in the lower.
func readSpan(memory api.Memory, span uint64) []byte {
	view, ok := memory.Read(uint32(span>>32), uint32(span))
	if !ok {
		panic(fmt.Sprintf("%d bytes at %d are outside the module's memory", uint32(span), span>>32))
	}
	return view
}
