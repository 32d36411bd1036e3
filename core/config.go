package core

import "math"

// Time is a moment in microseconds on a monotonic clock that also counts while
// the machine is suspended (CLOCK_BOOTTIME on Linux). The zero point is the driver's.
type Time int64

// Never is later than every moment.
const Never Time = math.MaxInt64

// Duration is a length of time in microseconds.
type Duration int64

const (
	Microsecond Duration = 1
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	// Forever, as Acquire.Wait, waits without limit.
	Forever Duration = math.MaxInt64
)

func (t Time) add(d Duration) Time {
	if d >= Duration(Never-t) {
		return Never
	}
	return t + Time(d)
}

// The limits: beyond them a request is INVALID, with the limit in its message.
// docs/reference.md has the same table.
const (
	MaxNodes      = 15
	MaxPermits    = 10_000
	MaxNameBytes  = 1024              // with the prefix
	MaxWhoBytes   = 200               // host, pid, language and metadata, percent-encoded
	MinTTL        = 100 * Millisecond //
	MaxTTL        = 24 * 3600 * Second
	MaxWaiters    = 100_000 // requests waiting in one client
	MinNodeWait   = 10 * Millisecond
	MinFenceTTL   = 600 * Second // and at least 10 times the lock's ttl
	fenceTTLRatio = 10
)

// The defaults.
const (
	DefaultTTL              = 10 * Second
	DefaultUnavailableAfter = 10 * Second
	retryDelay              = 50 * Millisecond // between two attempts of a waiter that polls, and up to as long again
	retryMost               = 3600 * Second
	backoffMin              = 100 * Millisecond // and of one that found too few nodes
	backoffMax              = 2 * Second
	undoAgainAfter          = 1 * Second // protocol: at once, after 1 s and after ttl/2
	beatMost                = 1 * Second // between two signs of life of a waiter; ttl/3 if that is less
	handedOverMost          = 3 * Second // that a hand-over is good for until it is confirmed
)

// Config describes one client. New checks it.
type Config struct {
	Nodes            []string // one address a node, for messages only
	Prefix           string   // put before every name
	Who              string   // "host/pid/language", percent-encoded: the holder as Inspect shows it
	NodeTimeout      Duration // 0: min(ttl/10, 250 ms) with several nodes, min(ttl/3, 2 s) with one, at least 10 ms
	UnavailableAfter Duration // how long an acquire without a limit bears too few nodes; 0: 10 s

	OnTransition func(Transition) // called when a hold changes its state, for tests; may be nil
}

// nodeTimeout is how long one node may take to answer one call.
func (c *Config) nodeTimeout(ttl Duration) Duration {
	if c.NodeTimeout > 0 {
		return c.NodeTimeout
	}
	if len(c.Nodes) > 1 {
		return max(min(ttl/10, 250*Millisecond), MinNodeWait)
	}
	return max(min(ttl/3, 2*Second), MinNodeWait)
}

func fenceTTL(ttl Duration) Duration { return max(MinFenceTTL, fenceTTLRatio*ttl) }

// drift is what a lease of this ttl may lose to clocks that run at different
// speeds, and to the server's millisecond granularity
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
func drift(ttl Duration) Duration { return ttl/100 + 2*Millisecond }
