package script_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// The simulation, a real server and miniredis give the same replies to the same random calls, and publish the same.
func TestThreeServersAgree(t *testing.T) {
	real := start(t)
	seen := map[string]int{}
	realEar := listen(t, real.Client())
	for seed := range uint64(40) {
		mini, embeddedServer := embedded(t, time.Now())
		simulation := simulate(func() int64 { return time.Now().UnixMicro() })
		real.Do("FLUSHALL")
		real.Do("SCRIPT", "FLUSH")
		miniEar := listen(t, embeddedServer.client)
		w := &writer{
			Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Now, clocked: seed%2 == 0,
			ttl: func(n int) int { return 60_000 * n }, lives: []string{"3000", "3000", "60000", "-1000"},
		}
		for i := range 150 {
			command := w.command()
			mini.SetTime(time.Now())
			want := remote{client: real.Client()}.do(command)
			requireNear(t, want, simulation.do(command), "seed %d, command %d, the simulation: %q", seed, i, shown(command))
			requireNear(t, want, embeddedServer.do(command), "seed %d, command %d, miniredis: %q", seed, i, shown(command))
			seen[outcome(command, want)]++
		}
		require.Equal(t, real.Keys(), simulation.Keys(), "seed %d", seed)
		require.Equal(t, real.Keys(), mini.Keys(), "seed %d", seed)
		messages := realEar.heard()
		requireSameMessages(t, messages, simulation.heard(), "seed %d, the simulation", seed)
		requireSameMessages(t, messages, miniEar.heard(), "seed %d, miniredis", seed)
		seen["messages"] += len(messages)
		mini.Close()
	}
	for _, outcome := range []string{
		"mutex_acquire 1", "mutex_acquire 0 turn 0", "mutex_acquire 0 turn 1", "mutex_acquire 0 turn 2", "mutex_acquire 3",
		"mutex_beat 1", "mutex_beat 0 turn 0", "mutex_beat 0 turn 1", "mutex_beat 0 turn 2", "mutex_beat 2", "mutex_beat 3",
		"mutex_release 0", "mutex_release 1", "mutex_undo 1", "mutex_force 1", "mutex_inspect 1", "mutex_inspect 2", "messages",
	} {
		require.Greater(t, seen[outcome], 9, "%s was hardly tried", outcome)
	}
}

// outcome names a script and what came of it.
func outcome(command []string, reply string) string {
	name := shown(command)[1]
	numbers, _ := values(reply)
	if (len(numbers) == 3 || len(numbers) == 5) && numbers[0] == script.No {
		return name + " 0 turn " + strconv.FormatInt(numbers[2], 10)
	}
	if strings.HasPrefix(reply, "[") {
		return name + " " + strconv.FormatInt(numbers[0], 10)
	}
	return name + " " + reply
}

// requireSameMessages compares them but for what depends on time: how long the places were not heard of, and fencing tokens.
func requireSameMessages(t *testing.T, want, got []string, format string, args ...any) {
	t.Helper()
	timeless := func(messages []string) (list []string) {
		for _, m := range messages {
			fields := strings.Fields(m)
			if end := len(fields); end > 5 { // a hand-over: ... elapsed, fencing token, key
				fields[end-3] = "some"
				if fields[end-2] != "0" {
					fields[end-2] = "some"
				}
			}
			list = append(list, strings.Join(fields, " "))
		}
		return list
	}
	require.Equal(t, timeless(want), timeless(got), append([]any{format}, args...)...)
}

// On virtual time, where keys expire, the simulation and miniredis agree to the microsecond.
func TestExpiryAgrees(t *testing.T) {
	for seed := range uint64(60) {
		now := time.UnixMilli(1_700_000_000_000)
		clock := func() time.Time { return now }
		mini, embeddedServer := embedded(t, now)
		simulation := simulate(func() int64 { return now.UnixMicro() })
		ear := listen(t, embeddedServer.client)
		// Time goes by tens of milliseconds, and no ttl is one: nothing is looked at in its last millisecond, which
		// a key of miniredis does not see.
		w := &writer{
			Rand: rand.New(rand.NewPCG(seed, 2)), now: clock, clocked: true,
			ttl: func(n int) int { return 20*n + 5 }, lives: []string{"60", "100", "3000", "9000"},
		}
		for i := range 150 {
			now = now.Add(time.Duration(w.IntN(4)) * 10 * time.Millisecond)
			if w.IntN(40) == 0 {
				now = now.Add(time.Duration(w.IntN(300)) * 1001 * time.Millisecond)
			}
			mini.SetTime(now)
			command := w.command()
			require.Equal(t, embeddedServer.do(command), simulation.do(command), "seed %d, command %d: %q", seed, i, shown(command))
		}
		require.Equal(t, mini.Keys(), simulation.Keys(), "seed %d", seed)
		require.Equal(t, ear.heard(), simulation.heard(), "seed %d", seed)
		mini.Close()
	}
}

// mutexScripts are those that the simulation knows.
var mutexScripts = script.Mutex.All()

// writer makes random commands.
type writer struct {
	*rand.Rand
	now     func() time.Time
	clocked bool            // proposals of fencing tokens may be left to the server's clock
	ttl     func(n int) int // in milliseconds, n from 1
	lives   []string        // of places, in milliseconds
}

func pick(w *writer, texts ...string) string { return texts[w.IntN(len(texts))] }

var foreign = "another library's value"

func (w *writer) token() string {
	return pick(w, mine, other, "rl1:CCCCCCCCCCCCCCCCCCCCCC:", "rl1:DDDDDDDDDDDDDDDDDDDDDD:", foreign)
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
		return []string{"DEL", pick(w, lock, lock, fence, queue, places)}
	case 2:
		return []string{"SET", lock, w.token()}
	case 3:
		return []string{"SET", fence, pick(w, w.number(), "junk", "0", "12"), "PX", w.someTTL()}
	case 4:
		return []string{"DEL", lock}
	case 5:
		return []string{"LIST", pick(w, lock+"-list", lock+"-list", fence+"-list", queue+"-list", places+"-list")}
	}
	s := mutexScripts[w.IntN(len(mutexScripts))]
	if w.IntN(2) == 0 {
		s = []*script.Script{script.MutexAcquire, script.MutexAcquire, script.MutexBeat}[w.IntN(3)]
	}
	keys, args := w.arguments(s)
	command := []string{"EVALSHA", s.SHA, strconv.Itoa(len(keys))}
	if w.IntN(3) > 0 {
		command = []string{"EVAL", s.Source, strconv.Itoa(len(keys))}
	}
	return slices.Concat(command, keys, args)
}

func (w *writer) arguments(s *script.Script) (keys, args []string) {
	keepTTL := strconv.Itoa(10 * w.ttl(1+w.IntN(9)))
	queued := s.Queues && (w.IntN(3) > 0 || s == script.MutexBeat || s == script.MutexInspect)
	if queued {
		keys = all()
		keepTTL = pick(w, keepTTL, keepTTL, "0")
	} else {
		keys = both()[:1+w.IntN(2)]
	}
	if i := w.IntN(6 * len(keys)); i < len(keys) {
		keys[i] += "-list"
	}
	client, sent, life := pick(w, "c1", "c2 of many", ""), strconv.Itoa(w.IntN(1000)), pick(w, w.lives...)
	switch s {
	case script.MutexAcquire:
		proposed := w.number()
		if w.clocked && w.IntN(2) == 0 {
			proposed = pick(w, "", "1", strconv.FormatInt(w.now().Add(time.Hour).UnixMicro(), 10))
		}
		args = []string{w.token(), w.someTTL(), keepTTL, proposed}
		if queued {
			args = append(args, client, sent, life)
		}
		for range w.IntN(3) {
			args = append(args, w.token())
		}
		return keys, args
	case script.MutexBeat:
		return keys, []string{w.token(), w.someTTL(), keepTTL, client, sent, life}
	case script.MutexRaise:
		return both(), []string{w.token(), w.number(), keepTTL}
	case script.MutexRenew:
		return keys, []string{w.token(), w.someTTL(), keepTTL}
	case script.MutexRegrant:
		return keys, []string{w.token(), w.someTTL(), w.number(), keepTTL}
	case script.MutexInspect:
		return keys, nil
	case script.MutexForce:
		return keys, []string{script.Digest(pick(w, "AAAAAAAAAAAAAAAAAAAAAA", "CCCCCCCCCCCCCCCCCCCCCC", foreign, "nobody"))}
	}
	return keys, []string{w.token()}
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
		case n > 1000, i > 2 && i == len(wantNumbers)-1: // ms that are left, or that the first has waited
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
