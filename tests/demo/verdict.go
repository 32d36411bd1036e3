package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A verdict is what the fight showed.
type verdict struct {
	history  []turn // in the order of the grants
	counter  int    // what the file says at the end
	overlaps []string
	disorder []string // fencing tokens that did not increase
	left     []string // keys left behind
	failures []error  // of the programs themselves
	handOffs []time.Duration
	passed   int // grants to a program although another had waited for longer
}

// judge checks what the lock promises. It knows only what the programs printed and what is
// left in the file and in Redis: not how the lock works.
func judge(history []turn, counter int, left []string, failures []error, stoppedEarly bool) *verdict {
	v := &verdict{history: history, counter: counter, left: left, failures: failures}
	for _, l := range languages {
		if v.of(l).turns == 0 && !stoppedEarly {
			v.failures = append(v.failures, fmt.Errorf("%v never got the lock", l))
		}
	}
	for i, now := range history {
		if wantedBefore(now.waiting, history[i+1:]) {
			v.passed++
		}
		if i == 0 {
			continue
		}
		before := history[i-1]
		last := slices.MaxFunc(history[:i], func(a, b turn) int { return cmp.Compare(a.released, b.released) })
		if now.acquired < last.released {
			v.overlaps = append(v.overlaps, fmt.Sprintf("%v (token %d) and %v (token %d) held together for %s",
				last.language, last.fence, now.language, now.fence, ms(span(now.acquired, min(last.released, now.released)))))
		}
		if now.fence <= before.fence {
			v.disorder = append(v.disorder, fmt.Sprintf("%v got %d after %v had got %d", now.language, now.fence, before.language, before.fence))
		}
		if wantedBefore(before.released, history[i:]) {
			v.handOffs = append(v.handOffs, span(before.released, now.acquired))
		}
	}
	slices.Sort(v.handOffs)
	return v
}

// wantedBefore tells whether the program of one of these turns waited for it at that moment already.
func wantedBefore(moment int64, turns []turn) bool {
	return slices.ContainsFunc(turns, func(t turn) bool { return t.waiting < moment })
}

func (v *verdict) kept() bool {
	return v.counter == len(v.history) && len(v.overlaps) == 0 && len(v.disorder) == 0 && len(v.left) == 0 && len(v.failures) == 0
}

func (v *verdict) failure() error { return errors.Join(v.failures...) }

// A share is what one language had of the lock.
type share struct {
	turns       int
	held        time.Duration
	longestWait time.Duration
}

func (v *verdict) of(l language) (s share) {
	for _, t := range v.history {
		if t.language == l {
			s.turns++
			s.held += span(t.acquired, t.released)
			s.longestWait = max(s.longestWait, span(t.waiting, t.acquired))
		}
	}
	return s
}

func span(from, to int64) time.Duration { return time.Duration(to - from) }

// quantile is the smallest value that at least a fraction q of the sorted values don't exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
