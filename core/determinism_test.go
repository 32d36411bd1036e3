package core_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
)

// moment is an event and what came of it.
type moment struct {
	now     core.Time
	event   core.Event
	effects core.Effects
}

// babble feeds a machine with random events, whether they make sense or not, and notes what comes of them.
func babble(t *testing.T, machine *core.Machine, seed uint64) (moments []moment) {
	r := rand.New(rand.NewPCG(seed, 3))
	var now core.Time
	wake := core.Never
	calls := map[core.CallID]bool{}
	owed := map[core.OpID]bool{}
	for op := core.OpID(1); op < 300; op++ {
		event := randomEvent(r, op, slices.Sorted(maps.Keys(calls)))
		now += core.Time(r.Int64N(int64(pick(r, core.Millisecond, 100*core.Millisecond, 2*core.Second))))
		if r.IntN(3) == 0 && wake != core.Never {
			now = max(now, wake)
		}
		switch e := event.(type) {
		case *core.Answer:
			delete(calls, e.Call)
		case core.Request:
			e.SetOp(op)
			owed[op] = true
		}
		effects := clone(machine.Step(now, event))
		wake = effects.Wake
		for _, call := range effects.Calls {
			require.False(t, calls[call.ID])
			calls[call.ID] = true
		}
		for _, outcome := range effects.Outcomes {
			require.True(t, owed[outcome.Op], "an outcome for %d, which has had one", outcome.Op)
			delete(owed, outcome.Op)
		}
		moments = append(moments, moment{now, event, effects})
	}
	return moments
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func randomEvent(r *rand.Rand, op core.OpID, calls []core.CallID) core.Event {
	name := pick(r, "a", "b", "")
	hold := core.OpID(r.IntN(int(op)))
	ttl := pick(r, 0, 100*core.Millisecond, core.Second, 1)
	if choice := r.IntN(100); choice < 60 && len(calls) > 0 {
		answer := &core.Answer{Call: pick(r, calls...)}
		if r.IntN(4) > 0 {
			for range r.IntN(4) {
				answer.Reply = append(answer.Reply, core.Value{Int: r.Int64N(4), Str: pick(r, "list", "x"), IsString: r.IntN(5) == 0})
			}
		} else {
			answer.Fault = pick(r, core.Refused, core.Unknown, core.ErrorReply)
			answer.Cause = pick(r, "NOSCRIPT", "ERR unknown command", "timeout")
		}
		return answer
	}
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		return &core.Acquire{Name: name, TTL: ttl, Wait: pick(r, 0, core.Second, core.Forever), Seed: [16]byte{byte(op), byte(op >> 8)}, Wall: r.Int64N(1 << 50)}
	case 4, 5, 6:
		return &core.Renew{Hold: hold, TTL: ttl}
	case 7, 8:
		return &core.Release{Hold: hold}
	case 9:
		return &core.Inspect{Name: name}
	case 10:
		return &core.ForceRelease{Name: name, Digest: "0123456789012345678901234567890123456789"}
	case 11, 12:
		return &core.Cancel{Op: hold}
	case 13:
		return &core.Connected{Node: r.IntN(6), Facts: core.Facts{Version: pick(r, "5.0", "7.2.4", "?"), Evicts: r.IntN(2) == 0}}
	case 14:
		if r.IntN(20) == 0 {
			return &core.Close{}
		}
	}
	return &core.Tick{}
}

// clone keeps effects beyond the next step.
func clone(e core.Effects) core.Effects {
	e.Calls = slices.Clone(e.Calls)
	e.Subscriptions = slices.Clone(e.Subscriptions)
	e.Outcomes = slices.Clone(e.Outcomes)
	e.Notices = slices.Clone(e.Notices)
	return e
}

func newMachine(t *testing.T, nodes int) *core.Machine {
	t.Helper()
	machine, err := core.New(core.Config{Nodes: []string{"n0", "n1", "n2", "n3", "n4"}[:nodes], Who: "host/1/go"})
	require.Nil(t, err)
	return machine
}

// The same events at the same times have the same effects; and no events, however senseless, make the machine
// panic or answer a request twice.
func TestDeterminism(t *testing.T) {
	for seed := range uint64(100) {
		nodes := 1 + int(seed%5)
		moments := babble(t, newMachine(t, nodes), seed)
		again := newMachine(t, nodes)
		for i, m := range moments {
			require.Equal(t, m.effects, clone(again.Step(m.now, m.event)), "seed %d, event %d", seed, i)
		}
	}
}

func TestAStepOfTheIdleMachineAllocatesNothing(t *testing.T) {
	machine := newMachine(t, 3)
	tick := &core.Tick{}
	require.Zero(t, testing.AllocsPerRun(100, func() { machine.Step(1, tick) }))
}
