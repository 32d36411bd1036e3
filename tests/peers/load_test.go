package peers_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// loadTime is how long each fight lasts.
const loadTime = time.Second

// fightsAtLeast is how often the lock has to change sides: a fight goes on until it has, for up to loadMost.
const (
	fightsAtLeast = 5
	loadMost      = 20 * time.Second
)

// witness is what a lock protects: a number that is read, and written back plus one, in two steps.
type witness struct {
	number, inside atomic.Int64
	overlaps       atomic.Int64
	ourTurns       atomic.Int64
	theirTurns     atomic.Int64
	last           atomic.Int64 // who was the last: 1 we, 2 they
	changes        atomic.Int64 // how often it went from one side to the other
}

func (w *witness) visit(side int64) {
	if w.inside.Add(1) != 1 {
		w.overlaps.Add(1)
	}
	number := w.number.Load()
	time.Sleep(200 * time.Microsecond)
	w.number.Store(number + 1)
	if w.last.Swap(side) != side {
		w.changes.Add(1)
	}
	w.inside.Add(-1)
}

// underLoad lets three clients of ours, one a language, and three of a peer's fight over one lock.
func underLoad(t *testing.T, matches []*match) {
	var w witness
	var all sync.WaitGroup
	end := time.Now().Add(loadTime)
	for _, m := range matches {
		name := m.peer.prefix + "load"
		all.Go(func() { fight(t, &w, 1, &w.ourTurns, m.us, name, end) })
		all.Go(func() { fight(t, &w, 2, &w.theirTurns, m.them, name, end) })
	}
	all.Wait()
	w.check(t)
}

// check says who had the lock how often, and that nobody lost anything.
func (w *witness) check(t *testing.T) {
	t.Helper()
	ours, theirs, changes := w.ourTurns.Load(), w.theirTurns.Load(), w.changes.Load()
	t.Logf("we held it %d times, they %d times; it changed sides %d times", ours, theirs, changes)
	assert.Zero(t, w.overlaps.Load(), "two holders at once")
	assert.Equal(t, ours+theirs, w.number.Load(), "lost updates")
	assert.Greater(t, changes, int64(fightsAtLeast), "they did not fight")
}

// fight takes the lock again and again. It pauses in between: who always stands in our queue leaves no room for those who poll.
func fight(t *testing.T, w *witness, side int64, turns *atomic.Int64, p player, name string, end time.Time) {
	for time.Now().Before(end) || w.changes.Load() <= fightsAtLeast && time.Now().Before(end.Add(loadMost)) {
		held := newName()
		// A ttl that ends what node-redlock leaves on a minority of nodes while it tries again.
		fields := append([]string{"ttl_ms", "1000", "wait_ms", "20000"}, lock(held, name)...)
		reply, err := p.driver.Call(patience, "acquire", p.fields(fields)...)
		if !assert.NoError(t, err) || !assert.Equal(t, "OK", reply.Word, "%s: %s", p.driver.Name, reply) {
			return
		}
		w.visit(side)
		turns.Add(1)
		reply, err = p.driver.Call(patience, "release", p.fields([]string{"held", held})...)
		if !assert.NoError(t, err) || !assert.Equal(t, "OK", reply.Word, "%s: %s", p.driver.Name, reply) {
			return
		}
		time.Sleep(rand.N(30 * time.Millisecond))
	}
}
