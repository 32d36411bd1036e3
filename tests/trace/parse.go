// Package trace replays the golden traces of core/testdata: events of a client on a virtual clock, with scripted
// replies, and everything that the machine wants done about them.
//
// A trace is a list of lines "time event field=value ...", such as
//
//	0 acquire op=1 name="orders" ttl=10s wait=forever
//	1ms answer call=1-3 reply=[1 1700000000000000]
//	2s answer call=4 fault=unknown cause="timeout after 250 ms"
//
// Field names are those of core's events; an acquire's seed is op, 0, 0, ... and its wall clock
// 1700000000000000 + the time, unless they are given. call=1-3 is three answers, one after the other.
package trace

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/libredlock/libredlock/core"
)

// event is one line of a trace.
type event struct {
	line   string
	at     core.Time
	verb   string
	fields map[string]string // a value in quotes or brackets keeps them
	err    error             // the first field that makes no sense
}

// parseEvents reads a line of a trace.
func parseEvents(line string) (core.Time, []core.Event, error) {
	words, err := split(line)
	if err != nil {
		return 0, nil, err
	}
	if len(words) < 2 {
		return 0, nil, fmt.Errorf("want a time and an event")
	}
	e := &event{line: line, verb: words[1], fields: map[string]string{}}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		e.fields[key] = value
	}
	e.at = core.Time(e.parseDuration(words[0]))
	events := e.events()
	if e.err == nil {
		for key := range e.fields {
			e.err = fmt.Errorf("%s has no field %q", e.verb, key)
		}
	}
	return e.at, events, e.err
}

func (e *event) events() []core.Event {
	op := core.OpID(e.integer("op"))
	switch e.verb {
	case "acquire":
		return []core.Event{e.acquire(op)}
	case "renew":
		return []core.Event{&core.Renew{Op: op, Hold: core.OpID(e.integer("hold")), TTL: e.duration("ttl")}}
	case "release":
		return []core.Event{&core.Release{Op: op, Hold: core.OpID(e.integer("hold"))}}
	case "inspect":
		return []core.Event{&core.Inspect{Op: op, Kind: e.kind(), Name: e.text("name")}}
	case "force_release":
		return []core.Event{&core.ForceRelease{Op: op, Kind: e.kind(), Name: e.text("name"), Digest: e.text("digest")}}
	case "close":
		return []core.Event{&core.Close{Op: op}}
	case "cancel":
		return []core.Event{&core.Cancel{Op: op}}
	case "answer":
		return e.answers()
	case "tick":
		return []core.Event{&core.Tick{}}
	}
	node := int(e.integer("node"))
	switch e.verb {
	case "connected":
		return []core.Event{&core.Connected{Node: node, Facts: core.Facts{
			Unreadable: e.flag("unreadable"), Version: e.text("version"), RunID: e.text("run_id"), UptimeS: e.integer("uptime"),
			Replica: e.flag("replica"), Evicts: e.flag("evicts"), Capabilities: e.words("capabilities"),
		}}}
	case "subscribed":
		return []core.Event{&core.Subscribed{Node: node, Channel: e.text("channel")}}
	case "dropped":
		return []core.Event{&core.Dropped{Node: node, Channel: e.text("channel"), Cause: e.text("cause")}}
	case "message":
		return []core.Event{&core.Message{Node: node, Channel: e.text("channel"), Payload: e.text("payload")}}
	}
	e.err = fmt.Errorf("there is no event %q", e.verb)
	return nil
}

func (e *event) acquire(op core.OpID) *core.Acquire {
	a := &core.Acquire{
		Op: op, Kind: e.kind(), Name: e.text("name"), Permits: int(e.integer("permits")), TTL: e.duration("ttl"), Wait: e.duration("wait"),
		Fencing: e.toggle("fencing"), AutoRenew: e.toggle("auto_renew"), Queue: e.toggle("queue"),
		Retry:   core.Retry{Delay: e.duration("retry_delay"), Jitter: e.duration("retry_jitter"), MaxTries: int(e.integer("max_tries"))},
		MaxHold: e.duration("max_hold"), Metadata: e.text("metadata"),
		Seed: [16]byte{byte(op)}, Wall: 1_700_000_000_000_000 + int64(e.at),
	}
	if e.has("seed") {
		seed, err := hex.DecodeString(e.text("seed"))
		if err != nil || len(seed) != len(a.Seed) {
			e.err = fmt.Errorf("the seed is not 16 bytes in hex")
			return a
		}
		copy(a.Seed[:], seed)
	}
	if e.has("wall") {
		a.Wall = e.integer("wall")
	}
	return a
}

func (e *event) answers() (answers []core.Event) {
	first, last, several := strings.Cut(e.take("call"), "-")
	from, to := e.parseInteger(first), e.parseInteger(first)
	if several {
		to = e.parseInteger(last)
	}
	fault := e.choice("fault", "none", "refused", "unknown", "error")
	cause := e.text("cause")
	reply := e.words("reply")
	for id := from; id <= to; id++ {
		a := &core.Answer{Call: core.CallID(id), Fault: core.Fault(fault), Cause: cause}
		for _, word := range reply {
			if text, err := strconv.Unquote(word); err == nil {
				a.Reply = append(a.Reply, core.Value{Str: text, IsString: true})
			} else {
				a.Reply = append(a.Reply, core.Value{Int: e.parseInteger(word)})
			}
		}
		answers = append(answers, a)
	}
	return answers
}

// split cuts a line at its blanks, except within quotes and brackets.
func split(line string) (words []string, err error) {
	start, depth := -1, 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted, err := strconv.QuotedPrefix(line[i:])
			if err != nil {
				return nil, fmt.Errorf("a quote is not closed")
			}
			if start < 0 {
				start = i
			}
			i += len(quoted) - 1
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ' ' && depth == 0:
			if start >= 0 {
				words = append(words, line[start:i])
			}
			start = -1
			continue
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		words = append(words, line[start:])
	}
	if depth != 0 {
		return nil, fmt.Errorf("a bracket is not closed")
	}
	return words, nil
}

func (e *event) has(key string) bool { _, ok := e.fields[key]; return ok }

// take gives a field's value as it was written, and marks it as used.
func (e *event) take(key string) string {
	value := e.fields[key]
	delete(e.fields, key)
	return value
}

func (e *event) text(key string) string {
	value := e.take(key)
	if quoted, times, repeated := strings.Cut(value, `"*`); repeated { // "x"*1025
		return strings.Repeat(quoted[1:], int(e.parseInteger(times)))
	}
	if text, err := strconv.Unquote(value); err == nil {
		return text
	}
	return value
}

func (e *event) flag(key string) bool {
	set := e.has(key)
	e.take(key)
	return set
}

func (e *event) words(key string) []string {
	value := e.take(key)
	if value == "" {
		return nil
	}
	if !strings.HasPrefix(value, "[") || !strings.HasSuffix(value, "]") {
		e.err = fmt.Errorf("%s is not a [list]", key)
		return nil
	}
	words, err := split(value[1 : len(value)-1])
	if err != nil {
		e.err = err
	}
	return words
}

func (e *event) integer(key string) int64 { return e.parseInteger(e.take(key)) }

func (e *event) parseInteger(text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		e.err = fmt.Errorf("%q is not an integer", text)
	}
	return n
}

func (e *event) duration(key string) core.Duration { return e.parseDuration(e.take(key)) }

func (e *event) parseDuration(text string) core.Duration {
	switch text {
	case "", "0":
		return 0
	case "forever":
		return core.Forever
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		e.err = err
	}
	return core.Duration(d / time.Microsecond)
}

func (e *event) choice(key string, choices ...string) int {
	value := e.take(key)
	for i, choice := range choices {
		if value == choice || value == "" {
			return i
		}
	}
	e.err = fmt.Errorf("%s is none of %v", key, choices)
	return 0
}

func (e *event) toggle(key string) core.Toggle {
	return core.Toggle(e.choice(key, "default", "on", "off"))
}

var kinds = []string{"mutex", "reentrant", "read", "write", "semaphore", "multi"}

func (e *event) kind() core.Kind { return core.Kind(e.choice("kind", kinds...)) }
