package script_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// model is what a lock that several may hold should do, in plain Go.
type model struct {
	kind   string
	queued bool
	held   map[string]string // mode or slot, by name
	queue  []*placed
	intent bool
	told   []string // who was handed over to, and is told
}

type placed struct {
	name, wanted string
	dead         bool
}

func owner(name string) string { return name[:1] }

// owned are the modes that an owner holds, and whether another one holds or even writes.
func (m *model) owned(by string) (modes string, others, othersWrite bool) {
	for name, mode := range m.held {
		if owner(name) == by {
			modes += mode
			continue
		}
		others = true
		othersWrite = othersWrite || mode == "w"
	}
	return modes, others, othersWrite
}

// fits tells what one that wants it gets, by the holders alone: a mode or a slot; "" if nothing.
func (m *model) fits(wanted, name string) string {
	if m.kind == "rwlock" {
		modes, others, othersWrite := m.owned(owner(name))
		if wanted[0] == 'r' && !othersWrite || wanted[0] == 'w' && !others && (modes == "" || strings.Contains(modes, "w")) {
			return wanted[:1]
		}
		return ""
	}
	permits, _, _ := strings.Cut(wanted, "/")
	most, _ := strconv.Atoi(permits)
	taken := slices.Collect(maps.Values(m.held))
	for slot := 0; len(taken) < most; slot++ {
		if !slices.Contains(taken, strconv.Itoa(slot)) {
			return strconv.Itoa(slot)
		}
	}
	return ""
}

// first removes the dead at the head, and gives the first that lives.
func (m *model) first() *placed {
	for len(m.queue) > 0 && m.queue[0].dead {
		m.queue = m.queue[1:]
	}
	if len(m.queue) == 0 {
		return nil
	}
	return m.queue[0]
}

func (m *model) serve(asking string) {
	for p := m.first(); m.queued && p != nil; p = m.first() {
		what := m.fits(p.wanted, p.name)
		if what == "" {
			return
		}
		m.held[p.name] = what
		m.queue = m.queue[1:]
		if p.name != asking {
			m.told = append(m.told, p.name)
		}
	}
}

func (m *model) leave(name string) bool {
	before := len(m.queue)
	m.queue = slices.DeleteFunc(m.queue, func(p *placed) bool { return p.name == name })
	return len(m.queue) < before
}

func (m *model) wait(wanted, name string) {
	for _, p := range m.queue {
		if p.name == name {
			p.wanted, p.dead = wanted, false
			return
		}
	}
	m.queue = append(m.queue, &placed{name, wanted, false})
}

func (m *model) waits(name string) bool {
	return slices.ContainsFunc(m.queue, func(p *placed) bool { return p.name == name })
}

// acquire tells the code of the reply.
func (m *model) acquire(wanted, name string, waits bool) int {
	if m.queued {
		m.first()
	}
	if m.held[name] != "" {
		return script.Yes
	}
	modes, _, _ := m.owned(owner(name))
	if m.kind == "rwlock" && modes != "" {
		if wanted[0] == 'w' && !strings.Contains(modes, "w") {
			m.leave(name)
			return script.Forbidden
		}
		m.leave(name)
		m.held[name] = wanted[:1]
		return script.Yes
	}
	m.serve(name)
	if m.held[name] != "" {
		return script.Yes
	}
	what := m.fits(wanted, name)
	if what != "" && len(m.queue) == 0 && !(m.intent && wanted == "r") {
		m.held[name] = what
		m.intent = m.intent && wanted == "r"
		return script.Yes
	}
	if waits && m.queued {
		m.wait(wanted, name)
	}
	if len(wanted) > 1 && wanted[0] == 'w' && !slices.Contains(slices.Collect(maps.Values(m.held)), "w") {
		m.intent = true
	}
	return script.No
}

func (m *model) beat(wanted, name string) int {
	switch {
	case m.held[name] != "":
		return script.Yes
	case !m.waits(name):
		return script.Gone
	}
	m.wait(wanted, name)
	m.serve(name)
	if m.held[name] != "" {
		return script.Yes
	}
	return script.No
}

// missing is the code for one that does not hold what it names.
func (m *model) missing(wanted, name string) int {
	_, others, othersWrite := m.owned(owner(name))
	_, slot, _ := strings.Cut(wanted, "/")
	if m.kind == "rwlock" && (othersWrite || others && wanted[0] == 'w') ||
		m.kind == "semaphore" && slot != "" && slices.Contains(slices.Collect(maps.Values(m.held)), slot) {
		return script.No
	}
	return script.Gone
}

// drop removes a grant and hands over.
func (m *model) drop(wanted, name string) int {
	code := script.Yes
	if m.held[name] == "" {
		code = m.missing(wanted, name)
	}
	delete(m.held, name)
	m.serve("")
	return code
}

func (m *model) undo(name string) int {
	code := script.Gone
	if left := m.leave(name); left || m.held[name] != "" {
		code = script.Yes
	}
	delete(m.held, name)
	m.serve("")
	return code
}

func (m *model) force(name string) int {
	code := script.Gone
	if m.held[name] != "" {
		code = script.Yes
	} else if len(m.held) > 0 {
		code = script.No
	}
	delete(m.held, name)
	m.serve("")
	return code
}

// check looks for what must never be, whatever the model says.
func (m *model) check(t *testing.T, holders []string, most int) {
	t.Helper()
	writes, owners, slots := "", map[string]bool{}, map[string]bool{}
	for _, holder := range holders {
		what, name, _ := strings.Cut(holder, "|")
		require.False(t, slots[what] && m.kind == "semaphore", "a slot was given twice: %v", holders)
		slots[what], owners[name] = true, true
		if name != "" {
			owners[owner(name)] = true
			delete(owners, name[1:])
		}
		if what == "w" {
			writes = owner(name)
		}
	}
	for name := range owners {
		require.False(t, writes != "" && name != "" && owner(name) != writes, "another beside one that writes: %v", holders)
	}
	if m.kind == "semaphore" {
		require.LessOrEqual(t, len(holders), most)
	}
}
