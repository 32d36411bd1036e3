package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTableIsComplete(t *testing.T) {
	type cause struct {
		from state
		on   trigger
	}
	next := map[cause]bool{}
	reached := map[state]bool{asking: true} // where every hold begins
	used := map[trigger]bool{}
	left := map[state]bool{ended: true}
	for _, row := range transitions {
		require.False(t, next[cause{row.from, row.on}], "two rows for %s, %s", stateNames[row.from], triggerNames[row.on])
		next[cause{row.from, row.on}] = true
		require.NotEqual(t, ended, row.from, "ended is the end")
		used[row.on], left[row.from] = true, true
	}
	for range transitions { // as long as the longest way
		for _, row := range transitions {
			reached[row.to] = reached[row.to] || reached[row.from]
		}
	}
	for s := range stateCount {
		require.True(t, reached[s], "%s is never reached", stateNames[s])
		require.True(t, left[s], "%s is never left", stateNames[s])
	}
	for on := range triggerCount {
		require.True(t, used[on], "%s is never used", triggerNames[on])
	}
	require.Len(t, Transitions(), len(transitions))
}

func TestMoveKeepsToTheTable(t *testing.T) {
	var seen []Transition
	m := &Machine{config: Config{OnTransition: func(row Transition) { seen = append(seen, row) }}}
	for from := range stateCount {
		for on := range triggerCount {
			h := &hold{state: from}
			if to := nextState[from][on]; to == stateCount {
				require.Panics(t, func() { m.move(h, on) })
				require.Equal(t, from, h.state)
			} else {
				m.move(h, on)
				require.Equal(t, to, h.state)
			}
		}
	}
	require.ElementsMatch(t, Transitions(), seen)
}
