package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/line"
)

// milliseconds are the options of requests that are durations, by their key in the protocol.
var milliseconds = map[string]string{
	"ttl": "ttl_ms", "wait": "wait_ms", "max_hold": "max_hold_ms",
	"retry_delay": "retry_delay_ms", "retry_jitter": "retry_jitter_ms",
	"node_timeout": "node_timeout_ms", "unavailable_after": "unavailable_after_ms",
}

// options turns ttl=10s and the like into fields.
func options(words []Word) ([]line.Field, error) {
	var fields []line.Field
	for _, word := range words {
		key, value, found := strings.Cut(word.Text, "=")
		if !found || word.Quoted {
			return nil, fmt.Errorf("%q is no option", word.Text)
		}
		if field, isTime := milliseconds[key]; isTime {
			ms, err := inMilliseconds(value)
			if err != nil {
				return nil, err
			}
			key, value = field, strconv.FormatInt(ms, 10)
		}
		fields = append(fields, line.Field{Key: key, Value: value})
	}
	return fields, nil
}

func inMilliseconds(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	return d.Milliseconds(), nil
}

// open does "client a nodes=0,1 prefix=p: language=c".
func (w *World) open(s *Step, args []Word) error {
	if len(args) == 0 {
		return fmt.Errorf("a client needs a name")
	}
	name := args[0].Text
	if w.clients[name] != nil {
		return fmt.Errorf("there is a client %s already", name)
	}
	c := &client{driver: w.main, id: w.id + name}
	var urls []string
	for _, n := range w.nodes {
		urls = append(urls, n.url)
	}
	var rest []Word
	for _, arg := range args[1:] {
		if list, found := strings.CutPrefix(arg.Text, "nodes="); found {
			var err error
			if urls, err = w.nodeURLs(list); err != nil {
				return err
			}
		} else if driver, found := strings.CutPrefix(arg.Text, "driver="); found {
			c.driver = w.pool.Driver(w.t, driver)
		} else {
			rest = append(rest, arg)
		}
	}
	fields, err := options(rest)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(fields, func(f line.Field) bool { return f.Key == "node_timeout_ms" }) {
		fields = append(fields, line.Field{Key: "node_timeout_ms", Value: "2000"}) // a busy machine is no failing node
	}
	fields = append(fields, line.Field{Key: "client", Value: c.id})
	for _, url := range urls {
		fields = append(fields, line.Field{Key: "node", Value: url})
	}
	t := &task{client: c, call: c.driver.Send("open", fields...), started: time.Now()}
	reply, err := w.finish(s, t, callLimit)
	if err != nil {
		return err
	}
	if reply.Word == "OK" {
		w.clients[name] = c
	}
	return nil
}

// send sends a client's request: "a acquire x ttl=1s".
func (w *World) send(words []Word) (*task, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("a client's step needs a verb")
	}
	c := w.clients[words[0].Text]
	if c == nil {
		return nil, fmt.Errorf("no client is called %q", words[0].Text)
	}
	verb, args := words[1].Text, words[2:]
	t := &task{client: c}
	var fields []line.Field
	take := func() (Word, error) {
		if len(args) == 0 {
			return Word{}, fmt.Errorf("%s needs a name", verb)
		}
		word := args[0]
		args = args[1:]
		return word, nil
	}
	switch verb {
	case "acquire", "try_acquire", "inspect", "force_release":
		name, err := take()
		if err != nil {
			return nil, err
		}
		t.kind, name.Text = kindOf(name)
		fields = append(fields, line.Field{Key: "client", Value: c.id}, line.Field{Key: "kind", Value: t.kind},
			line.Field{Key: "name", Value: name.Text})
		switch verb {
		case "acquire", "try_acquire":
			w.lastHold++
			t.hold = fmt.Sprintf("%sh%d", w.id, w.lastHold)
			fields = append(fields, line.Field{Key: "held", Value: t.hold})
		case "force_release":
			digest, err := take()
			if err != nil {
				return nil, err
			}
			if known, found := w.digests[digest.Text]; found && !digest.Quoted {
				digest.Text = known
			}
			fields = append(fields, line.Field{Key: "digest", Value: digest.Text})
		}
	case "renew", "release":
		name, err := take()
		if err != nil {
			return nil, err
		}
		h, err := w.hold(name.Text)
		if err != nil {
			return nil, err
		}
		if h.driver != c.driver {
			return nil, fmt.Errorf("hold %s belongs to another driver", name.Text)
		}
		t.kind = h.kind
		fields = append(fields, line.Field{Key: "held", Value: h.id})
	case "close":
		fields = append(fields, line.Field{Key: "client", Value: c.id})
	default:
		return nil, fmt.Errorf("no verb is called %q", verb)
	}
	more, err := options(args)
	if err != nil {
		return nil, err
	}
	t.started = time.Now()
	t.call = c.driver.Send(verb, append(fields, more...)...)
	return t, nil
}

// kindOf takes a lock's name apart: "semaphore:x" is x as a semaphore, and "x", as "mutex:x" is, x as a mutex.
func kindOf(word Word) (kind, name string) {
	if kind, name, found := strings.Cut(word.Text, ":"); found && !word.Quoted && slices.Contains(kinds, kind) {
		return kind, name
	}
	return "mutex", word.Text
}

// request does a client's request and checks its reply.
func (w *World) request(s *Step) error {
	t, err := w.send(s.Words)
	if err != nil {
		return err
	}
	_, err = w.finish(s, t, callLimit)
	return err
}

// finish waits for the reply of a request, notes what was seen and checks what the step expects.
func (w *World) finish(s *Step, t *task, limit time.Duration) (*line.Line, error) {
	reply, err := t.client.driver.Await(t.call, limit)
	if err != nil {
		return nil, err
	}
	took := time.Since(t.started)
	w.coverage.Saw(t.client.driver.Name, t.kind, t.call.Verb, reply.Word)
	var acquired *hold
	if reply.Word == "OK" && t.hold != "" {
		fence, err := strconv.ParseUint(reply.Get("fence"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the reply has no fence: %s", reply)
		}
		acquired = &hold{driver: t.client.driver, id: t.hold, kind: t.kind, token: reply.Get("token"), fence: fence}
	}
	return reply, w.check(s.Expect, reply, acquired, took)
}

// start does "start w: a acquire x wait=5s".
func (w *World) start(args []Word) error {
	if len(args) < 2 || !strings.HasSuffix(args[0].Text, ":") {
		return fmt.Errorf("expected: start <task>: <client> <request>")
	}
	name := strings.TrimSuffix(args[0].Text, ":")
	if w.tasks[name] != nil {
		return fmt.Errorf("there is a task %s already", name)
	}
	t, err := w.send(args[1:])
	if err != nil {
		return err
	}
	w.tasks[name] = t
	return nil
}

// await does "await w -> OK as h" and "await w within 600ms -> OK as h".
func (w *World) await(s *Step, args []Word) error {
	if len(args) == 0 || w.tasks[args[0].Text] == nil {
		return fmt.Errorf("await needs the name of a task")
	}
	t, limit := w.tasks[args[0].Text], callLimit
	if len(args) > 1 {
		if len(args) != 3 || args[1].Text != "within" {
			return fmt.Errorf("expected: await <task> [within <duration>]")
		}
		var err error
		if limit, err = time.ParseDuration(args[2].Text); err != nil {
			return err
		}
	}
	delete(w.tasks, args[0].Text)
	_, err := w.finish(s, t, limit)
	return err
}

// pending does "pending w for 200ms": the task must not end in this time.
func (w *World) pending(args []Word) error {
	if len(args) != 3 || w.tasks[args[0].Text] == nil || args[1].Text != "for" {
		return fmt.Errorf("expected: pending <task> for <duration>")
	}
	d, err := time.ParseDuration(args[2].Text)
	if err != nil {
		return err
	}
	t := w.tasks[args[0].Text]
	if reply, err := t.client.driver.Await(t.call, d); err == nil {
		return fmt.Errorf("it ended: %s", reply)
	}
	return t.client.driver.Err()
}

// cancel does "cancel w".
func (w *World) cancel(args []Word) error {
	if len(args) != 1 || w.tasks[args[0].Text] == nil {
		return fmt.Errorf("cancel needs the name of a task")
	}
	t := w.tasks[args[0].Text]
	t.started = time.Now() // what is awaited from now on is its end
	reply, err := t.client.driver.Call(callLimit, "cancel", line.Field{Key: "request", Value: t.call.ID})
	if err != nil {
		return err
	}
	w.coverage.Saw(t.client.driver.Name, t.kind, "cancel", reply.Word)
	if reply.Word != "OK" {
		return fmt.Errorf("cancel: %s", reply)
	}
	return nil
}

// awaitLost does "await lost h within 300ms".
func (w *World) awaitLost(args []Word) error {
	if len(args) != 3 || args[1].Text != "within" {
		return fmt.Errorf("expected: await lost <hold> within <duration>")
	}
	h, err := w.hold(args[0].Text)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[2].Text)
	if err != nil {
		return err
	}
	if !lostWithin(h.driver, h.id, d) {
		return fmt.Errorf("nobody told within %v that it is lost", d)
	}
	return nil
}

// notLost does "not lost h".
func (w *World) notLost(args []Word) error {
	if len(args) != 2 || args[0].Text != "lost" {
		return fmt.Errorf("expected: not lost <hold>")
	}
	h, err := w.hold(args[1].Text)
	if err != nil {
		return err
	}
	if lostWithin(h.driver, h.id, 0) {
		return fmt.Errorf("it is lost")
	}
	return nil
}

func lostWithin(d *drivers.Driver, hold string, limit time.Duration) bool {
	select {
	case <-d.Lost(hold):
		return true
	default:
	}
	select {
	case <-d.Lost(hold):
		return true
	case <-time.After(limit):
		return false
	}
}
