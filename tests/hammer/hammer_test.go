// Package hammer_test lets 200 clients in 20 processes of all languages fight over one lock.
//
// Two witnesses outside Redis tell whether it was ever held twice: when each holder began and ended, on the clock
// that all processes share, and a counter in a mapped file that is read, and written back plus one, under the lock only.
//
// REDLOCK_HAMMER=10s sets how long each fight lasts.
package hammer_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
	"github.com/libredlock/libredlock/tests/internal/testredis"
	"github.com/libredlock/libredlock/tests/runner"
)

const (
	processesPerDriver = 4
	clientsPerProcess  = 10
	name               = "hammer"
)

// names are the drivers that can hammer. The C driver that drains a queue calls the same core as the one that blocks.
var names = []string{"go", "c", "python", "python-async", "node"}

func duration(t *testing.T) time.Duration {
	text := cmp.Or(os.Getenv("REDLOCK_HAMMER"), "3s")
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "REDLOCK_HAMMER")
	return max(d.Round(time.Second), time.Second)
}

func TestHammer(t *testing.T) {
	var running []*drivers.Driver
	for _, driver := range names {
		launcher := drivers.PrepareProcess(t, driver)
		for range processesPerDriver {
			running = append(running, launcher.Start(t))
		}
	}
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("nodes=%d", nodes), func(t *testing.T) {
			servers := testredis.StartN(t, nodes)
			f := &fight{
				drivers: running, urls: testredis.URLs(servers), prefix: t.Name() + "/",
				counter: filepath.Join(t.TempDir(), "counter"), logs: t.TempDir(),
			}
			require.NoError(t, os.WriteFile(f.counter, make([]byte, 8), 0o600))
			f.open(t)
			f.run(t, duration(t))
			f.close(t)
			holds := f.holds(t)
			require.NoError(t, conflict(holds))
			f.requireCount(t, len(holds))
			requireOnlyTheFence(t, servers)
		})
	}
}

// fight is one run of all clients.
type fight struct {
	drivers []*drivers.Driver
	urls    []string
	prefix  string // of the clients' names
	counter string
	logs    string
}

// each sends a request for every client and waits for all replies.
func (f *fight) each(t *testing.T, limit time.Duration, verb string, fields func(client string) []line.Field,
	replied func(driver string, reply *line.Line),
) {
	t.Helper()
	type sent struct {
		driver *drivers.Driver
		call   *drivers.Call
	}
	var all []sent
	for i, driver := range f.drivers {
		for j := range clientsPerProcess {
			client := fmt.Sprintf("%s%d.%d", f.prefix, i, j)
			all = append(all, sent{driver, driver.Send(verb, append(fields(client), line.Field{Key: "client", Value: client})...)})
		}
	}
	for _, s := range all {
		reply, err := s.driver.Await(s.call, limit)
		require.NoError(t, err)
		require.Equal(t, "OK", reply.Word, "%s of %s: %s", verb, s.driver.Name, reply)
		if replied != nil {
			replied(s.driver.Name, reply)
		}
	}
}

func (f *fight) open(t *testing.T) {
	f.each(t, time.Minute, "open", func(string) []line.Field {
		// Patient, so that 20 processes on a small machine are slow and not unavailable.
		fields := []line.Field{{Key: "node_timeout_ms", Value: "5000"}}
		for _, url := range f.urls {
			fields = append(fields, line.Field{Key: "node", Value: url})
		}
		return fields
	}, nil)
}

func (f *fight) run(t *testing.T, d time.Duration) {
	grants := map[string]int64{}
	f.each(t, d+time.Minute, "hammer", func(client string) []line.Field {
		return []line.Field{
			{Key: "kind", Value: "mutex"},
			{Key: "name", Value: name},
			{Key: "ttl_ms", Value: "10000"},
			{Key: "seconds", Value: fmt.Sprint(int(d.Seconds()))},
			{Key: "counter", Value: f.counter},
			{Key: "log", Value: filepath.Join(f.logs, filepath.Base(client))},
		}
	}, func(driver string, reply *line.Line) {
		n, err := reply.Int("grants", 0)
		require.NoError(t, err)
		require.Positive(t, n, "a client of %s never held it", driver)
		grants[driver] += n
	})
	t.Logf("%v of %d clients on %d nodes: holds by language: %v", d, len(f.drivers)*clientsPerProcess, len(f.urls), grants)
}

func (f *fight) close(t *testing.T) {
	f.each(t, time.Minute, "close", func(string) []line.Field { return nil }, nil)
}

// hold is what one holder saw.
type hold struct {
	begin, end int64 // CLOCK_BOOTTIME in ns, after the acquire and before the release
	fence      uint64
	client     string
}

// holds reads what all clients noted, in the order in which they held the lock.
func (f *fight) holds(t *testing.T) []hold {
	files, err := os.ReadDir(f.logs)
	require.NoError(t, err)
	var holds []hold
	for _, entry := range files {
		file, err := os.Open(filepath.Join(f.logs, entry.Name()))
		require.NoError(t, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			h := hold{client: entry.Name()}
			_, err := fmt.Sscan(lines.Text(), &h.begin, &h.end, &h.fence)
			require.NoError(t, err, "%s: %q", entry.Name(), lines.Text())
			holds = append(holds, h)
		}
		file.Close()
	}
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.begin, b.begin) })
	return holds
}

// conflict finds two holds that overlap, or whose tokens don't increase in the order of the holds.
func conflict(holds []hold) error {
	for i := 1; i < len(holds); i++ {
		before, after := holds[i-1], holds[i]
		if before.end > after.begin {
			return fmt.Errorf("two holders at once: %+v and %+v", before, after)
		}
		if before.fence >= after.fence {
			return fmt.Errorf("tokens out of order: %+v and %+v", before, after)
		}
	}
	return nil
}

// requireCount checks that no update of the unprotected counter was lost.
func (f *fight) requireCount(t *testing.T, holds int) {
	t.Helper()
	counter, err := os.ReadFile(f.counter)
	require.NoError(t, err)
	require.EqualValues(t, holds, binary.LittleEndian.Uint64(counter), "lost updates")
}

func requireOnlyTheFence(t *testing.T, servers []*testredis.Server) {
	t.Helper()
	for _, s := range servers {
		left := func() []string { return slices.DeleteFunc(s.Keys(), runner.IsFenceCounter) }
		require.Eventually(t, func() bool { return len(left()) == 0 }, 2*time.Second, 5*time.Millisecond, "keys are left")
		size, err := s.Client().DBSize(context.Background()).Result()
		require.NoError(t, err)
		require.EqualValues(t, 1, size, "the fence counter alone outlives the lock")
	}
}

// TestConflictIsSeen makes sure that the check can fail.
func TestConflictIsSeen(t *testing.T) {
	require.NoError(t, conflict([]hold{{begin: 1, end: 2, fence: 1}, {begin: 2, end: 3, fence: 2}}))
	require.ErrorContains(t, conflict([]hold{{begin: 1, end: 5, fence: 1}, {begin: 4, end: 6, fence: 2}}), "two holders")
	require.ErrorContains(t, conflict([]hold{{begin: 1, end: 2, fence: 2}, {begin: 3, end: 4, fence: 2}}), "out of order")
}
