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
	for _, apart := range []bool{true, false} {
		fmt.Fprintf(out, "\n%s, ms: p50 / p95 / p99 (hand-offs)\n\n", where(apart))
		r.table(out, apart, (*result).latency)
		fmt.Fprintf(out, "\n%s, commands a hand-off (a second for each of 10 waiters while the lock is held)\n\n", where(apart))
		r.table(out, apart, (*result).traffic)
	}
}

func where(apart bool) string {
	if apart {
		return "in processes of their own"
	}
	return "in one process"
}

// table has a line a contestant and a column a contest.
func (r report) table(out io.Writer, apart bool, cell func(*result) string) {
	columns := slices.DeleteFunc(slices.Clone(contests), func(c contest) bool { return c.apart != apart })
	fmt.Fprint(out, "| |")
	for _, c := range columns {
		fmt.Fprintf(out, " %d waiting |", c.waiters)
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("---|", len(columns)))
	for _, who := range contestants {
		fmt.Fprintf(out, "| %s |", who.shown)
		for _, c := range columns {
			text := "–" // not played, or not to the end
			for i := range r {
				if r[i].contest == c && r[i].contestant == who {
					text = cell(&r[i])
				}
			}
			fmt.Fprintf(out, " %s |", text)
		}
		fmt.Fprintln(out)
	}
}

func (r *result) latency() string {
	return fmt.Sprintf("%s / %s / %s (%d)", r.quantile(50), r.quantile(95), r.quantile(99), len(r.took))
}

func (r *result) traffic() string {
	if r.idle < 0 {
		return fmt.Sprintf("%.1f", r.commands)
	}
	return fmt.Sprintf("%.1f (%.1f)", r.commands, r.idle)
}

// quantile gives the smallest time within which so many of a hundred hand-offs were made, in ms.
func (r *result) quantile(percent int) string {
	sorted := slices.Sorted(slices.Values(r.took))
	took := sorted[max(0, (len(sorted)*percent+99)/100-1)]
	ms := float64(took) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
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
