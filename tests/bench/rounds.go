package main

import (
	"fmt"
	"slices"
	"time"
)

// result is a contest that was held.
type result struct {
	contest
	about string               // the versions that the peer tells
	speed map[string][]float64 // pairs a second by contestant, round by round
}

// hold lets the contestants of a contest take turns.
func hold(c contest, of program, s *server, rounds int, length time.Duration) (*result, error) {
	r := &result{contest: c, speed: map[string][]float64{}}
	peers := map[string]*peer{}
	for _, contestant := range c.contestants {
		p, err := startPeer(of, contestant.id, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", contestant.shown, err)
		}
		defer p.stop()
		peers[contestant.id] = p
		r.about = p.about
	}
	for round := range rounds + 1 {
		for _, contestant := range c.contestants {
			speed, err := peers[contestant.id].run(c.callers, length)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contestant.shown, err)
			}
			if round > 0 {
				r.speed[contestant.id] = append(r.speed[contestant.id], speed)
			}
		}
	}
	return r, nil
}

// median is the speed of a contestant.
func (r *result) median(id string) float64 { return median(r.speed[id]) }

// ratio is how many times as fast one contestant is as another: the median over the rounds, since the two ran
// one after the other in each.
func (r *result) ratio(id, other string) float64 {
	ratios := make([]float64, len(r.speed[id]))
	for i := range ratios {
		ratios[i] = r.speed[id][i] / r.speed[other][i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
