package trace

import (
	"fmt"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// Machine is what a trace is replayed on: core's, or one behind a boundary.
type Machine interface {
	Step(now core.Time, event core.Event) core.Effects
}

// Replay feeds the lines of a trace to a machine, and gives them back with the effects of each.
func Replay(m Machine, lines string) (string, error) {
	var out strings.Builder
	wake := core.Never
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		at, events, err := parseEvents(line)
		if err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
		fmt.Fprintln(&out, line)
		for _, event := range events {
			effects := m.Step(at, event)
			formatEffects(&out, effects, wake)
			wake = effects.Wake
		}
	}
	return out.String(), nil
}
