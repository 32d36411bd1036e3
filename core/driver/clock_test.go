package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
)

// A lease may count from too early a time, but never from one that is still to come.
func TestTheTimeOfAStepIsNotAheadOfTheClock(t *testing.T) {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		before := Now()
		step := stepTime()
		after := Now()
		require.LessOrEqual(t, step, after)
		require.Less(t, before-step, core.Time(core.Second))
	}
}
