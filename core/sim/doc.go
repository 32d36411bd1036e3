// Package sim runs many machines against a few nodes in a world of its own, where time is a number and
// a seed decides everything: what the clocks, the links, the nodes and the callers do wrong.
//
// A world has three parts of time. In the storm everything may go wrong: requests and replies are late, lost,
// reordered or executed long after the client gave up; nodes refuse, stall, answer with errors or nonsense and forget
// their scripts; clients pause, crash, close and cancel. In the calm nothing goes wrong any more, and every
// name must be acquired within a bound. At last all is given back, time passes, and nothing may remain.
//
// Always, the world checks (check.go):
//
//   - at most one lease of a name is valid, and a quorum of the nodes has its token until its deadline;
//   - fencing tokens are unique and increase in the order of the grants;
//   - each request gets exactly one outcome, with a status that fits it, in time;
//   - each call is answered once, and is one that a driver can send;
//   - a loss is told once, and never after the release was asked for.
//
// In some worlds clocks mean nothing: keys vanish at any moment, nodes' clocks jump and holders are forced
// out. There leases overlap, and only the fencing tokens and the rest are checked.
//
// A seed that fails is replayed, with a log of all events, by
//
//	go test ./core/sim -run TestSim -v -seed=123
package sim
