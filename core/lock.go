package core

import (
	"strconv"

	"github.com/libredlock/libredlock/core/script"
)

// lock is a name and how it is locked.
type lock struct {
	kind    *kindOfLock
	key     string
	ttl     Duration
	permits int // of a semaphore
	side    *sideKeys
	// fencing and queued tell what of the side keys is in use.
	fencing, queued bool
	announced       bool // on several nodes: its release is published to those who wait
}

// lockID tells the locks of a client apart: those of different kinds can't be held at once, but be asked for.
type lockID struct {
	kind *kindOfLock
	key  string
}

func (l *lock) id() lockID { return lockID{l.kind, l.key} }

// sideKeys are the other keys of a lock, on the same cluster slot as its own.
type sideKeys struct{ counter, queue, places string }

func sideKeysOf(kind, name string) *sideKeys {
	tag := "{" + hashTag(name) + "}:redlock:" + kind + ":"
	all := tag + "fence:" + name + tag + "queue:" + name + tag + "places:" + name // one piece of memory
	counter, queue := len(tag)+len("fence:")+len(name), len(tag)+len("queue:")+len(name)
	return &sideKeys{counter: all[:counter], queue: all[counter : counter+queue], places: all[counter+queue:]}
}

func ms(d Duration) string { return strconv.FormatInt(int64(d/Millisecond), 10) }

// command is a script's call for this lock as it goes to a node.
func (l *lock) command(s *script.Script, values ...string) []string {
	args := make([]string, 0, 7+len(values))
	args = append(args, "EVALSHA", s.SHA, "1", l.key)
	switch {
	case l.queued && s.Queues:
		args[2] = "4"
		args = append(args, l.side.queue, l.side.places, l.side.counter)
	case l.fencing && s.Fences:
		args[2] = "2"
		args = append(args, l.side.counter)
	}
	return append(args, values...)
}

// keep is the fence counter's ttl, as the scripts with a queue take it.
func (l *lock) keep() string {
	if !l.fencing {
		return "0"
	}
	return ms(fenceTTL(l.ttl))
}

// acquireCommand of a lock without a queue proposes a fencing token; "" proposes the server's time.
func (l *lock) acquireCommand(token, slot, proposed string, unresolved []string) []string {
	args := l.command(l.kind.scripts.Acquire, token, ms(l.ttl), ms(fenceTTL(l.ttl)), proposed)
	return append(l.extra(args, slot), unresolved...)
}

// queuedCommand is the acquire of a lock with a queue. A client of "" takes no place in it.
func (l *lock) queuedCommand(token, client string, now Time, unresolved []string) []string {
	args := l.command(l.kind.scripts.Acquire, token, ms(l.ttl), l.keep(), "", client, strconv.FormatInt(int64(now), 10), ms(l.placeLife()))
	return append(l.extra(args, ""), unresolved...)
}

func (l *lock) beatCommand(token, client string, now Time) []string {
	args := l.command(l.kind.scripts.Beat, token, ms(l.ttl), l.keep(), client, strconv.FormatInt(int64(now), 10), ms(l.placeLife()))
	return l.extra(args, "")
}

func (l *lock) raiseCommand(token, slot string, fence int64) []string {
	return l.extra(l.command(l.kind.scripts.Raise, token, strconv.FormatInt(fence, 10), ms(fenceTTL(l.ttl))), slot)
}

func (l *lock) regrantCommand(token, slot string, fence int64) []string {
	return l.extra(l.command(l.kind.scripts.Regrant, token, ms(l.ttl), strconv.FormatInt(fence, 10), ms(fenceTTL(l.ttl))), slot)
}

func (l *lock) renewCommand(token, slot string) []string {
	return l.extra(l.command(l.kind.scripts.Renew, token, ms(l.ttl), ms(fenceTTL(l.ttl))), slot)
}

// endCommand is a release or an undo.
func (l *lock) endCommand(s *script.Script, token, slot string) []string {
	return l.extra(l.command(s, token), slot)
}

// extra appends what the scripts of a kind take beside what those of all kinds do.
func (l *lock) extra(args []string, slot string) []string {
	if l.kind.slots {
		return append(args, strconv.Itoa(l.permits), slot)
	}
	return args
}

// beatPeriod is the time between two signs of life of a waiter, and placeLife how long its place lives without one.
func (l *lock) beatPeriod() Duration { return min(beatMost, l.ttl/3) }
func (l *lock) placeLife() Duration  { return 3 * l.beatPeriod() }
