package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// call is a script that is executed: its keys by what they are, "" for those that it was not given.
type call struct {
	*Server
	lock, queue, places, counter string
	argv                         []string
}

func (s *Server) run(called *script.Script, keys, argv []string) (reply []core.Value, err error) {
	c := &call{Server: s, lock: keys[0], argv: argv}
	switch len(keys) {
	case 2:
		c.counter = keys[1]
	case 4:
		c.queue, c.places, c.counter = keys[1], keys[2], keys[3]
	}
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case ReplyError:
			reply, err = nil, failure
		default:
			panic(failure)
		}
	}()
	return c.execute(called), nil
}

// ignore is deferred for a pcall: the error of a command ends only the function.
func ignore() {
	if failure := recover(); failure != nil {
		if _, ok := failure.(ReplyError); !ok {
			panic(failure)
		}
	}
}

func (c *call) execute(called *script.Script) []core.Value {
	holder, held := c.look(c.lock)
	switch {
	case called == script.MutexUndo:
		return c.undo(holder, held)
	case called == script.MutexAcquire:
		return c.acquire(holder, held)
	case held && holder.kind != "string":
		return wrongKind(holder)
	}
	switch called {
	case script.MutexBeat:
		return c.beat()
	case script.MutexRegrant:
		return c.regrant(holder, held)
	case script.MutexInspect:
		return c.inspect(holder, held)
	case script.MutexForce:
		return c.force(holder, held)
	case script.MutexRelease:
		return c.release(holder, held)
	}
	switch {
	case !held:
		return integers(script.Gone)
	case holder.text != c.argv[0]:
		return integers(script.No)
	case called == script.MutexRenew:
		c.lengthen(c.lock, number(c.argv[1]))
		if c.counter != "" {
			c.lengthen(c.counter, number(c.argv[2]))
		}
	case called == script.MutexRaise:
		if last, _ := c.counted(); last < number(c.argv[1]) {
			c.count(number(c.argv[1]), number(c.argv[2]))
		}
	default:
		panic("sim: " + called.Name + " is not simulated")
	}
	return integers(script.Yes)
}

// counted is the last fencing token, and whether there is one.
func (c *call) counted() (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(c.get(c.counter, "string").text), 10, 64)
	return n, err == nil
}

// count sets the last fencing token. The counter keeps what it has to live, if that is more.
func (c *call) count(fence, keep int64) {
	c.Put(c.counter, "string", strconv.FormatInt(fence, 10), max(keep, c.left(c.counter)))
}

func (c *call) fence(proposed, keep int64) int64 {
	last, _ := c.counted()
	fence := max(last+1, proposed)
	c.count(fence, keep)
	return fence
}

func (c *call) acquire(holder entry, held bool) []core.Value {
	token, unresolved := c.argv[0], 4
	if c.queue != "" {
		unresolved = 7
	}
	var head string
	var queued bool
	if c.queue != "" {
		head, _, queued = c.first()
	}
	name := holder.text
	switch {
	case held && holder.kind != "string":
		return wrongKind(holder)
	case !held && queued && head != token:
		name, _, held = c.handOver(token)
	}
	if !held || name == token || slices.Contains(c.argv[unresolved:], name) {
		return c.grant(queued)
	}
	if c.queue != "" && c.argv[4] != "" {
		c.wait(token, c.argv[5], number(c.argv[6]), number(c.argv[1]), c.argv[2], c.argv[4])
	}
	return c.refusal(token, name)
}

// grant gives the lock to whom an acquire is for.
func (c *call) grant(queued bool) []core.Value {
	ttl := number(c.argv[1])
	if e, held := c.look(c.lock); held && e.text == c.argv[0] {
		ttl = max(ttl, c.left(c.lock))
	}
	c.Put(c.lock, "string", c.argv[0], ttl)
	if c.breakNext {
		c.breakNext = false
		panic(ReplyError("ERR out of luck behind the first write"))
	}
	if queued {
		c.leave(c.argv[0])
	}
	if c.counter == "" || c.argv[2] == "0" {
		return integers(script.Yes, 0)
	}
	proposed := c.now()
	if c.argv[3] != "" {
		const most = 60 * 1000000
		proposed = min(max(number(c.argv[3]), proposed-most), proposed+most)
	}
	return integers(script.Yes, c.fence(proposed, number(c.argv[2])))
}

func (c *call) undo(holder entry, held bool) []core.Value {
	mine := held && holder.kind == "string" && holder.text == c.argv[0]
	if mine {
		c.Delete(c.lock)
	}
	left := c.leave(c.argv[0])
	if mine || !held {
		c.tryToHandOver()
	}
	if mine || left {
		return integers(script.Yes)
	}
	return integers(script.Gone)
}

func (c *call) release(holder entry, held bool) []core.Value {
	if held && holder.text != c.argv[0] {
		return integers(script.No)
	}
	c.Delete(c.lock)
	switch {
	case c.queue != "":
		c.tryToHandOver()
	case held && tells(holder.text):
		return integers(script.Yes, c.publishRelease(holder.text))
	}
	return removed(held)
}

func (c *call) force(holder entry, held bool) []core.Value {
	if held && secretDigest(holder.text) != c.argv[0] {
		return integers(script.No)
	}
	c.Delete(c.lock)
	if !c.tryToHandOver() && held {
		c.publishRelease(holder.text)
	}
	return removed(held)
}

func removed(held bool) []core.Value {
	if held {
		return integers(script.Yes)
	}
	return integers(script.Gone)
}

func (c *call) regrant(holder entry, held bool) []core.Value {
	switch {
	case !held:
		c.Put(c.lock, "string", c.argv[0], number(c.argv[1]))
	case holder.text != c.argv[0]:
		return integers(script.No, c.left(c.lock))
	default:
		c.lengthen(c.lock, number(c.argv[1]))
	}
	if c.counter == "" {
		return integers(script.Yes, 0)
	}
	last, _ := c.counted()
	fence := max(last, number(c.argv[2]))
	c.count(fence, number(c.argv[3]))
	return integers(script.Yes, fence)
}

func (c *call) inspect(holder entry, held bool) []core.Value {
	last, _ := c.counted()
	var waited int64
	waiting := c.get(c.queue, "list").items
	if len(waiting) > 0 {
		if p := c.place(waiting[0]); p != nil {
			waited = max((c.now()-p.since)/1000, 0)
		}
	}
	if !held {
		return integers(script.Gone, last, int64(len(waiting)), waited)
	}
	return append([]core.Value{{Int: script.Yes}, {Str: holder.text, IsString: true}},
		integers(c.left(c.lock), last, int64(len(waiting)), waited)...)
}

// secretDigest is what ForceRelease names a holder by: of the whole value, unless it is one of libredlock's tokens.
func secretDigest(value string) string {
	const start, end = len("rl0:"), len("rl0:") + 22
	ours := strings.HasPrefix(value, "rl0:") || strings.HasPrefix(value, "rl1:")
	if ours && len(value) > end && value[end] == ':' {
		value = value[start:end]
	}
	return script.Digest(value)
}
