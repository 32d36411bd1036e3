package core

import (
	"strconv"
	"strings"
)

// connected takes in what a driver read on a new connection, and warns of what endangers
// locks on this node, once until it changes.
func (m *Machine) connected(e *Connected) {
	if e.Node < 0 || e.Node >= len(m.nodes) {
		return
	}
	n := &m.nodes[e.Node]
	before := n.facts
	n.facts = e.Facts
	n.muteTold, n.deafTold = false, false
	n.tooOld = olderThan(e.Facts.Version, 6, 2)
	warn := func(node int, now, was bool, cause string) {
		if now && !was {
			m.notice(Notice{Kind: NoticeHealth, Node: node, Cause: cause})
		}
	}
	warn(e.Node, e.Facts.Unreadable, before.Unreadable, "INFO can't be read: version, role and eviction are unknown")
	for i := range m.nodes { // the same server as this node may be known as another one
		was := m.nodes[i].unfit
		m.nodes[i].unfit = m.unfit(i)
		warn(i, m.nodes[i].unfit != "", was == m.nodes[i].unfit, m.nodes[i].unfit)
	}
	warn(e.Node, e.Facts.Replica, before.Replica, "the server is a read-only replica: nothing can be locked on it")
	warn(e.Node, e.Facts.Evicts, before.Evicts, "maxmemory-policy evicts keys: locks and fence counters may vanish; set noeviction")
}

// unfit tells why the answers of a node don't count: "" if they do.
func (m *Machine) unfit(node int) string {
	n := &m.nodes[node]
	if n.tooOld {
		return "the server is " + n.facts.Version + "; 6.2 or newer is needed"
	}
	for i := range m.nodes[:node] {
		if n.facts.RunID != "" && m.nodes[i].facts.RunID == n.facts.RunID {
			return "this is the same server as node " + strconv.Itoa(i) + " (" + m.config.Nodes[i] + "): each node must be an independent one"
		}
	}
	return ""
}

// olderThan compares a version like "7.0.15"; one that can't be read is not older.
func olderThan(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(first)
	y, errY := strconv.Atoi(second)
	if errX != nil || errY != nil {
		return false
	}
	return x < major || x == major && y < minor
}
