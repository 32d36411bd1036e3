package core

import "github.com/libredlock/libredlock/core/script"

// kindOfLock is what the machine knows of a kind, beside what its scripts do.
type kindOfLock struct {
	name    string // in the names of side keys, and in messages
	scripts *script.Family
	slots   bool // several may hold it, each one slot
}

var (
	mutex     = &kindOfLock{name: "mutex", scripts: &script.Mutex}
	semaphore = &kindOfLock{name: "semaphore", scripts: &script.Semaphore, slots: true}
)

// kinds are those that there are, by Kind; nil: not yet.
var kinds = [...]*kindOfLock{Mutex: mutex, Reentrant: nil, ReadLock: nil, WriteLock: nil, Semaphore: semaphore, Multi: nil}

// kindOf finds a kind, or says why it can't be had.
func kindOf(kind Kind) (known *kindOfLock, status Status, wrong string) {
	switch {
	case kind < 0 || int(kind) >= len(kinds):
		return nil, Invalid, "there is no such kind of lock"
	case kinds[kind] == nil:
		return nil, Unsupported, "this version has mutexes and semaphores only"
	}
	return kinds[kind], OK, ""
}
