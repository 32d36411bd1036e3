package core

import "container/heap"

// timed is what has a timer: its wake is called when the time has come.
type timed interface{ wake(m *Machine) }

// timer is one entry of the machine's timers, embedded in what it wakes.
type timer struct {
	at    Time
	index int // in the heap, plus 1; 0: not set
	owner timed
}

// timers is a heap of those that are set, the earliest first.
type timers []*timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i+1, j+1
}
func (t *timers) Push(x any) {
	entry := x.(*timer)
	*t = append(*t, entry)
	entry.index = len(*t)
}
func (t *timers) Pop() any {
	last := len(*t) - 1
	entry := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	entry.index = 0
	return entry
}

// set makes a timer due at a time; Never stops it.
func (t *timers) set(entry *timer, owner timed, at Time) {
	entry.owner = owner
	switch {
	case at == Never && entry.index == 0:
	case at == Never:
		heap.Remove(t, entry.index-1)
	case entry.index == 0:
		entry.at = at
		heap.Push(t, entry)
	default:
		entry.at = at
		heap.Fix(t, entry.index-1)
	}
}

// next is when the earliest is due.
func (t timers) next() Time {
	if len(t) == 0 {
		return Never
	}
	return t[0].at
}

// fire wakes all that are due, those included that become due meanwhile.
func (m *Machine) fire() {
	for m.timers.next() <= m.now {
		heap.Pop(&m.timers).(*timer).owner.wake(m)
	}
}
