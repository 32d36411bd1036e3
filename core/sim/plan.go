package sim

import (
	"math/rand/v2"

	"github.com/libredlock/libredlock/core"
)

// plan is what a seed decides before the world begins.
type plan struct {
	nodes   int
	clients int
	workers int // of each client
	names   []string
	maxTTL  core.Duration
	storm   core.Duration // how long everything may go wrong

	// quiet: nothing goes wrong. All is to be prompt and cheap.
	quiet bool
	// lawless: clocks mean nothing. Keys vanish at any moment, nodes' clocks jump, holders are forced out.
	lawless bool
	vanish  float64 // chance that a key vanishes before a call, if so
	// ahead: the fence counters have run ahead of every clock, so that proposals don't matter.
	ahead bool

	latency   core.Duration // a usual message takes up to this long
	slow      float64       // of the messages take much longer,
	stuck     float64       // or longer than any lease
	lost      float64       // of the requests, and of the replies, never arrive
	broken    float64       // of the connections break while a call waits
	refused   float64       // of the calls are never written
	failing   float64       // of the calls are answered with an error,
	nonsense  float64       // or with what no script says
	forgetful float64       // chance that a node forgets its scripts before a call
	disasters core.Duration // between two of them: pauses, crashes, cuts, stalls
	patience  core.Duration // what some clients have set as the node timeout
	tooOld    bool          // one node's server is too old to be used

	plain float64 // of the acquires are without the queue: they may overtake
}

func newPlan(r *rand.Rand) plan {
	p := plan{
		nodes:   pick(r, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5),
		clients: 2 + r.IntN(3),
		workers: 1 + r.IntN(3),
		names:   names[:pick(r, 1, 1, 1, 2, 3)],
		maxTTL:  pick[core.Duration](r, 150, 150, 300, 300, 600, 600, 1500, 9000) * core.Millisecond,
		lawless: r.IntN(3) == 0,
		vanish:  pick(r, 0.03, 0.1, 0.3),
		ahead:   r.IntN(2) == 0,
		latency: pick[core.Duration](r, 200, 1000, 4000) * core.Microsecond,
		tooOld:  r.IntN(16) == 0,
		plain:   pick(r, 0, 0.16),

		patience: pick[core.Duration](r, 0, 30, 30, 400) * core.Millisecond,
	}
	p.storm = max(2*p.maxTTL, 1200*core.Millisecond)
	p.disasters = p.storm / core.Duration(1+r.IntN(12))
	for _, chance := range []*float64{&p.slow, &p.stuck, &p.lost, &p.broken, &p.refused, &p.failing, &p.nonsense, &p.forgetful} {
		*chance = pick[float64](r, 0, 0, 0.01, 0.03, 0.15)
	}
	if r.IntN(6) == 0 {
		return quiet(r, p)
	}
	if p.lawless && p.ahead { // here only the rules of the raise keep two attempts from the same token: let them quarrel
		p.nodes, p.clients, p.workers, p.names = pick(r, 3, 5), 4, 3, names[:1]
		p.latency, p.slow = 4*core.Millisecond, 0.15
	}
	return p
}

// quiet makes a plan one in which nothing goes wrong, mostly on one deployment.
func quiet(r *rand.Rand, p plan) plan {
	return plan{
		quiet:   true,
		nodes:   pick(r, 1, 1, 1, 3),
		clients: p.clients, workers: p.workers, names: p.names,
		maxTTL: pick(r, p.maxTTL, 9000*core.Millisecond), storm: p.storm, disasters: p.disasters,
		ahead: p.ahead, latency: p.latency, plain: p.plain, patience: p.patience,
	}
}

// names are what is locked, and fenceKeys where their fencing tokens are counted.
var (
	names     = []string{"a", "{b}c", "d"}
	fenceKeys = map[string]string{
		"a":    "{a}:redlock:mutex:fence:a",
		"{b}c": "{b}:redlock:mutex:fence:{b}c",
		"d":    "{d}:redlock:mutex:fence:d",
	}
)

// pick chooses one of the values. Naming a value twice makes it twice as likely.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// clock runs at its own speed: the drift that leases allow for, 1 % in all, is shared by
// the holder's clock and the node's. The two milliseconds more are for the server's
// rounding.
type clock struct {
	offset int64
	ppm    int64
}

const maxDriftPPM = 4_900

func newClock(r *rand.Rand, maxOffset int64) clock {
	c := clock{offset: r.Int64N(maxOffset + 1)}
	switch r.IntN(3) {
	case 0:
		c.ppm = pick[int64](r, -maxDriftPPM, maxDriftPPM)
	case 1:
		c.ppm = r.Int64N(2*maxDriftPPM+1) - maxDriftPPM
	}
	return c
}

// at is what the clock shows at a true time.
func (c clock) at(true core.Time) int64 { return c.offset + int64(true) + int64(true)*c.ppm/1_000_000 }

// when is the first true time at which the clock shows this.
func (c clock) when(shown int64) core.Time {
	guess := core.Time((shown - c.offset) * 1_000_000 / (1_000_000 + c.ppm))
	for c.at(guess) < shown {
		guess++
	}
	return guess
}
