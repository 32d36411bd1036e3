package wasm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/tests/internal/wasmhost"
)

var oneNode = core.Config{Nodes: []string{"n0:6379"}, Who: "host/1/go"}

// worker locks, renews and releases on one node, by texts that it makes without encoding/json.
type worker struct {
	t        testing.TB
	instance *wasmhost.Instance
	now      int64
	op, call int
	input    []byte
}

func newWorker(t testing.TB, host *wasmhost.Host) *worker {
	i := instance(t, host)
	_, err := wasmhost.Open(i, oneNode)
	require.Nil(t, err)
	return &worker{t: t, instance: i}
}

// step feeds one event, and requires that the output begins so and that so many calls are sent.
func (w *worker) step(prefix string, calls int, format string, args ...any) {
	w.now += 100
	w.input = fmt.Appendf(w.input[:0], "[%d,[", w.now)
	w.input = fmt.Appendf(w.input, format, args...)
	w.input = append(w.input, "]]"...)
	output, sent, err := w.instance.Step(w.input)
	if err != nil || !strings.HasPrefix(string(output), prefix) || strings.Count(string(sent), `,["EVALSHA",`) != calls {
		w.t.Fatalf("%s: %s, sent %s, %v", w.input, output, sent, err)
	}
	w.call += calls
}

// pair acquires and releases, in four steps. The lock is free.
func (w *worker) pair(name int) {
	w.acquire(name)
	w.release()
}

func (w *worker) acquire(name int) {
	w.op++
	w.step("[[],[],", 1, `["acquire",%d,"mutex","orders:%d",0,0,2500000,null,false,false,null,0,"","%032x",1700000000000000]`, w.op, name, w.op)
	w.step(fmt.Sprintf(`[[[%d,0,"rl0:`, w.op), 0, `["answer",%d,[1,%d]]`, w.call, w.now)
}

// release gives back the last lock that was acquired.
func (w *worker) release() {
	w.op++
	w.step("[[],[],", 1, `["release",%d,%d]`, w.op, w.op-1)
	w.step(fmt.Sprintf(`[[[%d,0,""`, w.op), 0, `["answer",%d,[1]]`, w.call)
}

// renewed is a pair with a renewal and a refused attempt of another in between, in ten steps.
func (w *worker) renewed(name int) {
	w.acquire(name)
	hold := w.op
	w.op++
	w.step("[[],[],", 1, `["renew",%d,%d,0]`, w.op, hold)
	w.step(fmt.Sprintf(`[[[%d,0,"",0,`, w.op), 0, `["answer",%d,[1]]`, w.call)
	w.op++
	w.step("[[],[],", 1, `["acquire",%d,"mutex","orders:%d",0,0,0,null,false,false,null,0,"caf\u00e9 \udcff","%032x",0]`, w.op, name, w.op)
	w.step(fmt.Sprintf(`[[[%d,1,"`, w.op), 0, `["answer",%d,[0,9000]]`, w.call)
	w.step("[[],[],", 0, `["tick"]`)
	w.op++
	w.step("[[],[],", 1, `["release",%d,%d]`, w.op, hold)
	w.step(fmt.Sprintf(`[[[%d,0,""`, w.op), 0, `["answer",%d,[1]]`, w.call)
}

// TestMemoryIsFlat runs 1,000,000 steps: memory has its size after a tenth of them. wazero's clock, a false one that ticks
// by the call, is the worst that the garbage collector may find in a host.
func TestMemoryIsFlat(t *testing.T) {
	w := newWorker(t, linear(t, module(t), wasmhost.Options{}))
	var early uint32
	steps := 0
	for round := 0; steps < 1_000_000; round++ {
		if round%2 == 0 {
			w.pair(round % 1000)
			steps += 4
		} else {
			w.renewed(round % 1000)
			steps += 9
		}
		if early == 0 && steps >= 100_000 {
			early = w.instance.MemoryBytes()
		}
	}
	t.Logf("%d bytes after %d steps", w.instance.MemoryBytes(), steps)
	require.LessOrEqual(t, w.instance.MemoryBytes(), early+256<<10)
	require.Less(t, early, uint32(16<<20))
}

// TestManyInFlight has 5,000 operations in flight on one instance.
func TestManyInFlight(t *testing.T) {
	const many = 5000
	eachHost(t, func(t *testing.T, host *wasmhost.Host) {
		m, wrong := wasmhost.Open(instance(t, host), oneNode)
		require.Nil(t, wrong)
		random := rand.New(rand.NewPCG(1, 2))
		// round has all events stepped, the calls answered in any order, and gives the outcomes by their ids.
		round := func(now core.Time, events []core.Event, reply ...core.Value) map[core.OpID]core.Outcome {
			effects := m.Feed(now, events...)
			require.Len(t, effects.Calls, many)
			require.Empty(t, effects.Outcomes)
			outcomes := map[core.OpID]core.Outcome{}
			random.Shuffle(many, func(i, j int) { effects.Calls[i], effects.Calls[j] = effects.Calls[j], effects.Calls[i] })
			for len(effects.Calls) > 0 {
				some := min(len(effects.Calls), 1+random.IntN(100))
				var answers []core.Event
				for _, call := range effects.Calls[:some] {
					answers = append(answers, &core.Answer{Call: call.ID, Reply: reply})
				}
				effects.Calls = effects.Calls[some:]
				for _, o := range m.Feed(now+1, answers...).Outcomes {
					require.NotContains(t, outcomes, o.Op, "answered twice")
					require.Equal(t, core.OK, o.Status, o.Message)
					outcomes[o.Op] = o
				}
			}
			require.Len(t, outcomes, many)
			return outcomes
		}
		var acquires, releases []core.Event
		for i := range many {
			acquires = append(acquires, &core.Acquire{Op: core.OpID(i + 1), Name: fmt.Sprint("lock ", i), Seed: [16]byte{byte(i >> 8), byte(i)}})
			releases = append(releases, &core.Release{Op: core.OpID(many + i + 1), Hold: core.OpID(i + 1)})
		}
		tokens := map[string]bool{}
		for _, o := range round(0, acquires, core.Value{Int: 1}, core.Value{Int: 7}) {
			tokens[o.Token] = true
		}
		require.Len(t, tokens, many)
		round(1000, releases, core.Value{Int: 1})
	})
}

func BenchmarkPair(b *testing.B) {
	for name, open := range hosts {
		b.Run(name, func(b *testing.B) {
			w := newWorker(b, open(b, module(b), wasmhost.Options{}))
			for b.Loop() {
				w.pair(1)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(4*b.N), "µs/step")
		})
	}
}

func BenchmarkInstance(b *testing.B) {
	host := linear(b, module(b), wasmhost.Options{})
	for b.Loop() {
		i, err := host.New()
		require.NoError(b, err)
		i.Close()
	}
}
