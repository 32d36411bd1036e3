package script_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/core/sim"
)

// The simulation, a real server and miniredis give the same replies to the same random calls.
func TestThreeServersAgree(t *testing.T) {
	real := start(t)
	for seed := range uint64(40) {
		mini, embeddedServer := embedded(t, time.Now())
		simulation := simulated{sim.NewServer(func() int64 { return time.Now().UnixMicro() })}
		real.Do("FLUSHALL")
		real.Do("SCRIPT", "FLUSH")
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Now, clocked: seed%2 == 0, ttl: func(n int) int { return 60_000 * n }}
		for i := range 120 {
			command := w.command()
			mini.SetTime(time.Now())
			want := remote{client: real.Client()}.do(command)
			requireNear(t, want, simulation.do(command), "seed %d, command %d, the simulation: %q", seed, i, shown(command))
			requireNear(t, want, embeddedServer.do(command), "seed %d, command %d, miniredis: %q", seed, i, shown(command))
		}
		require.Equal(t, real.Keys(), simulation.Keys(), "seed %d", seed)
		require.Equal(t, real.Keys(), mini.Keys(), "seed %d", seed)
		mini.Close()
	}
}

// On virtual time, where keys expire, the simulation and miniredis agree to the microsecond.
func TestExpiryAgrees(t *testing.T) {
	for seed := range uint64(60) {
		now := time.UnixMilli(1_700_000_000_000)
		clock := func() time.Time { return now }
		mini, embeddedServer := embedded(t, now)
		simulation := simulated{sim.NewServer(func() int64 { return now.UnixMicro() })}
		// Time goes by tens of milliseconds, and no ttl is one: nothing is looked at in its last millisecond, which
		// a key of miniredis does not see.
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 2)), now: clock, clocked: true, ttl: func(n int) int { return 20*n + 5 }}
		for i := range 150 {
			now = now.Add(time.Duration(w.IntN(4)) * 10 * time.Millisecond)
			if w.IntN(40) == 0 {
				now = now.Add(time.Duration(w.IntN(300)) * time.Second)
			}
			mini.SetTime(now)
			command := w.command()
			require.Equal(t, embeddedServer.do(command), simulation.do(command), "seed %d, command %d: %q", seed, i, shown(command))
		}
		require.Equal(t, mini.Keys(), simulation.Keys(), "seed %d", seed)
		mini.Close()
	}
}

// writer makes random commands.
type writer struct {
	*rand.Rand
	now     func() time.Time
	clocked bool            // proposals of fencing tokens may be left to the server's clock
	ttl     func(n int) int // in milliseconds, n from 1
}

func pick(w *writer, texts ...string) string { return texts[w.IntN(len(texts))] }

var foreign = "another library's value"

func (w *writer) token() string {
	return pick(w, mine, other, "rl1:CCCCCCCCCCCCCCCCCCCCCC:", foreign)
}

func (w *writer) number() string {
	return strconv.FormatInt(w.now().UnixMicro()+w.Int64N(2_000_000)-1_000_000, 10)
}

func (w *writer) someTTL() string { return strconv.Itoa(w.ttl(1 + w.IntN(9))) }

func (w *writer) command() []string {
	switch w.IntN(30) {
	case 0:
		return []string{"SCRIPT", "FLUSH"}
	case 1:
		return []string{"DEL", pick(w, lock, lock, fence)}
	case 2:
		return []string{"SET", lock, w.token()}
	case 3:
		return []string{"SET", fence, pick(w, w.number(), "junk", "0", "12"), "PX", w.someTTL()}
	case 4:
		return []string{"DEL", lock}
	case 5:
		return []string{"LIST", pick(w, lock+"-list", lock+"-list", fence+"-list")}
	}
	s := script.All[w.IntN(len(script.All))]
	keys, args := w.arguments(s)
	command := []string{"EVALSHA", s.SHA, strconv.Itoa(len(keys))}
	if w.IntN(3) == 0 {
		command = []string{"EVAL", s.Source, strconv.Itoa(len(keys))}
	}
	return slices.Concat(command, keys, args)
}

func (w *writer) arguments(s *script.Script) (keys, args []string) {
	keys = []string{lock, fence}
	switch w.IntN(12) {
	case 0:
		keys[0] += "-list"
	case 1:
		keys[1] += "-list"
	}
	keepTTL := strconv.Itoa(10 * w.ttl(1+w.IntN(9)))
	switch s {
	case script.MutexAcquire:
		proposed := w.number()
		if w.clocked && w.IntN(2) == 0 {
			proposed = pick(w, "", "1", strconv.FormatInt(w.now().Add(time.Hour).UnixMicro(), 10))
		}
		args = []string{w.token(), w.someTTL(), keepTTL, proposed}
		for range w.IntN(3) {
			args = append(args, w.token())
		}
		return keys[:1+w.IntN(2)], args
	case script.MutexRaise:
		return keys, []string{w.token(), w.number(), keepTTL}
	case script.MutexRenew:
		return keys[:1+w.IntN(2)], []string{w.token(), w.someTTL(), keepTTL}
	case script.MutexRegrant:
		return keys[:1+w.IntN(2)], []string{w.token(), w.someTTL(), w.number(), keepTTL}
	case script.MutexInspect:
		return keys, nil
	case script.MutexForce:
		return keys[:1], []string{script.Digest(pick(w, "AAAAAAAAAAAAAAAAAAAAAA", "CCCCCCCCCCCCCCCCCCCCCC", foreign, "nobody"))}
	}
	return keys[:1], []string{w.token()}
}

// requireNear compares replies: small numbers are codes, those of ttls and fencing tokens may differ by what
// passes between two calls.
func requireNear(t *testing.T, want, got, format string, args ...any) {
	t.Helper()
	wantNumbers, wantText := values(want)
	gotNumbers, gotText := values(got)
	require.Equal(t, wantText, gotText, append([]any{format}, args...)...)
	require.Len(t, gotNumbers, len(wantNumbers), append([]any{format}, args...)...)
	for i, n := range wantNumbers {
		switch leeway := 5000.0; {
		case n > 1_000_000_000_000_000: // µs since 1970
			require.InDelta(t, n, gotNumbers[i], 1000*leeway, append([]any{format}, args...)...)
		case n > 1000: // ms that are left
			require.InDelta(t, n, gotNumbers[i], leeway, append([]any{format}, args...)...)
		default:
			require.Equal(t, n, gotNumbers[i], append([]any{format}, args...)...)
		}
	}
}

// shown names a script instead of quoting it.
func shown(command []string) []string {
	short := slices.Clone(command)
	for _, s := range script.All {
		if len(short) > 1 && (short[1] == s.Source || short[1] == s.SHA) {
			short[1] = s.Name
		}
	}
	return short
}
