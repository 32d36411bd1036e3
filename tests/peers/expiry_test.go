package peers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oursIsTheirs lets a lease of ours end and a peer take the lock: nothing that we do then concerns the peer.
func (m *match) oursIsTheirs(t *testing.T) {
	name := m.name(t)
	for _, verbs := range []string{"release", "renew release"} {
		ours, _ := m.us.acquire(t, name, "auto_renew", "off")
		m.values(t, name)
		m.expire(name)
		theirs, _ := m.them.acquire(t, name)
		values := m.values(t, name)
		for _, verb := range strings.Fields(verbs) {
			m.us.expect(t, "LOST", verb, "held", ours, "ttl_ms", "3600000")
			m.requireUnchanged(t, name, values, "our "+verb)
		}
		m.us.expect(t, "HELD", "try_acquire", lock(newName(), name)...)
		m.them.expect(t, "OK", "release", "held", theirs)
	}
}

// theirsIsOurs lets a peer's lease end and takes the lock: nothing that the peer does then concerns us.
func (m *match) theirsIsOurs(t *testing.T) {
	name := m.name(t)
	for _, verbs := range []string{"release", "renew release"} {
		theirs, _ := m.them.acquire(t, name)
		m.values(t, name)
		m.expire(name)
		ours, granted := m.us.acquire(t, name)
		values := m.values(t, name)
		require.Equal(t, granted.Get("token"), values[0])
		for _, verb := range strings.Fields(verbs) {
			statuses := "NOT_HELD"
			if m.peer.quiet && verb == "release" {
				statuses = "OK"
			}
			m.them.expect(t, statuses, verb, "held", theirs, "ttl_ms", "3600000")
			m.requireUnchanged(t, name, values, "their "+verb)
		}
		m.us.expect(t, "OK", "renew", "held", ours)
		m.us.expect(t, "OK", "release", "held", ours)
	}
}

// values reads what stands at the name of a lock that is held, as soon as it does on every node: a majority is
// enough to hold it.
func (m *match) values(t *testing.T, name string) []any {
	t.Helper()
	values := make([]any, len(m.servers))
	for i, s := range m.servers {
		require.Eventually(t, func() bool {
			values[i] = s.Do("GET", name)
			return values[i] != nil
		}, patience, time.Millisecond)
	}
	return values
}

// expire lets a lock end now, as if its ttl had passed.
func (m *match) expire(name string) {
	for _, s := range m.servers {
		s.Do("DEL", name)
	}
}

// requireUnchanged checks that a lock stands as it did, and for no more than its ttl.
func (m *match) requireUnchanged(t *testing.T, name string, values []any, what string) {
	t.Helper()
	for i, s := range m.servers {
		require.Equal(t, values[i], s.Do("GET", name), "%s changed it", what)
		require.LessOrEqual(t, s.Do("PTTL", name), int64(10_000), "%s renewed it", what)
	}
}
