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
//   - at most one lease of a name is valid, a quorum of the nodes has its token until its deadline, and no script takes it away;
//   - fencing tokens are unique and increase in the order of the grants;
//   - each request gets exactly one outcome, with a status that fits it, in time;
//   - each call is answered once, and is one that a driver can send;
//   - a loss is told once, and never after the release was asked for.
//
// Of the queue on one deployment (order.go, prompt.go, cost.go):
//
//   - a lock is given to the first place that lives, in the order in which the server executed the acquires that took them, and
//     within a client in the order of its acquires; no acquire, a try included, overtakes a place;
//   - no script leaves a lock free while somebody waits, and none hands it over to a dead place or for more than 3 s;
//   - whoever is handed a lock is told by one message, and reports the hold in the step in which that comes;
//   - nobody waits for longer than a bound once nothing goes wrong any more.
//
// In a sixth of the worlds nothing goes wrong from the beginning. There a new holder reports in the time of seven messages at most and has
// its whole ttl in that of four more, the first takes a lock that expires when it was told that it would, a hand-over takes three
// commands, and waiters beat no more often than once a period.
//
// In some worlds clocks mean nothing: keys vanish at any moment, nodes' clocks jump and holders are forced
// out. There leases overlap, and only the fencing tokens and the rest are checked.
//
// A seed that fails is replayed, with a log of all events, by
//
//	go test ./core/sim -run TestSim -v -seed=123
package sim
