package docs

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/redlock"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

func rightsOfThePage(t *testing.T) []string {
	page, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	rule := regexp.MustCompile(`(?m)^    ACL SETUSER (locks .*)$`).FindStringSubmatch(string(page))
	require.NotNil(t, rule)
	return strings.Fields(rule[1])
}

// TestTheACLSuffices: the rights that reference.md asks for are enough for every verb, and bound to the names.
func TestTheACLSuffices(t *testing.T) {
	rights := rightsOfThePage(t)
	without := func(drop ...string) []string {
		kept := []string{}
		for _, right := range rights {
			if !strings.Contains(strings.Join(drop, " "), right) {
				kept = append(kept, right)
			}
		}
		return kept
	}
	for name, rights := range map[string][]string{"all": rights, "without info": without("+info", "+command|info")} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			servers := testredis.StartN(t, 3)
			urls := testredis.URLs(servers)
			for i, server := range servers {
				args := []any{"ACL", "SETUSER"}
				for _, right := range rights {
					args = append(args, right)
				}
				server.Do(args...)
				server.Do("SCRIPT", "FLUSH")
				// Counters that differ: one node is ahead of the clocks, and the others have to be raised.
				if i == 0 {
					server.Do("SET", "{app:x}:redlock:mutex:fence:app:x", time.Now().Add(time.Hour).UnixMicro())
				}
				urls[i] = strings.Replace(urls[i], "redis://", "redis://locks:secret@", 1)
			}
			client, err := redlock.Open(ctx, redlock.Config{Nodes: urls, NodeTimeout: 2 * time.Second})
			require.NoError(t, err)
			defer client.Close()

			held, err := client.Mutex("app:x").TryAcquire(ctx)
			require.NoError(t, err)
			require.NoError(t, held.Renew(ctx, 20*time.Second))
			_, err = client.Mutex("app:x").TryAcquire(ctx)
			require.ErrorIs(t, err, redlock.ErrHeld)
			found, err := client.Inspect(ctx, "app:x")
			require.NoError(t, err)
			require.NoError(t, client.ForceRelease(ctx, "app:x", found.Holders[0].Digest))
			require.ErrorIs(t, held.Release(), redlock.ErrLost)
			held, err = client.Mutex("app:x").TryAcquire(ctx)
			require.NoError(t, err)
			require.NoError(t, held.Release())

			semaphore := client.Semaphore("app:s", 1)
			held, err = semaphore.TryAcquire(ctx)
			require.NoError(t, err)
			require.NoError(t, held.Renew(ctx, 20*time.Second))
			_, err = semaphore.TryAcquire(ctx)
			require.ErrorIs(t, err, redlock.ErrHeld)
			found, err = semaphore.Inspect(ctx)
			require.NoError(t, err)
			require.NoError(t, semaphore.ForceRelease(ctx, found.Holders[0].Digest))
			require.ErrorIs(t, held.Release(), redlock.ErrLost)
			held, err = semaphore.TryAcquire(ctx)
			require.NoError(t, err)
			require.NoError(t, held.Release())

			_, err = client.Mutex("other").TryAcquire(ctx)
			require.ErrorIs(t, err, redlock.ErrUnavailable)
			require.ErrorContains(t, err, "permission")
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// TestTheACLSufficesForWaiting: also for the queue, being handed over to, and giving up; and for being told of a release.
func TestTheACLSufficesForWaiting(t *testing.T) {
	for name, nodes := range map[string]int{"one node": 1, "several": 3} {
		t.Run(name, func(t *testing.T) { waitWithTheRights(t, nodes) })
	}
}

func waitWithTheRights(t *testing.T, nodes int) {
	ctx := context.Background()
	servers := testredis.StartN(t, nodes)
	urls := testredis.URLs(servers)
	for i, server := range servers {
		args := []any{"ACL", "SETUSER"}
		for _, right := range rightsOfThePage(t) {
			args = append(args, right)
		}
		server.Do(args...)
		urls[i] = strings.Replace(urls[i], "redis://", "redis://locks:secret@", 1)
	}
	client, err := redlock.Open(ctx, redlock.Config{Nodes: urls})
	require.NoError(t, err)
	defer client.Close()
	other, err := redlock.Open(ctx, redlock.Config{Nodes: urls})
	require.NoError(t, err)
	defer other.Close()

	for kind, lockOf := range map[string]func(*redlock.Client) *redlock.Lock{
		"mutex":     func(c *redlock.Client) *redlock.Lock { return c.Mutex("app:x") },
		"semaphore": func(c *redlock.Client) *redlock.Lock { return c.Semaphore("app:x", 1) },
	} {
		t.Run(kind, func(t *testing.T) {
			own, theirs, queue := lockOf(client), lockOf(other), "{app:x}:redlock:"+kind+":queue:app:x"
			held, err := own.TryAcquire(ctx)
			require.NoError(t, err)
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			_, err = theirs.Acquire(short)
			require.ErrorIs(t, err, redlock.ErrTimeout)

			waited := make(chan error)
			go func() {
				next, err := theirs.Acquire(ctx)
				if err == nil {
					err = next.Release()
				}
				waited <- err
			}()
			const channel = "redlock:released:app:x"
			require.Eventually(t, func() bool {
				if nodes == 1 {
					return servers[0].Do("LLEN", queue) == any(int64(1))
				}
				return slices.Equal(servers[0].Do("PUBSUB", "NUMSUB", channel).([]any), []any{channel, int64(1)})
			}, 5*time.Second, time.Millisecond)
			require.NoError(t, held.Release())
			require.NoError(t, <-waited)
		})
	}
	for _, server := range servers {
		log := server.Do("ACL", "LOG").([]any)
		require.Empty(t, log, "scripts ignore what they may not do here, and waiters are told late")
	}
}
