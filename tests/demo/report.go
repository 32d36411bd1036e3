package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// waitingPolicy says how this version waits. It is why hand-offs take as long as they do.
const waitingPolicy = "a release hands over to the first in the queue; the new holder is told by one message"

// print writes the report.
func (v *verdict) print(out io.Writer, picture string) {
	fmt.Fprintf(out, "%-10s %10s %10s %14s\n", "", "acquired", "held for", "longest wait")
	for _, l := range languages {
		s := v.of(l)
		fmt.Fprintf(out, "%-10v %10d %8.2f s %11d ms\n", l, s.turns, s.held.Seconds(), s.longestWait.Milliseconds())
	}
	fmt.Fprintf(out, "%-10s %10d %8.2f s\n\n", "together", len(v.history), v.heldTogether().Seconds())

	turns := len(v.history)
	v.line(out, v.counter == turns, "no lost update", fmt.Sprintf("%d acquisitions, and the unprotected counter stands at %d", turns, v.counter), nil)
	v.line(out, len(v.overlaps) == 0, "one at a time", fmt.Sprintf("%d times two held at once", len(v.overlaps)), v.overlaps)
	v.line(out, len(v.disorder) == 0, "fencing tokens", fmt.Sprintf("%s, in the order of the grants; the last is %d",
		choose(len(v.disorder) == 0, "strictly increasing", "not increasing"), v.lastFence()), v.disorder)
	v.line(out, len(v.left) == 0, "nothing left", fmt.Sprintf("%d lock keys left in Redis, no process", len(v.left)), v.left)
	if err := v.failure(); err != nil {
		v.line(out, false, "programs", "they did not all do their work", strings.Split(err.Error(), "\n"))
	}
	fmt.Fprintln(out)

	fmt.Fprintf(out, "hand-off   p50 %s   p95 %s   max %s   (release to next holder, %d times)\n",
		ms(quantile(v.handOffs, 0.5)), ms(quantile(v.handOffs, 0.95)), ms(quantile(v.handOffs, 1)), len(v.handOffs))
	fmt.Fprintf(out, "order      %d of %d grants passed over a program that had waited for longer\n", v.passed, turns)
	fmt.Fprintf(out, "           (%s)\n", waitingPolicy)
	fmt.Fprintf(out, "timeline   %s\n", picture)
	if !v.kept() {
		fmt.Fprintf(out, "\nFAILED\n")
	}
}

func (v *verdict) line(out io.Writer, good bool, what, how string, details []string) {
	fmt.Fprintf(out, "%s  %-15s %s\n", choose(good, "ok  ", "FAIL"), what, how)
	const most = 10
	for i, detail := range details {
		if i == most {
			fmt.Fprintf(out, "      and %d more\n", len(details)-most)
			break
		}
		fmt.Fprintf(out, "      %s\n", detail)
	}
}

func (v *verdict) heldTogether() (sum time.Duration) {
	for _, t := range v.history {
		sum += span(t.acquired, t.released)
	}
	return sum
}

func (v *verdict) lastFence() uint64 {
	if len(v.history) == 0 {
		return 0
	}
	return v.history[len(v.history)-1].fence
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
