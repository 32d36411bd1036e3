package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// The queue of a mutex, function by function as in queue.lua and with its names.

const (
	handedOverMost = 3000    // ms
	placeMost      = 3000000 // µs
	queueKeep      = 60000   // ms
	deadMost       = 100
)

// place is what the hash of places has for a waiter.
type waiter struct {
	life, heard, since int64
	sent               string
	ttl                int64
	keep, client       string
}

func (p *waiter) String() string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return strings.Join([]string{number(p.life), number(p.heard), number(p.since), p.sent, number(p.ttl), p.keep, p.client}, " ")
}

// place reads a waiter's; nil if it has none, or none that can be read.
func (c *call) place(token string) *waiter {
	fields := strings.SplitN(c.get(c.places, "hash").fields[token], " ", 7)
	if len(fields) < 7 {
		return nil
	}
	return &waiter{
		life: number(fields[0]), heard: number(fields[1]), since: number(fields[2]),
		sent: fields[3], ttl: number(fields[4]), keep: fields[5], client: fields[6],
	}
}

func (c *call) leave(token string) bool {
	if c.queue == "" {
		return false
	}
	if _, ok := c.get(c.places, "hash").fields[token]; !ok {
		return false
	}
	c.unplace(token)
	waiting := c.get(c.queue, "list")
	if i := slices.Index(waiting.items, token); i >= 0 {
		waiting.items = slices.Delete(waiting.items, i, i+1)
		c.put(c.queue, waiting)
	}
	return true
}

func (c *call) unplace(token string) {
	e := c.get(c.places, "hash")
	delete(e.fields, token)
	c.put(c.places, e)
}

// first gives "" and false if nobody waits, and "" and true if that is not known yet.
func (c *call) first() (token string, p *waiter, waiting bool) {
	for range deadMost {
		e := c.get(c.queue, "list")
		if len(e.items) == 0 {
			return "", nil, false
		}
		token := e.items[0]
		p := c.place(token)
		if p != nil && p.life > c.now()+placeMost {
			p.life = c.now() + placeMost
			c.setPlace(token, p)
		}
		if p != nil && p.life >= c.now() {
			return token, p, true
		}
		e.items = e.items[1:]
		c.put(c.queue, e)
		c.unplace(token)
	}
	return "", nil, true
}

func (c *call) setPlace(token string, p *waiter) {
	e := c.get(c.places, "hash")
	if e.fields == nil {
		e.fields = map[string]string{}
	}
	e.fields[token] = p.String()
	c.put(c.places, e)
}

// handOver gives no holder if nobody waits, and "" if that is not known yet.
func (c *call) handOver(asking string) (holder string, fence int64, held bool) {
	if c.queue == "" {
		return "", 0, false
	}
	token, p, waiting := c.first()
	if p == nil {
		return "", 0, waiting
	}
	if p.keep != "0" {
		fence = c.fence(c.now(), number(p.keep))
	}
	c.Put(c.lock, "string", token, min(p.ttl, handedOverMost))
	c.leave(token)
	if token != asking && c.Publish != nil {
		elapsed := max(c.now()-p.heard, 0)
		c.Publish("redlock:wake:"+p.client, strings.Join([]string{
			"mutex", token, p.sent, strconv.FormatInt(elapsed, 10), strconv.FormatInt(fence, 10), c.lock,
		}, " "))
	}
	return token, fence, true
}

// tryToHandOver is a pcall of hand_over. It tells whether there is a new holder.
func (c *call) tryToHandOver() (held bool) {
	defer ignore()
	_, _, held = c.handOver("")
	return held
}

const releasedChannel = "redlock:released:"

// tells is whether the release of a holder is told to those who wait.
func tells(holder string) bool { return strings.HasPrefix(holder, "rl1:") }

func (c *call) publishRelease() (heard int64) {
	if c.Publish == nil {
		return 0
	}
	return c.Publish(releasedChannel+c.lock, "mutex")
}

func (c *call) wait(token, sent string, life, ttl int64, keep, client string) {
	if len(c.get(c.queue, "list").items) != len(c.get(c.places, "hash").fields) {
		c.Delete(c.queue)
		c.Delete(c.places)
	}
	since := c.now()
	if p := c.place(token); p != nil {
		since = p.since
	} else {
		e := c.get(c.queue, "list")
		e.items = append(e.items, token)
		c.put(c.queue, e)
	}
	c.setPlace(token, &waiter{c.now() + life*1000, c.now(), since, sent, ttl, keep, client})
	c.expire(c.queue, queueKeep)
	c.expire(c.places, queueKeep)
}

func (c *call) refusal(token, holder string) []core.Value {
	left, turn := max(c.left(c.lock), -1), int64(2)
	if tells(holder) {
		turn = 1
	}
	if c.queue == "" {
		listening := int64(0)
		if c.Listening != nil {
			listening = c.Listening(releasedChannel + c.lock)
		}
		return append(integers(script.No, left, turn, listening), core.Value{Str: script.Digest(holder)[:16], IsString: true})
	}
	if first, _, _ := c.first(); first != token {
		turn = 0
	}
	return integers(script.No, left, turn)
}

func (c *call) beat() []core.Value {
	token, ttl, keep := c.argv[0], number(c.argv[1]), c.argv[2]
	holder, held := c.look(c.lock)
	if held && holder.text == token {
		c.lengthen(c.lock, ttl)
		if keep == "0" {
			return integers(script.Yes, 0)
		}
		last, ok := c.counted()
		if !ok {
			last = c.fence(c.now(), number(keep))
		}
		return integers(script.Yes, last)
	}
	if _, ok := c.get(c.places, "hash").fields[token]; !ok {
		return integers(script.Gone)
	}
	c.wait(token, c.argv[4], number(c.argv[5]), ttl, keep, c.argv[3])
	name := holder.text
	if !held {
		var fence int64
		if name, fence, _ = c.handOver(token); name == token {
			c.lengthen(c.lock, ttl)
			return integers(script.Yes, fence)
		}
	}
	return c.refusal(token, name)
}
