// Package script holds the Lua that runs on the nodes, one file a kind and verb.
//
// Every reply is a flat array of integers and strings that begins with one of the codes below.
// The server's TIME is the only clock that a script reads.
package script

import _ "embed"

// The codes that a reply begins with.
const (
	No        = 0 // another holder's
	Yes       = 1 // done
	Gone      = 2 // nobody's
	WrongKind = 3 // followed by the type of what stands at the key
)

// Script is one script as it is sent to a node.
type Script struct {
	Name   string // its file, without ".lua"
	Source string
	SHA    string // of Source, as EVALSHA takes it
	Fences bool   // it takes the fence counter's key after the lock's, if the lock has one
	Queues bool   // it takes the keys of the queue, of the places and of the counter after the lock's, if the lock has a queue
}

// The files, as strings: an embed.FS would bring in os and time.
var (
	//go:embed mutex.lua
	mutex string // what the scripts of the mutex have in common
	//go:embed mutex_acquire.lua
	mutexAcquire string
	//go:embed mutex_beat.lua
	mutexBeat string
	//go:embed mutex_raise.lua
	mutexRaise string
	//go:embed mutex_renew.lua
	mutexRenew string
	//go:embed mutex_regrant.lua
	mutexRegrant string
	//go:embed mutex_release.lua
	mutexRelease string
	//go:embed mutex_undo.lua
	mutexUndo string
	//go:embed mutex_inspect.lua
	mutexInspect string
	//go:embed mutex_force.lua
	mutexForce string
)

// What a script takes beside the lock's key.
const (
	fences = 1 << iota
	queues
)

// The scripts of the mutex.
var (
	MutexAcquire = join("mutex_acquire", mutex, mutexAcquire, fences|queues)
	MutexBeat    = join("mutex_beat", mutex, mutexBeat, queues)
	MutexRaise   = join("mutex_raise", mutex, mutexRaise, fences)
	MutexRenew   = join("mutex_renew", mutex, mutexRenew, fences)
	MutexRegrant = join("mutex_regrant", mutex, mutexRegrant, fences)
	MutexRelease = join("mutex_release", mutex, mutexRelease, queues)
	MutexUndo    = join("mutex_undo", mutex, mutexUndo, queues)
	MutexInspect = join("mutex_inspect", mutex, mutexInspect, queues)
	MutexForce   = join("mutex_force", mutex, mutexForce, queues)
)

// Family is the scripts of a kind of lock. They take and give alike in all kinds.
type Family struct {
	Acquire, Beat, Raise, Renew, Regrant, Release, Undo, Inspect, Force *Script
}

// Mutex is the family of the mutex.
var Mutex = &Family{MutexAcquire, MutexBeat, MutexRaise, MutexRenew, MutexRegrant, MutexRelease, MutexUndo, MutexInspect, MutexForce}

// All lists every script.
var All = []*Script{MutexAcquire, MutexBeat, MutexRaise, MutexRenew, MutexRegrant, MutexRelease, MutexUndo, MutexInspect, MutexForce}

// join makes a script of what its kind has in common and what its verb adds.
func join(name, common, verb string, takes int) *Script {
	source := common + verb
	return &Script{Name: name, Source: source, SHA: Digest(source), Fences: takes&fences != 0, Queues: takes&queues != 0}
}

// Digest is the SHA-1 of a text in hex: what names a script, and what shows a token without revealing it.
func Digest(text string) string {
	const digits = "0123456789abcdef" // encoding/hex would bring in fmt and reflect
	sum := sha1(text)
	hex := make([]byte, 0, 2*len(sum))
	for _, b := range sum {
		hex = append(hex, digits[b>>4], digits[b&15])
	}
	return string(hex)
}
