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

// keys are the lock's, and its fence counter's if it has one.
func (l *lock) keys() []string {
	if l.fence == "" {
		return []string{l.key}
	}
	return []string{l.key, l.fence}
}

func (l *lock) acquireCommand(token, proposed string, unresolved []string) []string {
	values := append([]string{token, ms(l.ttl), ms(fenceTTL(l.ttl)), proposed}, unresolved...)
	return command(script.MutexAcquire, l.keys(), values...)
}

func (l *lock) raiseCommand(token string, fence int64) []string {
	return command(script.MutexRaise, l.keys(), token, strconv.FormatInt(fence, 10), ms(fenceTTL(l.ttl)))
}

func (l *lock) renewCommand(token string) []string {
	return command(script.MutexRenew, l.keys(), token, ms(l.ttl), ms(fenceTTL(l.ttl)))
}

func (l *lock) cleanCommand(s *script.Script, token string) []string {
	return command(s, []string{l.key}, token)
}
