package sim

import (
	"maps"
	"slices"

	"github.com/libredlock/libredlock/core"
)

// Coverage counts what happened, by name.
type Coverage map[string]int

func (c Coverage) add(name string) { c[name]++ }

// Merge adds what happened in another world.
func (c Coverage) Merge(other Coverage) {
	for name, count := range other {
		c[name] += count
	}
}

// Names lists what happened, sorted.
func (c Coverage) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Missing lists what should happen in some world and did not.
func (c Coverage) Missing() (missing []string) {
	for _, name := range wanted() {
		if c[name] == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

func transitionName(t core.Transition) string { return t.From + " -" + t.On + "-> " + t.To }

// wanted lists every transition of the table, the ways to be granted and lost, and every status that an acquire and so on can end with.
func wanted() (names []string) {
	for _, t := range core.Transitions() {
		names = append(names, transitionName(t))
	}
	names = append(names, "granted by mutex_acquire", "granted by mutex_regrant", "told of a hand-over")
	for _, script := range []string{"mutex_release", "mutex_undo", "mutex_force", "mutex_acquire", "mutex_beat"} {
		names = append(names, "handed over by "+script)
	}
	names = append(names, "confirmed a hand-over", "counted the commands of a hand-over", "waited after the storm", "removed what was given up")
	for _, why := range losses {
		names = append(names, "lost: "+why)
	}
	for _, verb := range slices.Sorted(maps.Keys(statuses)) {
		for _, status := range statuses[verb] {
			names = append(names, verb+" "+status.String())
		}
	}
	return names
}
