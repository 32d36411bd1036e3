package peers_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// owner is one who holds reentrant locks of ours: it does with the scripts what a client does, on one node.
type owner struct {
	server *testredis.Server
	name   string
}

// entry is one acquisition.
type entry struct {
	owner   owner
	lock    string
	token   string
	fence   int64 // the hold's fencing token
	entries int64 // of the hold, with this one
}

func newOwner(server *testredis.Server) owner { return owner{server, "owner " + newName()} }

// run runs a script. All keys are passed in the order that it wants them in.
func (o owner) run(t *testing.T, s *script.Script, lock string, args ...any) []any {
	t.Helper()
	side := func(role string) string { return "{" + lock + "}:redlock:reentrant:" + role + ":" + lock }
	keys := []string{lock}
	if s.Queues {
		keys = append(keys, side("queue"), side("places"))
	}
	if s.Queues || s.Fences {
		keys = append(keys, side("fence"))
	}
	reply, err := o.server.Client().Eval(t.Context(), s.Source, keys, args...).Slice()
	require.NoError(t, err, s.Name)
	return reply
}

const keep = "600000" // ms, the fence counter's ttl

// ask asks once. With a client it takes a place if it is refused. It returns the refusal, nil if there is none.
func (o owner) ask(t *testing.T, lock, ttl, client string) (*entry, []any) {
	t.Helper()
	e := &entry{owner: o, lock: lock, token: fmt.Sprintf("rl1:%022s:", newName())}
	reply := o.run(t, script.Reentrant.Acquire, lock, e.token, ttl, keep, "", client, "1", "3000", o.name)
	return e, e.granted(reply)
}

// granted takes what a reply grants, or gives it back.
func (e *entry) granted(reply []any) (refused []any) {
	if reply[0] != int64(script.Yes) {
		return reply
	}
	e.fence, e.entries = reply[1].(int64), reply[2].(int64)
	return nil
}

// try asks without a place.
func (o owner) try(t *testing.T, lock string) (*entry, []any) {
	t.Helper()
	return o.ask(t, lock, ttl, "")
}

// acquire waits in the queue.
func (o owner) acquire(t *testing.T, lock, ttl string) *entry {
	t.Helper()
	e, refused := o.ask(t, lock, ttl, "client")
	if refused != nil {
		e.wait(t, ttl)
	}
	return e
}

// wait asks by beats, as the first in the queue does when the holder is foreign.
func (e *entry) wait(t *testing.T, ttl string) {
	t.Helper()
	for asked := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(asked), patience)
		if e.granted(e.owner.run(t, script.Reentrant.Beat, e.lock, e.token, ttl, keep, "client", "1", "3000", e.owner.name)) == nil {
			return
		}
	}
}

func (e *entry) renew(t *testing.T, ttl time.Duration) int64 {
	t.Helper()
	return e.owner.run(t, script.Reentrant.Renew, e.lock, e.token, strconv.FormatInt(ttl.Milliseconds(), 10), keep, e.owner.name)[0].(int64)
}

func (e *entry) release(t *testing.T) int64 {
	t.Helper()
	return e.owner.run(t, script.Reentrant.Release, e.lock, e.token, e.owner.name)[0].(int64)
}

func (e *entry) undo(t *testing.T) int64 {
	t.Helper()
	return e.owner.run(t, script.Reentrant.Undo, e.lock, e.token, e.owner.name)[0].(int64)
}
