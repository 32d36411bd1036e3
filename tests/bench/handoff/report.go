package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is all results, in the order of the contests.
type report []result

// print writes Markdown.
func (r report) print(out io.Writer, facts string) {
	fmt.Fprintln(out, facts)
	for _, c := range contests {
		if !slices.ContainsFunc(r, func(result result) bool { return result.contest == c }) {
			continue
		}
		fmt.Fprintf(out, "\n%s:\n\n| | hand-offs | p50, ms | p95, ms | p99, ms | commands a hand-off |\n|---|---|---|---|---|---|\n", c.title())
		for _, result := range r {
			if result.contest == c {
				fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %.1f |\n", result.shown, len(result.took),
					result.quantile(50), result.quantile(95), result.quantile(99), result.commands)
			}
		}
	}
	fmt.Fprintf(out, "\ncommands a second for each of 10 waiters, while the lock is held:\n\n| | processes of their own | one process |\n|---|---|---|\n")
	for _, who := range contestants {
		rates := map[bool]string{}
		for _, result := range r {
			if result.contestant == who && result.idle >= 0 {
				rates[result.apart] = fmt.Sprintf("%.2f", result.idle)
			}
		}
		if len(rates) > 0 {
			fmt.Fprintf(out, "| %s | %s | %s |\n", who.shown, rates[true], rates[false])
		}
	}
}

// quantile gives the smallest time within which so many of a hundred hand-offs were made, in ms.
func (r *result) quantile(percent int) string {
	sorted := slices.Sorted(slices.Values(r.took))
	took := sorted[max(0, (len(sorted)*percent+99)/100-1)]
	ms := float64(took) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// machine tells where it was measured.
func machine(redis string) string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s; redis-server %s over loopback", runtime.NumCPU(), model, redis)
}
