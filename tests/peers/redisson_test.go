package peers_test

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// redissons are the versions in lib.sh: before its unlock kept what came of it, the last 3, and 4.
var redissons = []string{"3.17.0", "3.52.0", "4.7.0"}

const (
	hour     = time.Hour // a ttl that no test waits for
	watchdog = "600"     // ms: the lease that Redisson renews by itself
)

// A bout is a lock that ours and Redisson's want.
type bout struct {
	server *testredis.Server
	ours   owner
	theirs thread
	name   string
}

// thread is an owner for Redisson: a thread of a client.
type thread struct {
	player
	name, lock string
}

// TestRedisson lets our reentrant lock and Redisson's RLock hold the same locks.
func TestRedisson(t *testing.T) {
	server, cluster := testredis.StartN(t, 1)[0], startCluster(t)
	for _, version := range redissons {
		t.Run(version, func(t *testing.T) {
			driver := drivers.Foreign("redisson-"+version, redisson(t, version)).Start(t)
			alone := newBouts(t, driver, server)
			alone.run(t, "we keep them out", weKeepThemOut)
			alone.run(t, "they keep us out", theyKeepUsOut)
			alone.run(t, "they wait for us", theyWaitForUs)
			alone.run(t, "they wait for the dead", theyWaitForTheDead)
			alone.run(t, "we wait for them", weWaitForThem)
			alone.run(t, "what was theirs is ours", theirsIsOurs)
			alone.run(t, "what was ours is theirs", oursIsTheirs)
			alone.run(t, "by force", byForce)
			alone.run(t, "other kinds", otherKinds)
			alone.run(t, "under load", contend)
			// There Redisson listens to the shard since 3.22.
			newBouts(t, driver, cluster, "cluster", "true").run(t, "they wait for us on a cluster", theyWaitForUs)
		})
	}
}

// startCluster starts a cluster of one server.
func startCluster(t *testing.T) *testredis.Server {
	t.Helper()
	s := testredis.Start(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	s.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	require.Eventually(t, func() bool { return strings.Contains(s.Do("CLUSTER", "INFO").(string), "cluster_state:ok") }, patience, time.Millisecond)
	return s
}

// bouts are a server, and a client of Redisson's.
type bouts struct {
	server *testredis.Server
	them   player
}

func newBouts(t *testing.T, driver *drivers.Driver, server *testredis.Server, options ...string) *bouts {
	t.Helper()
	them := newPlayer(t, driver)
	them.expect(t, "OK", "open", append(options, "node", server.Addr, "watchdog_ms", watchdog)...)
	t.Cleanup(func() { them.expect(t, "OK", "close") })
	return &bouts{server, them}
}

func (b *bouts) run(t *testing.T, name string, test func(*bout, *testing.T)) {
	t.Run(name, func(t *testing.T) {
		lock := strings.NewReplacer("{", "", "}", "").Replace(t.Name())
		test(&bout{server: b.server, ours: newOwner(b.server), theirs: newThread(b.them, lock), name: lock}, t)
	})
}

// redisson gives what runs the driver with one version.
func redisson(t *testing.T, version string) func() *exec.Cmd {
	t.Helper()
	folder := need(t, filepath.Join(buildFolder(t), "peers", "java", version))
	if _, err := exec.LookPath("java"); err != nil {
		drivers.Missing(t, "java (./build.sh peers installs it)")
	}
	return func() *exec.Cmd { return exec.Command("java", "-cp", folder+":"+folder+"/*", "Driver") }
}

func newThread(p player, lock string) thread { return thread{p, newName(), lock} }

func (h thread) fields(more []string) []string {
	return append(more, "owner", h.name, "name", h.lock)
}

func (h thread) send(verb string, more ...string) *drivers.Call {
	return h.player.send(verb, h.fields(more)...)
}

func (h thread) expect(t *testing.T, status, verb string, more ...string) *line.Line {
	t.Helper()
	return h.player.expect(t, status, verb, h.fields(more)...)
}

// requireHeld checks what Redisson says of the lock.
func (h thread) requireHeld(t *testing.T, locked bool, count int) {
	t.Helper()
	reply := h.expect(t, "OK", "inspect")
	require.Equal(t, strconv.FormatBool(locked), reply.Get("locked"))
	require.Equal(t, strconv.FormatBool(count > 0), reply.Get("held"))
	require.Equal(t, strconv.Itoa(count), reply.Get("count"))
}

func (b *bout) try(t *testing.T) *entry {
	t.Helper()
	e, refused := b.ours.try(t, b.name)
	require.Nil(t, refused)
	return e
}

func (b *bout) requireRefused(t *testing.T, code int64) {
	t.Helper()
	_, refused := b.ours.try(t, b.name)
	require.NotNil(t, refused)
	require.Equal(t, code, refused[0])
}

func weKeepThemOut(b *bout, t *testing.T) {
	outer, inner := b.try(t), b.try(t)
	require.EqualValues(t, 2, inner.entries)
	require.Equal(t, outer.fence, inner.fence)
	for _, e := range []*entry{inner, outer} {
		b.theirs.expect(t, "HELD", "try_acquire", "ttl_ms", ttl)
		b.theirs.expect(t, "HELD", "try_acquire")
		b.theirs.expect(t, "TIMEOUT", "acquire", "wait_ms", "30")
		b.theirs.expect(t, "NOT_HELD", "release")
		b.theirs.requireHeld(t, true, 0)
		require.EqualValues(t, script.Yes, e.release(t))
	}
	b.theirs.requireHeld(t, false, 0)
	b.theirs.expect(t, "OK", "try_acquire")
	b.theirs.expect(t, "OK", "release")
}

func theyKeepUsOut(b *bout, t *testing.T) {
	other := newThread(b.theirs.player, b.name)
	for range 2 {
		b.theirs.expect(t, "OK", "try_acquire", "ttl_ms", ttl)
	}
	for count := 2; count > 0; count-- {
		b.requireRefused(t, script.No)
		b.theirs.requireHeld(t, true, count)
		other.expect(t, "HELD", "try_acquire")
		b.theirs.expect(t, "OK", "release")
	}
	b.try(t).release(t)
}

// asleep lets a thread of theirs wait without a limit, until it has seen how long ours lives after it began to listen: it sleeps for so long.
func (h thread) asleep(t *testing.T, s *testredis.Server) *drivers.Call {
	t.Helper()
	asked := func() int64 { return commands(t, s, "pttl") }
	channel := "redisson_lock__channel:{" + h.lock + "}"
	listens := func() bool {
		all, shard := s.Do("PUBSUB", "NUMSUB", channel).([]any), s.Do("PUBSUB", "SHARDNUMSUB", channel).([]any)
		return all[1].(int64)+shard[1].(int64) > 0
	}
	require.Eventually(t, func() bool { return !listens() }, patience, time.Millisecond, "it listens from the last time on")
	before := asked()
	call := h.send("acquire")
	// It asks, listens, and asks again.
	require.Eventually(t, func() bool { return listens() && asked() >= before+2 }, patience, time.Millisecond)
	return call
}

// commands is how often a server was given a command, by scripts too.
func commands(t *testing.T, s *testredis.Server, name string) int64 {
	t.Helper()
	found := regexp.MustCompile(`cmdstat_` + name + `:calls=(\d+)`).FindStringSubmatch(s.Do("INFO", "commandstats").(string))
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	require.NoError(t, err)
	return n
}

// theyWaitForUs: every end of a hold of ours wakes them. Without that they would sleep for an hour.
func theyWaitForUs(b *bout, t *testing.T) {
	for name, end := range map[string]func(*entry){
		"release": func(e *entry) { require.EqualValues(t, script.Yes, e.release(t)) },
		"undo":    func(e *entry) { require.EqualValues(t, script.Yes, e.undo(t)) },
		"force": func(e *entry) {
			digest := script.Digest(e.token[4:26])
			require.EqualValues(t, script.Yes, b.ours.run(t, script.Reentrant.Force, b.name, digest)[0])
		},
	} {
		for range handOffs {
			e := b.try(t)
			require.EqualValues(t, script.Yes, e.renew(t, hour))
			waiting := b.theirs.asleep(t, b.server)
			ending := time.Now()
			end(e)
			b.theirs.answer(t, "OK", waiting)
			t.Logf("%s: they had it %v after", name, time.Since(ending))
			b.theirs.requireHeld(t, true, 1)
			b.requireRefused(t, script.No)
			b.theirs.expect(t, "OK", "release")
		}
	}
}

// theyWaitForTheDead: what we hand over to one who does not take it they have when that ends, not when they were told.
func theyWaitForTheDead(b *bout, t *testing.T) {
	e := b.try(t)
	require.EqualValues(t, script.Yes, e.renew(t, hour))
	_, refused := newOwner(b.server).ask(t, b.name, "3600000", "dead")
	require.NotNil(t, refused)
	waiting := b.theirs.asleep(t, b.server)
	require.EqualValues(t, script.Yes, e.release(t))
	b.theirs.answer(t, "OK", waiting)
	b.theirs.expect(t, "OK", "release")
}

// weWaitForThem: the first in our queue polls.
func weWaitForThem(b *bout, t *testing.T) {
	var took []time.Duration
	for range handOffs {
		b.theirs.expect(t, "OK", "try_acquire", "ttl_ms", "3600000")
		e, refused := b.ours.ask(t, b.name, ttl, "client")
		require.NotNil(t, refused)
		releasing := time.Now()
		released := b.theirs.send("release")
		e.wait(t, ttl)
		took = append(took, time.Since(releasing))
		b.theirs.answer(t, "OK", released)
		b.theirs.expect(t, "HELD", "try_acquire")
		require.EqualValues(t, script.Yes, e.release(t))
	}
	slices.Sort(took)
	t.Logf("we had it %v after the release", took)
	assert.Less(t, took[handOffs/2], time.Second)
}

// theirsIsOurs: what Redisson renews, and has lost, is ours. It renews all locks of a client in one script.
func theirsIsOurs(b *bout, t *testing.T) {
	other := newThread(b.theirs.player, b.name+" too")
	b.theirs.expect(t, "OK", "try_acquire")
	other.expect(t, "OK", "try_acquire")
	b.untilTheyRenew(t, other.lock)
	b.requireRefused(t, script.No)

	b.server.Do("DEL", b.name)
	e := b.try(t)
	before := b.server.Do("DUMP", b.name)
	for range 3 {
		b.untilTheyRenew(t, other.lock)
	}
	b.theirs.expect(t, "NOT_HELD", "release")
	require.Equal(t, before, b.server.Do("DUMP", b.name))
	require.LessOrEqual(t, b.server.Do("PTTL", b.name), int64(10_000))
	require.EqualValues(t, script.Yes, e.release(t))
	other.expect(t, "OK", "release")
}

// untilTheyRenew waits until Redisson's watchdog has lengthened a lease.
func (b *bout) untilTheyRenew(t *testing.T, lock string) {
	t.Helper()
	left := func() int64 { return b.server.Do("PTTL", lock).(int64) }
	last := left()
	require.Eventually(t, func() bool {
		now := left()
		renewed := now > last
		last = now
		return renewed
	}, patience, time.Millisecond)
}

func oursIsTheirs(b *bout, t *testing.T) {
	e := b.try(t)
	b.server.Do("DEL", b.name)
	b.theirs.expect(t, "OK", "try_acquire", "ttl_ms", ttl)
	before := b.server.Do("DUMP", b.name)
	require.EqualValues(t, script.No, e.renew(t, hour))
	require.EqualValues(t, script.No, e.release(t))
	require.EqualValues(t, script.Gone, e.undo(t))
	require.Equal(t, before, b.server.Do("DUMP", b.name))
	require.LessOrEqual(t, b.server.Do("PTTL", b.name), int64(10_000))
	b.theirs.expect(t, "OK", "release")
}

func byForce(b *bout, t *testing.T) {
	outer, inner := b.try(t), b.try(t)
	b.theirs.expect(t, "OK", "force_release")
	require.EqualValues(t, script.Gone, inner.renew(t, hour))
	require.EqualValues(t, script.Gone, outer.release(t))

	b.theirs.expect(t, "OK", "try_acquire", "ttl_ms", ttl)
	b.requireRefused(t, script.No)
	reply := b.ours.run(t, script.Reentrant.Inspect, b.name)
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f-]{36}:\d+$`), reply[1])
	require.Equal(t, []any{reply[1], int64(1)}, reply[6:])
	require.EqualValues(t, script.Yes, b.ours.run(t, script.Reentrant.Force, b.name, script.Digest(reply[1].(string)))[0])
	b.theirs.expect(t, "NOT_HELD", "release")
	b.try(t).release(t)
}

// otherKinds: spin and fair locks are as RLocks at the key. Its read-write lock is not a lock of this kind.
func otherKinds(b *bout, t *testing.T) {
	for _, kind := range []string{"spin", "fair"} {
		e := b.try(t)
		b.theirs.expect(t, "HELD", "try_acquire", "kind", kind)
		require.EqualValues(t, script.Yes, e.release(t))
		b.theirs.expect(t, "OK", "try_acquire", "kind", kind)
		b.requireRefused(t, script.No)
		b.theirs.expect(t, "OK", "release", "kind", kind)
	}
	for _, kind := range []string{"read", "write"} {
		b.theirs.expect(t, "OK", "try_acquire", "kind", kind)
		b.requireRefused(t, script.WrongKind)
		b.theirs.expect(t, "OK", "release", "kind", kind)
	}
	b.try(t).release(t)
}

// contend lets three owners of ours and three threads of theirs fight over one lock.
func contend(b *bout, t *testing.T) {
	var w witness
	var all sync.WaitGroup
	end := time.Now().Add(loadTime)
	for range 3 {
		all.Go(func() {
			for o := newOwner(b.server); time.Now().Before(end); time.Sleep(rand.N(30 * time.Millisecond)) {
				outer := o.acquire(t, b.name, "1000")
				inner := o.acquire(t, b.name, "1000")
				w.visit(1)
				w.ourTurns.Add(1)
				assert.EqualValues(t, script.Yes, outer.release(t))
				assert.EqualValues(t, script.Yes, inner.release(t))
			}
		})
		h := newThread(b.theirs.player, b.name)
		all.Go(func() {
			for time.Now().Before(end) {
				h.expect(t, "OK", "acquire", "wait_ms", "20000", "ttl_ms", "1000")
				h.expect(t, "OK", "acquire", "ttl_ms", "1000")
				w.visit(2)
				w.theirTurns.Add(1)
				h.expect(t, "OK", "release")
				h.expect(t, "OK", "release")
				time.Sleep(rand.N(30 * time.Millisecond))
			}
		})
	}
	all.Wait()
	w.check(t)
}
