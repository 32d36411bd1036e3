package trace_test

import (
	"testing"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/tests/trace"
)

// TestTraces replays every trace of core/testdata. After an intended change:
//
//	go -C tests test ./trace -rewrite
//
// and read the difference.
func TestTraces(t *testing.T) {
	trace.Walk(t, func(_ *testing.T, config core.Config) (trace.Machine, *core.Error) { return core.New(config) })
}
