package script_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// several is a lock that several may hold, on a server of a test's own. Holders have short names, as "a2": the token is made
// of it, and the owner is its first letter. What is wanted is a mode of a read-write lock ("r", "w"), or the permits and the slot of a
// semaphore ("3", "3/1").
type several struct {
	*fixture
	kind   string
	family *script.Family
	queued bool // one deployment, with a queue
}

// Where a lock is: with a queue, or without.
const oneNode, manyNodes = true, false

func startKind(t *testing.T, kind string, isQueued bool, args ...string) *several {
	family := map[string]*script.Family{"rwlock": &script.RWLock, "semaphore": &script.Semaphore}[kind]
	return &several{start(t, args...), kind, family, isQueued}
}

func sideKey(kind, role string) string { return "{orders}:redlock:" + kind + ":" + role + ":orders" }

func (s *several) key(role string) string { return sideKey(s.kind, role) }

func keysOf(kind string, isQueued bool) []string {
	if isQueued {
		return []string{lock, sideKey(kind, "queue"), sideKey(kind, "places"), sideKey(kind, "fence")}
	}
	return []string{lock, sideKey(kind, "fence")}
}

// token is the token of a name.
func token(name string) string { return "rl1:" + name + strings.Repeat("-", 22-len(name)) + ":host" }

func digest(name string) string { return script.Digest(token(name)[4:26]) }

func wants(wanted, name string) []string {
	if wanted[0] == 'r' || wanted[0] == 'w' {
		return []string{wanted, name[:1]}
	}
	permits, slot, _ := strings.Cut(wanted, "/")
	return []string{permits, slot}
}

func (s *several) call(sc *script.Script, keys []string, args []string, more ...string) []any {
	s.t.Helper()
	return s.run(sc, keys, slices.Concat(args, more)...)
}

func (s *several) acquireArgs(wanted, name, ttl string, unresolved ...string) []string {
	args := []string{token(name), ttl, fenceTTL, ""}
	if s.queued {
		args = append(args, "client "+name, "1234", "3000")
	}
	args = append(args, wants(wanted, name)...)
	for _, name := range unresolved {
		args = append(args, token(name))
	}
	return args
}

func (s *several) keys() []string { return keysOf(s.kind, s.queued) }

func (s *several) acquire(wanted, name string, unresolved ...string) []any {
	s.t.Helper()
	return s.run(s.family.Acquire, s.keys(), s.acquireArgs(wanted, name, ttl, unresolved...)...)
}

// tryOnce acquires without a place in the queue.
func (s *several) tryOnce(wanted, name string) []any {
	s.t.Helper()
	args := s.acquireArgs(wanted, name, ttl)
	args[4] = ""
	return s.run(s.family.Acquire, s.keys(), args...)
}

func (s *several) beat(wanted, name string) []any {
	s.t.Helper()
	return s.call(s.family.Beat, s.keys(), []string{token(name), ttl, fenceTTL, "client " + name, "5678", "3000"}, wants(wanted, name)...)
}

func (s *several) renew(wanted, name, ttl string) []any {
	s.t.Helper()
	return s.call(s.family.Renew, keysOf(s.kind, false), []string{token(name), ttl, fenceTTL}, wants(wanted, name)...)
}

func (s *several) raise(wanted, name, to string) []any {
	s.t.Helper()
	return s.call(s.family.Raise, keysOf(s.kind, false), []string{token(name), to, fenceTTL}, wants(wanted, name)...)
}

func (s *several) regrant(wanted, name, fence string) []any {
	s.t.Helper()
	return s.call(s.family.Regrant, keysOf(s.kind, false), []string{token(name), ttl, fence, fenceTTL}, wants(wanted, name)...)
}

func (s *several) release(wanted, name string) []any {
	s.t.Helper()
	return s.call(s.family.Release, s.keys(), []string{token(name)}, wants(wanted, name)...)
}

func (s *several) undo(wanted, name string) []any {
	s.t.Helper()
	return s.call(s.family.Undo, s.keys(), []string{token(name)}, wants(wanted, name)...)
}

func (s *several) force(digest string) []any {
	s.t.Helper()
	return s.run(s.family.Force, s.keys(), digest)
}

func (s *several) inspect() []any {
	s.t.Helper()
	return s.run(s.family.Inspect, keysOf(s.kind, true))
}

// short is the name that a token is made of.
func short(token string) string { return strings.TrimRight(token[4:26], "-") }

// holders are the members without what is the same in all, as "r|a2" or "0|b", in the order of letters.
func (s *several) holders() []string {
	s.t.Helper()
	list := []string{}
	for _, member := range s.Do("ZRANGE", lock, 0, -1).([]any) {
		fields := strings.SplitN(member.(string), "|", 3)
		what := fields[0]
		if what == "s" {
			what = fields[1]
		}
		if fields[2] == "" {
			list = append(list, what)
			continue
		}
		list = append(list, what+"|"+short(fields[2]))
	}
	slices.Sort(list)
	return list
}

func (s *several) waiting() []string {
	s.t.Helper()
	names := []string{}
	for _, token := range s.Do("LRANGE", s.key("queue"), 0, -1).([]any) {
		names = append(names, short(token.(string)))
	}
	return names
}

// ends sets when a grant ends, from now; without a time it tells that.
func (s *several) ends(name string, set ...time.Duration) time.Duration {
	s.t.Helper()
	for _, member := range s.Do("ZRANGE", lock, 0, -1).([]any) {
		if !strings.HasSuffix(member.(string), "|"+token(name)) {
			continue
		}
		if len(set) > 0 {
			s.Do("ZADD", lock, s.micros()/1000+int(set[0].Milliseconds()), member)
		}
		score, err := s.Client().ZScore(context.Background(), lock, member.(string)).Result()
		require.NoError(s.t, err)
		return time.Duration(int(score)*1000-s.micros()) * time.Microsecond
	}
	s.t.Fatalf("%s holds nothing", name)
	return 0
}

func (s *several) endsIn(name string, want time.Duration) {
	s.t.Helper()
	require.InDelta(s.t, want, s.ends(name), float64(2*time.Second), "the lease of %s", name)
}

// dead lets places die.
func (s *several) dead(names ...string) {
	s.t.Helper()
	for _, name := range names {
		_, rest, _ := strings.Cut(s.Do("HGET", s.key("places"), token(name)).(string), " ")
		s.Do("HSET", s.key("places"), token(name), strconv.Itoa(s.micros()-1_000_000)+" "+rest)
	}
}

// told are the hand-overs among messages, as "b 1700000000000000", in their order.
func (s *several) told(e *ear) []string {
	s.t.Helper()
	list := []string{}
	for _, message := range e.heard() {
		fields := strings.Fields(message)
		require.Equal(s.t, []string{"redlock:wake:client", s.kind}, []string{fields[0], fields[2]}, message)
		name := short(fields[3])
		require.Equal(s.t, name, fields[1])
		require.Contains(s.t, []string{"1234", "5678"}, fields[4], "the client's time of sending")
		elapsed, err := strconv.Atoi(fields[5])
		require.NoError(s.t, err)
		require.InDelta(s.t, 0, elapsed, 2_000_000)
		require.Equal(s.t, lock, fields[len(fields)-1])
		list = append(list, name+" "+strings.Join(fields[6:len(fields)-1], " "))
	}
	return list
}

// leavesNothing checks that nothing is left over but the fence counter.
func (s *several) leavesNothing() {
	s.t.Helper()
	require.Equal(s.t, []string{s.key("fence")}, s.Keys())
}

func requireGranted(t *testing.T, reply []any) int {
	t.Helper()
	require.Equal(t, 1, reply[0], "%v", reply)
	return reply[1].(int)
}
