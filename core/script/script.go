// Package script holds the Lua that runs on the nodes, one file a kind and verb.
//
// Every reply is a flat array of integers and strings that begins with one of the codes below.
// The server's TIME is the only clock that a script reads.
package script

import (
	"crypto/sha1"
	"embed"
)

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

//go:embed *.lua
var files embed.FS

// What a script takes beside the lock's key.
const (
	fences = 1 << iota
	queues
)

// The scripts of the mutex.
var (
	MutexAcquire = load("mutex", "acquire", fences|queues)
	MutexBeat    = load("mutex", "beat", queues)
	MutexRaise   = load("mutex", "raise", fences)
	MutexRenew   = load("mutex", "renew", fences)
	MutexRegrant = load("mutex", "regrant", fences)
	MutexRelease = load("mutex", "release", queues)
	MutexUndo    = load("mutex", "undo", queues)
	MutexInspect = load("mutex", "inspect", queues)
	MutexForce   = load("mutex", "force", queues)
)

// All lists every script.
var All = []*Script{MutexAcquire, MutexBeat, MutexRaise, MutexRenew, MutexRegrant, MutexRelease, MutexUndo, MutexInspect, MutexForce}

// load joins what a kind's scripts have in common with the one of a verb.
func load(kind, verb string, takes int) *Script {
	name := kind + "_" + verb
	source := read(kind) + read(name)
	return &Script{Name: name, Source: source, SHA: Digest(source), Fences: takes&fences != 0, Queues: takes&queues != 0}
}

func read(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic("script: " + err.Error()) // embedded: only a misspelt name above gets here
	}
	return string(text)
}

// Digest is the SHA-1 of a text in hex: what names a script, and what shows a token without revealing it.
func Digest(text string) string {
	const digits = "0123456789abcdef" // encoding/hex would bring in fmt and reflect
	sum := sha1.Sum([]byte(text))
	hex := make([]byte, 0, 2*len(sum))
	for _, b := range sum {
		hex = append(hex, digits[b>>4], digits[b&15])
	}
	return string(hex)
}
