package peers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
)

// handOffs is how often a wait is measured. Its median is to be within the limit: of single ones a busy machine
// may delay any.
const handOffs = 5

// limit is how long after a peer's release our waiting acquire may return. On one node the first of the queue asks every 50 to 100
// ms while a foreign value stands there; the rest is for the programs between us and the locks.
func (m *match) limit() time.Duration {
	if len(m.servers) == 1 {
		return 130 * time.Millisecond
	}
	return time.Second
}

// weWait waits for a peer's release.
func (m *match) weWait(t *testing.T) {
	name := m.name(t)
	var took []time.Duration
	for range handOffs {
		theirs, _ := m.them.acquire(t, name)
		m.us.expect(t, "HELD", "try_acquire", lock(newName(), name)...)
		ours := newName()
		waiting := m.us.send("acquire", lock(ours, name)...)
		m.untilWaiting(t, name)

		releasing := time.Now()
		released := m.them.send("release", "held", theirs)
		m.us.answer(t, "OK", waiting)
		took = append(took, time.Since(releasing))
		m.them.answer(t, "OK", released)
		m.us.expect(t, "OK", "release", "held", ours)
	}
	slices.Sort(took)
	t.Logf("we had it %v after the release", took)
	assert.LessOrEqual(t, took[handOffs/2], m.limit(), "%v", took)
}

// untilWaiting waits until we stand in the queue; on several nodes, which have none, until what we asked later was refused.
func (m *match) untilWaiting(t *testing.T, name string) {
	t.Helper()
	if len(m.servers) > 1 {
		m.us.expect(t, "HELD", "try_acquire", lock(newName(), name)...)
		return
	}
	require.Eventually(t, func() bool {
		return m.us.expect(t, "OK", "inspect", "kind", "mutex", "name", name).Get("queue_length") == "1"
	}, patience, time.Millisecond)
}

// theyWait lets a peer wait for locks that we hold by renewing them, longer than one lease, and for their release.
func theyWait(t *testing.T, matches []*match) {
	const ttl, longer = "1500", "2000" // ms
	type wait struct {
		*match
		name                 string
		ours, theirs         string
		patient, lessPatient *drivers.Call
	}
	var waits []wait
	for _, m := range matches {
		w := wait{match: m, name: m.name(t) + "/" + m.us.driver.Name, theirs: newName()}
		w.ours, _ = m.us.acquire(t, w.name, "ttl_ms", ttl)
		m.them.expect(t, "HELD", "try_acquire", lock(newName(), w.name)...)
		w.patient = m.them.send("acquire", append(lock(w.theirs, w.name), "wait_ms", "20000")...)
		w.lessPatient = m.them.send("acquire", append(lock(newName(), w.name), "wait_ms", longer)...)
		waits = append(waits, w)
	}
	for _, w := range waits {
		w.them.answer(t, "TIMEOUT", w.lessPatient)
		w.us.expect(t, "OK", "release", "held", w.ours) // LOST if the lease had ended
		w.them.answer(t, "OK", w.patient)

		w.us.expect(t, "HELD", "try_acquire", lock(newName(), w.name)...)
		w.them.expect(t, "OK", "release", "held", w.theirs)
		again, _ := w.us.acquire(t, w.name)
		w.us.expect(t, "OK", "release", "held", again)
	}
}
