// Package driver runs a core.Machine over go-redis. It is what the front doors of
// Go (core/redlock) and C (capi) share; it is not meant for applications.
package driver

import (
	"context"
	"time"

	"github.com/libredlock/libredlock/core"
)

// Config describes a client.
type Config struct {
	Nodes            []string // URLs
	Prefix           string
	Language         string // of the caller, shown by Inspect
	NodeTimeout      time.Duration
	UnavailableAfter time.Duration
	// OnHealth is called for health notices. It must not block. May be nil.
	OnHealth func(core.Notice)
	// OnSocket is called with every socket opened (true) and about to be closed (false). May be nil.
	OnSocket func(fd int, open bool)
}

// Driver is one client.
type Driver struct{}

// Hold is a lock that was acquired.
type Hold struct {
	ID    core.OpID
	Name  string
	Token string
	Fence int64
}

// Result is how a request ended. Err is nil if it ended in OK.
type Result struct {
	Op         core.OpID
	Err        *core.Error
	Hold       *Hold            // of an acquire
	Inspection *core.Inspection // of an inspect
}

// Open checks the configuration. It does not connect: the first request does.
func Open(config Config) (*Driver, *core.Error) { panic("soon") }

// Do makes a request and waits for its end. When ctx ends first the request is cancelled.
// Seed and Wall of an Acquire are filled in.
func (d *Driver) Do(ctx context.Context, request core.Request) Result { panic("soon") }

// Submit makes a request and returns at once. done is called exactly once, from any goroutine,
// possibly before Submit returns; it must not block.
func (d *Driver) Submit(request core.Request, done func(Result)) core.OpID { panic("soon") }

// Cancel ends an acquire or renew that has not ended yet with CANCELED.
func (d *Driver) Cancel(op core.OpID) { panic("soon") }

// Close ends every wait with CLOSED, releases every hold and closes the connections.
// A second Close is CLOSED.
func (d *Driver) Close() *core.Error { panic("soon") }

// Remaining is how long the hold is certainly ours; 0 once it is lost or released.
func (d *Driver) Remaining(h *Hold) time.Duration { panic("soon") }

// OnLost calls f once when the hold is lost, at once if it is; it is never called after the release. f must not block.
func (h *Hold) OnLost(f func(cause string)) { panic("soon") }
