package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// report is what was measured, to be read.
type report struct {
	facts   []string
	manner  string
	results []*result
	costs   []cost
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "acquire + release of an uncontended lock, each caller on its own name\n%s\n%s\n", strings.Join(r.facts, "; "), r.manner)
	for _, result := range r.results {
		result.print(out)
	}
	r.printFencing(out)
	r.printTargets(out)
}

func (r *result) print(out io.Writer) {
	fmt.Fprintf(out, "\n%-54s %10s %19s %10s %12s\n", r.title, "pairs/s", "lowest - highest", "us a pair", "of the limit")
	for _, c := range r.contestants {
		speeds := r.speed[c.id]
		fmt.Fprintf(out, "  %-52s %10s %9s - %7s %10.1f %12.2f\n", c.shown, thousands(r.median(c.id)),
			thousands(slices.Min(speeds)), thousands(slices.Max(speeds)), 1e6/r.median(c.id), r.ratio(c.id, scripts))
	}
}

// printFencing tells what fencing costs callers, and all of it the server.
func (r report) printFencing(out io.Writer) {
	fmt.Fprintf(out, "\nthe server's own time for a call (INFO commandstats), us\n")
	for _, c := range r.costs {
		fmt.Fprintf(out, "  %-52s %10.1f\n", c.what, c.microseconds)
	}
	first := true
	for _, result := range r.results {
		if len(result.speed[unfenced]) == 0 {
			continue
		}
		if first {
			fmt.Fprintf(out, "\nthe cost of fencing: pairs/s with it, over those without\n")
			first = false
		}
		fmt.Fprintf(out, "  %-52s %10.2f\n", result.title, result.ratio(ours, unfenced))
	}
}

func (r report) printTargets(out io.Writer) {
	fmt.Fprintf(out, "\n%-54s %10s %10s\n", "targets", "measured", "target")
	for _, t := range targets {
		for _, result := range r.results {
			if result.title == t.contest {
				t.print(out, result.ratio(t.over[0], t.over[1]))
			}
		}
	}
}

func (t target) print(out io.Writer, ratio float64) {
	verdict := "missed"
	if ratio >= t.atLeast {
		verdict = "reached"
	}
	sign, limit := ">=", t.atLeast
	if t.inverted {
		sign, ratio, limit = "<=", 1/ratio, 1/limit
	}
	fmt.Fprintf(out, "  %-52s %10.2f %10s  %s\n", t.contest+": "+t.what, ratio, fmt.Sprintf("%s %.2f", sign, limit), verdict)
}

// machine tells where it was measured.
func machine(redis string, versions []string) []string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return append([]string{fmt.Sprintf("%d cores of %s", runtime.NumCPU(), model), "redis-server " + redis + " over loopback"}, versions...)
}

// thousands writes a number with separators: 12,345.
func thousands(x float64) string {
	text := fmt.Sprintf("%.0f", x)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
