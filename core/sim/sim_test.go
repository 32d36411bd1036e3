package sim

import (
	"flag"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run the world of this seed only; with -v, log its events")
	seeds   = flag.Uint64("seeds", 4000, "how many worlds to run")
)

// TestSim runs many worlds; every transition and status must happen in one of them.
func TestSim(t *testing.T) {
	if *oneSeed != 0 {
		var log io.Writer
		if testing.Verbose() {
			log = os.Stdout
		}
		report(t, Run(*oneSeed, log))
		return
	}
	total := runAll(t, *seeds)
	t.Logf("%d worlds: %d acquisitions, %d losses, %d steps, %d calls", *seeds, total.Acquisitions, total.Losses, total.Steps, total.Calls)
	t.Logf("%d hand-overs; %.2f beats a second and waiter", total.HandOvers, float64(total.Beats)*1e6/float64(total.Waited))
	if *seeds >= 4000 {
		require.Empty(t, total.Coverage.Missing(), "these never happened")
	}
}

// runAll runs the worlds of the seeds from 1; with -failfast, until one fails.
func runAll(t *testing.T, count uint64) (total Result) {
	total.Coverage = Coverage{}
	var last atomic.Uint64
	var mu sync.Mutex
	var workers sync.WaitGroup
	failFast := flag.Lookup("test.failfast").Value.String() == "true"
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := last.Add(1); seed <= count && !(failFast && t.Failed()); seed = last.Add(1) {
				result := Run(seed, nil)
				mu.Lock()
				report(t, result)
				total.Acquisitions += result.Acquisitions
				total.Losses += result.Losses
				total.Steps += result.Steps
				total.Calls += result.Calls
				total.HandOvers += result.HandOvers
				total.Beats += result.Beats
				total.Waited += result.Waited
				total.Coverage.Merge(result.Coverage)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return total
}

func report(t *testing.T, result Result) {
	if result.Failure != "" {
		t.Errorf("seed %d: %s\nreplay: go test ./core/sim -run TestSim -v -seed=%d", result.Seed, result.Failure, result.Seed)
	}
}

func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var first, second strings.Builder
		Run(seed, &first)
		Run(seed, &second)
		require.Equal(t, first.String(), second.String())
	}
}
