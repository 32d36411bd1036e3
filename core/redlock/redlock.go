// Package redlock gives distributed locks over Redis: on one server, or as Redlock over
// several independent ones.
//
//	client, err := redlock.Open(ctx, redlock.Config{Nodes: []string{"redis://127.0.0.1:6379"}})
//	held, err := client.Mutex("orders:42", redlock.WithTTL(10*time.Second)).Acquire(ctx)
//	if err != nil { ... }
//	defer held.Release()
//	work(held.Context(), held.Fence())
//
// Errors are *Error and match the Err... variables with errors.Is; those of a context that
// ended match ctx.Err() too.
package redlock

import (
	"context"
	"log/slog"
	"time"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/driver"
)

// Config says what to connect to.
type Config struct {
	// Nodes are URLs: one Redis, or several independent ones for Redlock, at most 15:
	// redis://[user:password@]host[:port][/db] or unix://[user:password@]/path[?db=n].
	Nodes []string
	// Prefix is put before every lock's name.
	Prefix string
	// NodeTimeout is how long one node may take to answer. 0: with several nodes a tenth of the ttl, at
	// most 250 ms; with one a third, at most 2 s; at least 10 ms.
	NodeTimeout time.Duration
	// UnavailableAfter is how long an Acquire without a deadline bears too few nodes. 0: 10 s.
	UnavailableAfter time.Duration
	// OnHealth is called when something about a node endangers locks on it. It must not block. May be nil.
	OnHealth func(Health)
	// Logger hears of holds that were garbage-collected unreleased. nil: slog.Default().
	Logger *slog.Logger
}

// Health is something about a node that endangers locks on it.
type Health struct {
	Node  int // index into Config.Nodes
	Cause string
}

// Client makes locks. It is safe for concurrent use and meant to live as long as the process.
type Client struct {
	driver *driver.Driver
	logger *slog.Logger
}

// Open checks the configuration. It does not connect: the first request does.
func Open(ctx context.Context, config Config) (*Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, contextError(ctx, err)
	}
	settings := driver.Config{
		Nodes:            config.Nodes,
		Prefix:           config.Prefix,
		Language:         "go",
		NodeTimeout:      config.NodeTimeout,
		UnavailableAfter: config.UnavailableAfter,
	}
	if config.OnHealth != nil {
		settings.OnHealth = func(n core.Notice) { config.OnHealth(Health{Node: n.Node, Cause: n.Cause}) }
	}
	d, err := driver.Open(settings)
	if err != nil {
		return nil, wrap(err)
	}
	client := &Client{driver: d, logger: config.Logger}
	if client.logger == nil {
		client.logger = slog.Default()
	}
	return client, nil
}

// Close ends every wait with ErrClosed, releases every hold, which is lost for its holder, and closes the connections.
// It takes no longer than the node timeout.
func (c *Client) Close() error { return wrap(c.driver.Close()) }

// Inspection is who holds a name.
type Inspection struct {
	Kind    string   // "mutex" or "semaphore"
	Holders []Holder // none if the name is free; several of a semaphore, or if nodes disagree: those on most nodes first, then by slot
	Fence   uint64   // the largest fencing token that a node remembers; 0 if none
	// QueueLength is how many clients wait in the queue, and QueueAge how long the first of them has.
	QueueLength int
	QueueAge    time.Duration
}

// Holder is one holder of a name.
type Holder struct {
	Who    string        // "host/pid/language/metadata"; "" for a value of another library
	Digest string        // what ForceRelease takes
	TTL    time.Duration // until the key, or a semaphore's slot, expires; negative if it never does
	Nodes  int           // on how many nodes it is the holder
	Slot   int           // of a semaphore
}

// Inspect reads who holds a mutex. For a lock of any kind see Lock.Inspect.
func (c *Client) Inspect(ctx context.Context, name string) (*Inspection, error) {
	return c.Mutex(name).Inspect(ctx)
}

// Inspect reads who holds the lock. ErrWrongKind if the name is locked as another kind.
func (l *Lock) Inspect(ctx context.Context) (*Inspection, error) {
	result, err := l.client.do(ctx, &core.Inspect{Kind: l.request.Kind, Name: l.request.Name})
	if err != nil {
		return nil, err
	}
	found := &Inspection{
		Kind:        kindNames[l.request.Kind],
		Fence:       uint64(result.Inspection.Fence),
		QueueLength: int(result.Inspection.QueueLength),
		QueueAge:    time.Duration(result.Inspection.QueueAge) * time.Microsecond,
	}
	for _, h := range result.Inspection.Holders {
		ttl := time.Duration(-1)
		if h.TTL != core.Forever {
			ttl = time.Duration(h.TTL) * time.Microsecond
		}
		found.Holders = append(found.Holders, Holder{Who: h.Who, Digest: h.Digest, TTL: ttl, Nodes: h.Nodes, Slot: h.Slot})
	}
	return found, nil
}

var kindNames = map[core.Kind]string{core.Mutex: "mutex", core.Semaphore: "semaphore"}

// ForceRelease takes a mutex away from the holder whose digest Inspect showed. For a lock of any kind see Lock.ForceRelease.
func (c *Client) ForceRelease(ctx context.Context, name, digest string) error {
	return c.Mutex(name).ForceRelease(ctx, digest)
}

// ForceRelease takes the lock away from the holder whose digest Inspect showed: a last resort, since that holder may
// still be working. It finds out at its next renewal or release. ErrNotHeld if there is no such holder.
func (l *Lock) ForceRelease(ctx context.Context, digest string) error {
	_, err := l.client.do(ctx, &core.ForceRelease{Kind: l.request.Kind, Name: l.request.Name, Digest: digest})
	return err
}

// do makes a request under a context.
func (c *Client) do(ctx context.Context, request core.Request) (driver.Result, error) {
	if err := ctx.Err(); err != nil {
		return driver.Result{}, contextError(ctx, err)
	}
	result := c.driver.Do(ctx, request)
	if result.Err == nil {
		return result, nil
	}
	err := wrap(result.Err).(*Error)
	if err.Status == core.Canceled {
		err.context = ctx.Err()
	}
	return result, err
}
