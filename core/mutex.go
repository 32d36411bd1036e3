package core

import (
	"strconv"

	"github.com/libredlock/libredlock/core/script"
)

// lock is a name and how it is locked.
type lock struct {
	key   string
	fence string // the key of its fence counter; "" without fencing
	ttl   Duration
}

func ms(d Duration) string { return strconv.FormatInt(int64(d/Millisecond), 10) }

// command is a script's call for this lock as it goes to a node: its keys are the lock's and, if it has one and the
// script wants it, its fence counter's.
func (l *lock) command(s *script.Script, values ...string) []string {
	args := make([]string, 0, 5+len(values))
	args = append(args, "EVALSHA", s.SHA, "1", l.key)
	if l.fence != "" && s.Fences {
		args[2] = "2"
		args = append(args, l.fence)
	}
	return append(args, values...)
}

func (l *lock) acquireCommand(token, proposed string, unresolved []string) []string {
	return append(l.command(script.MutexAcquire, token, ms(l.ttl), ms(fenceTTL(l.ttl)), proposed), unresolved...)
}

func (l *lock) raiseCommand(token string, fence int64) []string {
	return l.command(script.MutexRaise, token, strconv.FormatInt(fence, 10), ms(fenceTTL(l.ttl)))
}

func (l *lock) regrantCommand(token string, fence int64) []string {
	return l.command(script.MutexRegrant, token, ms(l.ttl), strconv.FormatInt(fence, 10), ms(fenceTTL(l.ttl)))
}

func (l *lock) renewCommand(token string) []string {
	return l.command(script.MutexRenew, token, ms(l.ttl), ms(fenceTTL(l.ttl)))
}
