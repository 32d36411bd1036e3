package core

import "slices"

// quorum is the smallest number of n nodes of which two always share a node.
func quorum(nodes int) int { return nodes/2 + 1 }

// tally counts the answers of one question to all nodes.
type tally struct {
	yes, no, failed, pending int
}

func (t tally) nodes() int { return t.yes + t.no + t.failed + t.pending }

// won: a quorum said yes.
func (t tally) won() bool { return t.yes >= quorum(t.nodes()) }

// refused: those who said no are enough to rule a quorum out, whatever the rest says.
func (t tally) refused() bool { return t.no > t.nodes()-quorum(t.nodes()) }

// hopeless: neither can come about any more.
func (t tally) hopeless() bool {
	need := quorum(t.nodes())
	return t.yes+t.pending < need && t.no+t.pending <= t.nodes()-need
}

// quorumEnd is when a quorum ends whose members end at these times: the quorum-th latest of them.
func quorumEnd(ends []Time) Time {
	var sorted [MaxNodes]Time
	n := copy(sorted[:], ends)
	slices.Sort(sorted[:n])
	return sorted[n-quorum(n)]
}

// leaseEnd is how long a grant or renewal that was sent at this time is certainly good for.
func leaseEnd(sent Time, ttl Duration) Time { return sent.add(ttl - drift(ttl)) }
