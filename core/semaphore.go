package core

import (
	"slices"
	"strconv"
	"strings"
)

// A semaphore has slots, as many as permits. On one node the script gives the lowest that is free. On several nodes an attempt proposes one
// slot, and needs a quorum for that: to count permits on each node would let in too many (of two permits on three nodes A, B and C
// each has room for one of {A,B}, {B,C} and {A,C}). A node that refuses tells which slots it has free.

// propose chooses the slot that the next attempt asks for.
func (m *Machine) propose(h *hold) string {
	if c := m.contests[h.lock.id()]; c != nil && h.contends() {
		for i := range c.nodes {
			if slot, err := strconv.Atoi(c.nodes[i].released); err == nil && slot >= 0 && slot < h.lock.permits {
				return strconv.Itoa(slot)
			}
		}
	}
	if h.attempt != nil {
		if free := h.attempt.freeSlots(); len(free) > 0 {
			return strconv.FormatInt(free[h.jitter(0, Duration(len(free)-1))], 10)
		}
	}
	return strconv.Itoa(int(h.jitter(0, Duration(h.lock.permits-1))))
}

// freeSlots are those that a quorum may have free, by what the nodes answered.
func (a *attempt) freeSlots() (slots []int64) {
	var named []int64
	for i := range a.grants {
		told := a.grants[i].slots
		if a.votes[i].answer == yes {
			told = a.slot
		}
		for number := range strings.SplitSeq(told, ",") {
			if slot, err := strconv.Atoi(number); err == nil && slot >= 0 && slot < a.hold.lock.permits {
				named = append(named, int64(slot))
			}
		}
	}
	slices.Sort(named)
	need := quorum(len(a.grants))
	for i := 0; i+need <= len(named); i++ {
		if named[i] == named[i+need-1] && (len(slots) == 0 || slots[len(slots)-1] != named[i]) {
			slots = append(slots, named[i])
		}
	}
	return slots
}

// proposeAnother lets a try ask for another slot, if one may be free. It tells whether it does.
func (m *Machine) proposeAnother(h *hold) bool {
	if !h.lock.kind.slots || h.limited || h.attempts >= triesOfSlots || len(h.attempt.freeSlots()) == 0 {
		return false
	}
	m.abandon(h.attempt)
	m.move(h, refused)
	m.move(h, due)
	m.attempt(h)
	return true
}

// triesOfSlots is how many slots a try proposes at most: each time it has lost the one before to somebody else.
const triesOfSlots = 8

func slotNumber(slot string) int {
	number, _ := strconv.Atoi(slot) // "": not a semaphore
	return number
}
