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
	WrongKind = 3 // followed by the type or the kind of what stands at the key
	Forbidden = 4 // an owner that only reads can't write
)

// Script is one script as it is sent to a node.
type Script struct {
	Name   string // its file, without ".lua"
	Source string
	SHA    string // of Source, as EVALSHA takes it
	Fences bool   // it takes the fence counter's key after the lock's, if the lock has one
	Queues bool   // it takes the keys of the queue, of the places and of the counter after the lock's, if the lock has a queue
}

// Family is the scripts of one kind of lock. Their arguments begin alike.
type Family struct {
	Acquire, Beat, Raise, Renew, Regrant, Release, Undo, Inspect, Force *Script
}

// All lists the scripts of a family.
func (f *Family) All() []*Script {
	return []*Script{f.Acquire, f.Beat, f.Raise, f.Renew, f.Regrant, f.Release, f.Undo, f.Inspect, f.Force}
}

// All lists every script.
var All = append(Mutex.All(), Semaphore.All()...)

// queue is put before every script.
//
//go:embed queue.lua
var queue string

// holders is put behind it for the kinds that several may hold.
//
//go:embed holders.lua
var holders string

// verbs are the sources of a family.
type verbs struct {
	acquire, beat, raise, renew, regrant, release, undo, inspect, force string
}

// family makes the scripts of a kind: each is what it shares with all, what its kind has in common, and what its verb adds.
func family(kind, common string, v verbs) Family {
	common = queue + common
	join := func(verb, source string) *Script {
		source = common + source
		return &Script{Name: kind + "_" + verb, Source: source, SHA: Digest(source)}
	}
	fences := func(s *Script) *Script { s.Fences = true; return s }
	queues := func(s *Script) *Script { s.Queues = true; return s }
	return Family{
		Acquire: queues(fences(join("acquire", v.acquire))),
		Beat:    queues(join("beat", v.beat)),
		Raise:   fences(join("raise", v.raise)),
		Renew:   fences(join("renew", v.renew)),
		Regrant: fences(join("regrant", v.regrant)),
		Release: queues(join("release", v.release)),
		Undo:    queues(join("undo", v.undo)),
		Inspect: queues(join("inspect", v.inspect)),
		Force:   queues(join("force", v.force)),
	}
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
