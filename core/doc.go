// Package core is the lock machine: all of libredlock's algorithms and none of its I/O.
//
// Feed one event, then do everything that its effects say. That is the whole contract:
//
//	effects := machine.Step(now, event)
//	for _, call := range effects.Calls { ... }          // send; later Step an Answer to each
//	for _, sub := range effects.Subscriptions { ... }   // listen or stop listening
//	for _, outcome := range effects.Outcomes { ... }    // answer whoever made the request
//	for _, notice := range effects.Notices { ... }      // tell whoever owns the hold
//	timer.Reset(effects.Wake)                           // then Step a Tick
//
// Step never blocks, starts no goroutine, reads no clock and draws no randomness: the same Config
// and the same events at the same times give the same effects. Time, the randomness of tokens and the
// wall clock come in with the events that need them. A request that makes no sense is answered
// with a status. Only a broken invariant panics: whoever drives the machine for another
// language turns that into INTERNAL and throws the machine away.
//
// One Machine serves all the locks of one client over N nodes; a lock on one server is a quorum
// of one. A hold is what an Acquire becomes (state.go has its states). Each attempt asks all nodes for
// the lock with a token of its own; the answers are votes (quorum.go). An attempt that did not win is
// cleaned up on every node that may have granted it, late grants included (clean.go). What
// is held counts from the time before the request was sent, less drift (lease.go).
//
// # What a driver owes
//
//   - now never goes back and is read before anything that the step's calls send is written.
//   - Each Call is answered exactly once: when its Timeout has passed as Unknown, or as Refused if it was
//     certainly never written. The machine waits no longer, but a later answer still tells it what
//     to clean up. A driver never sends a call a second time on its own.
//   - Step is never entered twice at once, and the effects are used up before the next Step.
//   - A Tick comes at Effects.Wake or as soon after as it can.
//   - Connected precedes the answers that came over the new connection.
package core
