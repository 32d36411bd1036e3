package wasmhost

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// Instance is one instance of the module. It is not safe for concurrent use.
type Instance struct {
	plugin api.Module
	entry  entry
	ctx    context.Context
	sent   []byte // what redis_send got during the step
	dead   error  // the instance is of no use any more
}

// stepping is the key of a context, for the instance whose step it is.
type stepping struct{}

// entry is one of the two ways into the module. What it gives is valid until the next step.
type entry interface {
	// step gives the output, or what the module says went wrong as a StepError. Any other error is a trap or an exit.
	step(ctx context.Context, input []byte) (output []byte, err error)
	// read gives what redis_send was called with.
	read(ctx context.Context, at uint64) []byte
}

// StepError is what the module says about a step that failed.
type StepError string

func (e StepError) Error() string { return string(e) }

// Malformed tells whether the input was no batch of events, so that nothing was done. After any other error the
// instance is of no use.
func Malformed(err error) bool {
	var text StepError
	return errors.As(err, &text) && strings.HasPrefix(string(text), "malformed: ")
}

// Step feeds a batch of events and gives the output and what redis_send got, nil if it was not called.
func (i *Instance) Step(input []byte) (output, sent []byte, err error) {
	if i.dead != nil {
		return nil, nil, i.dead
	}
	i.sent = nil
	output, err = i.entry.step(i.ctx, input)
	if err != nil {
		if !Malformed(err) {
			i.dead = err
		}
		return nil, nil, err
	}
	return bytes.Clone(output), i.sent, nil
}

// Call calls an export that has one result.
func (i *Instance) Call(name string, args ...uint64) (uint64, error) {
	results, err := i.plugin.ExportedFunction(name).Call(i.ctx, args...)
	if err != nil {
		return 0, err
	}
	return results[0], nil
}

// Read gives what stands in the instance's memory at a span, as linear_step gives it.
func (i *Instance) Read(span uint64) []byte { return bytes.Clone(readSpan(i.plugin.Memory(), span)) }

// note takes what redis_send was called with.
func (i *Instance) note(ctx context.Context, at uint64) { i.sent = bytes.Clone(i.entry.read(ctx, at)) }

// MemoryBytes is how large the instance's memory is. It never shrinks.
func (i *Instance) MemoryBytes() uint32 { return i.plugin.Memory().Size() }

// Close ends the instance and lets go of its memory.
func (i *Instance) Close() {
	if i.plugin != nil {
		i.plugin.Close(i.ctx)
	}
	*i = Instance{dead: errors.New("the instance is closed")}
}
