// Package peers_test holds one lock by libredlock and by other libraries that have the same layout: a string with the
// holder's token, which expires.
//
// Each library is held by a program in its own language (go/driver, python/driver.py, node/driver.js) that speaks some
// verbs of tests/drivers/README.md: open (with library=), acquire, try_acquire, renew, release, close. Beside OK it
// answers HELD, TIMEOUT and NOT_HELD, or FAILED for what should not happen. The versions are pinned by go/go.sum,
// python/requirements.txt, node/package-lock.json and java/jars.sha256; ./build.sh peers installs them and runs this.
//
// Redisson's RLock (java/Driver.java) is another kind: a hash, as our reentrant lock is. It meets that kind's scripts.
package peers_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// A peer is another library.
type peer struct {
	library string
	program string // in which language it is
	prefix  string // what it puts before the names of locks
	quorum  bool   // whether it knows Redlock
	// quiet is for a library whose release does not say that the lock was not its own any more.
	quiet bool
}

var peers = []peer{
	{library: "redsync", program: "go", quorum: true},
	{library: "redislock", program: "go"},
	{library: "redis-py", program: "python"},
	{library: "node-redlock", program: "node", quorum: true},
	{library: "redis-semaphore", program: "node", prefix: "mutex:", quiet: true},
}

// languages are those in which we are.
var languages = []string{"go", "python", "node"}

const (
	ttl      = "10000"          // ms, where it does not matter
	patience = 20 * time.Second // for what must happen
)

func TestPeers(t *testing.T) {
	ours, theirs := map[string]*drivers.Driver{}, map[string]*drivers.Driver{}
	for _, language := range languages {
		ours[language] = drivers.Start(t, language)
		theirs[language] = drivers.Foreign("peer-"+language, program(t, language)).Start(t)
	}
	one, three := testredis.StartN(t, 1), testredis.StartN(t, 3)
	for _, p := range peers {
		for _, servers := range [][]*testredis.Server{one, three} {
			if len(servers) > 1 && !p.quorum {
				continue
			}
			t.Run(fmt.Sprintf("%s,nodes=%d", p.library, len(servers)), func(t *testing.T) {
				matches := newMatches(t, p, servers, ours, theirs[p.program])
				t.Run("under load", func(t *testing.T) { underLoad(t, matches) })
				t.Run("they wait for us", func(t *testing.T) { theyWait(t, matches) })
				for _, m := range matches {
					t.Run(m.us.driver.Name, func(t *testing.T) {
						t.Run("we wait for them", m.weWait)
						t.Run("what was ours is theirs", m.oursIsTheirs)
						t.Run("what was theirs is ours", m.theirsIsOurs)
					})
				}
			})
		}
	}
}

// program gives what runs the peers of a language. Without what they need the test is skipped, or fails if REDLOCK_STRICT is 1.
func program(t *testing.T, language string) func() *exec.Cmd {
	t.Helper()
	switch language {
	case "go":
		binary := filepath.Join(t.TempDir(), "peer-go")
		compile := exec.Command("go", "build", "-o", binary, "./driver")
		compile.Dir = "go"
		said, err := compile.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return func() *exec.Cmd { return exec.Command(binary) }
	case "python":
		interpreter := need(t, filepath.Join(buildFolder(t), "peers", "venv", "bin", "python"))
		return func() *exec.Cmd { return exec.Command(interpreter, "-W", "error", "python/driver.py") }
	}
	need(t, "node/node_modules")
	return func() *exec.Cmd { return exec.Command(cmp.Or(os.Getenv("REDLOCK_NODE"), "node"), "node/driver.js") }
}

// buildFolder is where ./build.sh peers installs.
func buildFolder(t *testing.T) string {
	t.Helper()
	build, err := filepath.Abs(cmp.Or(os.Getenv("REDLOCK_BUILD"), "../../build"))
	require.NoError(t, err)
	return build
}

func need(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		drivers.Missing(t, "%s (./build.sh peers makes it)", path)
	}
	return path
}

// A match is one of our clients and one of a peer's, who want the same locks.
type match struct {
	peer     peer
	servers  []*testredis.Server
	us, them player
}

// newMatches opens clients: a match for each of our languages.
func newMatches(t *testing.T, p peer, servers []*testredis.Server, ours map[string]*drivers.Driver, theirs *drivers.Driver) []*match {
	t.Helper()
	var matches []*match
	for _, language := range languages {
		m := &match{peer: p, servers: servers, us: newPlayer(t, ours[language]), them: newPlayer(t, theirs)}
		us, them := []string{"node_timeout_ms", "2000"}, []string{"library", p.library}
		for _, s := range servers {
			us, them = append(us, "node", s.URL), append(them, "node", s.Addr)
		}
		m.us.expect(t, "OK", "open", us...)
		m.them.expect(t, "OK", "open", them...)
		t.Cleanup(func() {
			m.us.expect(t, "OK", "close")
			m.them.expect(t, "OK", "close")
		})
		matches = append(matches, m)
	}
	return matches
}

// name makes the name of a lock as both know it.
func (m *match) name(t *testing.T) string { return m.peer.prefix + t.Name() }

// A player is one client of a driver.
type player struct {
	driver *drivers.Driver
	client string
}

// unique makes names of clients and holds, of which drivers never see one twice.
var unique atomic.Int64

func newName() string { return fmt.Sprint(unique.Add(1)) }

func newPlayer(t *testing.T, driver *drivers.Driver) player {
	t.Helper()
	return player{driver, newName()}
}

// send sends a request with keys and values.
func (p player) send(verb string, fields ...string) *drivers.Call {
	return p.driver.Send(verb, p.fields(fields)...)
}

func (p player) fields(pairs []string) []line.Field {
	fields := []line.Field{{Key: "client", Value: p.client}}
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, line.Field{Key: pairs[i], Value: pairs[i+1]})
	}
	return fields
}

// answer waits for the reply to a request, which must be one of these, separated by commas.
func (p player) answer(t *testing.T, statuses string, call *drivers.Call) *line.Line {
	t.Helper()
	reply, err := p.driver.Await(call, patience)
	require.NoError(t, err)
	require.Contains(t, strings.Split(statuses, ","), reply.Word, "%s of %s: %s", call.Verb, p.driver.Name, reply)
	return reply
}

func (p player) expect(t *testing.T, statuses, verb string, fields ...string) *line.Line {
	t.Helper()
	return p.answer(t, statuses, p.send(verb, fields...))
}

// acquire acquires a lock at once and gives the name of its hold.
func (p player) acquire(t *testing.T, name string, fields ...string) (held string, reply *line.Line) {
	t.Helper()
	held = newName()
	return held, p.expect(t, "OK", "try_acquire", append(fields, lock(held, name)...)...)
}

// lock is what every acquire says. What else a caller says goes before it, since the first value of a key counts.
func lock(held, name string) []string {
	return []string{"held", held, "kind", "mutex", "name", name, "ttl_ms", ttl}
}
