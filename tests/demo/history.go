package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A language is one of the four that fight.
type language int

const (
	python language = iota
	node
	c
	golang
	languageCount
)

var languages = []language{python, node, c, golang}

func (l language) String() string { return [...]string{"Python", "Node", "C", "Go"}[l] }

// An event is one line that a worker prints: "waiting NS", "acquired NS FENCE" or "released NS".
type event struct {
	language language
	kind     string
	at       int64  // ns of CLOCK_MONOTONIC, which all processes of a machine share
	fence    uint64 // of acquired
}

const (
	waiting  = "waiting"  // taken before the acquire is called
	acquired = "acquired" // taken after it returned
	released = "released" // taken before the release is called: from then on others may hold
)

func parseEvent(l language, line string) (event, error) {
	e := event{language: l}
	words := strings.Fields(line)
	wanted := map[string]int{waiting: 2, acquired: 3, released: 2}
	if len(words) == 0 || len(words) != wanted[words[0]] {
		return e, fmt.Errorf("%v printed %q", l, line)
	}
	e.kind = words[0]
	var err error
	if e.at, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return e, fmt.Errorf("%v printed %q: %w", l, line, err)
	}
	if e.kind == acquired {
		if e.fence, err = strconv.ParseUint(words[2], 10, 64); err != nil {
			return e, fmt.Errorf("%v printed %q: %w", l, line, err)
		}
	}
	return e, nil
}

// A turn is one holding of the lock.
type turn struct {
	language language
	waiting  int64 // since when it was wanted
	acquired int64
	released int64
	fence    uint64
}

// historyOf makes turns of events, in the order in which the lock was granted. The events of
// one language are in order; between languages they may be interleaved as they like.
func historyOf(events []event) []turn {
	var turns []turn
	end := int64(0)
	var current [languageCount]turn
	var holding [languageCount]bool
	for _, e := range events {
		end = max(end, e.at)
		switch t := &current[e.language]; e.kind {
		case waiting:
			*t = turn{language: e.language, waiting: e.at}
		case acquired:
			t.acquired, t.fence = e.at, e.fence
			holding[e.language] = true
		case released:
			t.released = e.at
			turns = append(turns, *t)
			holding[e.language] = false
		}
	}
	for l, t := range current {
		if holding[l] { // it was killed, or crashed, while it held
			t.released = max(end, t.acquired)
			turns = append(turns, t)
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.acquired, b.acquired) })
	return turns
}
