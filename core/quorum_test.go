package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoQuorumsShareANode(t *testing.T) {
	for n := 1; n <= MaxNodes; n++ {
		require.Greater(t, 2*quorum(n), n)
		require.LessOrEqual(t, 2*(quorum(n)-1), n, "and a smaller one would not do")
	}
}

// eachTally calls f with every way in which n nodes can have answered.
func eachTally(n int, f func(tally)) {
	for yes := 0; yes <= n; yes++ {
		for no := 0; yes+no <= n; no++ {
			for failed := 0; yes+no+failed <= n; failed++ {
				f(tally{yes, no, failed, n - yes - no - failed})
			}
		}
	}
}

// more are the tallies that one more answer may lead to.
func (t tally) more() []tally {
	if t.pending == 0 {
		return nil
	}
	left := t.pending - 1
	return []tally{{t.yes + 1, t.no, t.failed, left}, {t.yes, t.no + 1, t.failed, left}, {t.yes, t.no, t.failed + 1, left}}
}

func TestTallies(t *testing.T) {
	for n := 1; n <= MaxNodes; n++ {
		eachTally(n, func(x tally) {
			require.Equal(t, n, x.nodes())
			decided := 0
			for _, is := range []bool{x.won(), x.refused(), x.hopeless()} {
				if is {
					decided++
				}
			}
			require.LessOrEqual(t, decided, 1, "%+v is decided in one way", x)
			if x.pending == 0 {
				require.Equal(t, 1, decided, "%+v is decided", x)
			}
			for _, y := range x.more() {
				require.False(t, x.won() && !y.won(), "%+v -> %+v", x, y)
				require.False(t, x.refused() && !y.refused(), "%+v -> %+v", x, y)
				require.False(t, x.hopeless() && !y.hopeless(), "%+v -> %+v", x, y)
			}
		})
	}
}

// The decision falls as soon as it can: while it is open, what is pending can still lead to different ends.
func TestDecisionsAreEarly(t *testing.T) {
	for n := 1; n <= 9; n++ {
		eachTally(n, func(x tally) {
			if x.won() || x.refused() || x.hopeless() {
				return
			}
			ends := map[[3]bool]bool{}
			var follow func(tally)
			follow = func(y tally) {
				if y.pending == 0 {
					ends[[3]bool{y.won(), y.refused(), y.hopeless()}] = true
				}
				for _, z := range y.more() {
					follow(z)
				}
			}
			if x.pending <= 4 {
				follow(x)
				require.Greater(t, len(ends), 1, "%+v can only end in one way", x)
			}
		})
	}
}

// A quorum's lease ends when so many of its members' have that fewer than a quorum are left.
func TestQuorumEnd(t *testing.T) {
	const latest = 3
	for n := 1; n <= 5; n++ {
		ends := make([]Time, n)
		var try func(i int)
		try = func(i int) {
			if i < n {
				for ends[i] = 0; ends[i] <= latest; ends[i]++ {
					try(i + 1)
				}
				return
			}
			end := quorumEnd(ends)
			alive := func(at Time) (count int) {
				for _, e := range ends {
					if e > at {
						count++
					}
				}
				return count
			}
			require.Less(t, alive(end), quorum(n), "%v", ends)
			require.GreaterOrEqual(t, alive(end-1), quorum(n), "%v", ends)
		}
		try(0)
	}
	ends := []Time{3, 1, 2}
	quorumEnd(ends)
	require.True(t, slices.Equal([]Time{3, 1, 2}, ends), "it leaves them alone")
}

func TestLeasesAndLimits(t *testing.T) {
	require.Equal(t, Time(5*Second+9898*Millisecond), leaseEnd(Time(5*Second), 10*Second))
	require.Positive(t, leaseEnd(0, MinTTL))
	require.Equal(t, Never, Time(5).add(Forever))
	require.Equal(t, Never, (Never - 1).add(1))
	require.Equal(t, Time(7), Time(5).add(2))

	one, three := Config{Nodes: make([]string, 1)}, Config{Nodes: make([]string, 3)}
	for _, test := range []struct{ ttl, one, three Duration }{
		{MinTTL, MinTTL / 3, 10 * Millisecond},
		{Second, Second / 3, 100 * Millisecond},
		{10 * Second, 2 * Second, 250 * Millisecond},
		{MaxTTL, 2 * Second, 250 * Millisecond},
	} {
		require.Equal(t, test.one, one.nodeTimeout(test.ttl))
		require.Equal(t, test.three, three.nodeTimeout(test.ttl))
	}
	require.Equal(t, 600*Second, fenceTTL(10*Second))
	require.Equal(t, 10*MaxTTL, fenceTTL(MaxTTL))
}

func TestJitter(t *testing.T) {
	const low, high = 50, 59
	seen := map[Duration]int{}
	for seed := range 200 {
		h := &hold{seed: [16]byte{byte(seed)}}
		for h.attempts = 1; h.attempts <= 5; h.attempts++ {
			x := h.jitter(low, high)
			require.GreaterOrEqual(t, x, Duration(low))
			require.LessOrEqual(t, x, Duration(high))
			require.Equal(t, x, h.jitter(low, high), "the same seed and attempt")
			seen[x]++
		}
	}
	for x := Duration(low); x <= high; x++ {
		require.InDelta(t, 100, seen[x], 50, "%d of 1000 draws out of 10", x)
	}
	require.Equal(t, Duration(7), (&hold{}).jitter(7, 7))
}
