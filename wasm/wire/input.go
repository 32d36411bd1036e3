package wire

import "github.com/libredlock/libredlock/core"

// batch is the input of a step, read as a whole.
type batch struct {
	now    core.Time
	open   *core.Config // the first event, if it is "open"
	events []core.Event // the others
}

// kinds are the names of core's kinds, in their order.
var kinds = [...]string{"mutex", "reentrant", "read", "write", "semaphore", "multi"}

// parse reads [now, [event, ...]]. memory is used for the events.
func parse(input []byte, memory []core.Event) (b batch, wrong string) {
	r := newReader(input)
	b.events = memory[:0]
	r.begin()
	b.now = r.time()
	r.begin()
	for r.more() {
		r.begin()
		if verb := r.word(); string(verb) == "open" && b.open == nil && len(b.events) == 0 {
			b.open = r.config()
		} else {
			b.events = append(b.events, r.event(verb))
		}
		r.end()
	}
	r.end()
	r.end()
	r.finish()
	return b, r.wrong
}

// config reads what follows "open".
func (r *reader) config() *core.Config {
	c := &core.Config{
		Nodes:            r.texts(),
		Prefix:           r.text(),
		NodeTimeout:      r.duration(),
		UnavailableAfter: r.duration(),
	}
	host, pid, language := r.text(), int(r.integer()), r.text()
	c.Who = core.Who(host, pid, language)
	return c
}

// event reads what follows the verb of any other event.
func (r *reader) event(verb []byte) core.Event {
	switch string(verb) {
	case "acquire":
		return r.acquire()
	case "renew":
		return &core.Renew{Op: r.op(), Hold: r.op(), TTL: r.duration()}
	case "release":
		return &core.Release{Op: r.op(), Hold: r.op()}
	case "inspect":
		return &core.Inspect{Op: r.op(), Kind: r.kind(), Name: r.text()}
	case "force_release":
		return &core.ForceRelease{Op: r.op(), Kind: r.kind(), Name: r.text(), Digest: r.text()}
	case "close":
		return &core.Close{Op: r.op()}
	case "cancel":
		return &core.Cancel{Op: r.op()}
	case "answer":
		return &core.Answer{Call: core.CallID(r.natural()), Reply: r.reply()}
	case "failed":
		return &core.Answer{Call: core.CallID(r.natural()), Fault: r.fault(), Cause: r.text()}
	case "connected":
		return &core.Connected{Node: r.node(), Facts: r.facts()}
	case "subscribed":
		return &core.Subscribed{Node: r.node(), Channel: r.text()}
	case "dropped":
		return &core.Dropped{Node: r.node(), Channel: r.text(), Cause: r.text()}
	case "message":
		return &core.Message{Node: r.node(), Channel: r.text(), Payload: r.text()}
	case "tick":
		return &core.Tick{}
	}
	r.expected(`an event (and "open" as the very first) before what is`)
	return nil
}

func (r *reader) acquire() *core.Acquire {
	return &core.Acquire{
		Op:        r.op(),
		Kind:      r.kind(),
		Name:      r.text(),
		Permits:   int(r.integer()),
		TTL:       r.duration(),
		Wait:      r.limit(),
		Fencing:   r.toggle(),
		AutoRenew: r.toggle(),
		Queue:     r.toggle(),
		Retry:     r.retry(),
		MaxHold:   r.duration(),
		Metadata:  r.text(),
		Seed:      r.seed(),
		Wall:      r.integer(),
	}
}

// retry reads [delay, jitter, tries].
func (r *reader) retry() (retry core.Retry) {
	if r.null() {
		return retry
	}
	r.begin()
	retry = core.Retry{Delay: r.duration(), Jitter: r.duration(), MaxTries: int(r.integer())}
	r.end()
	return retry
}

// time reads a moment, which is before Never.
func (r *reader) time() core.Time {
	t := core.Time(r.natural())
	if t == core.Never {
		r.expected("an earlier time before what is")
	}
	return t
}

func (r *reader) op() core.OpID { return core.OpID(r.natural()) }

func (r *reader) duration() core.Duration { return core.Duration(r.integer()) }

// limit reads a duration that may be without end.
func (r *reader) limit() core.Duration {
	if r.null() {
		return core.Forever
	}
	return r.duration()
}

func (r *reader) toggle() core.Toggle {
	switch {
	case r.null():
		return core.Default
	case r.boolean():
		return core.On
	}
	return core.Off
}

// kind reads a kind's name. One that there isn't is refused by the machine, as a bad argument.
func (r *reader) kind() core.Kind {
	name := r.word()
	for i := range kinds {
		if kinds[i] == string(name) {
			return core.Kind(i)
		}
	}
	return core.Kind(len(kinds))
}

func (r *reader) fault() core.Fault {
	switch string(r.word()) {
	case "refused":
		return core.Refused
	case "unknown":
		return core.Unknown
	case "error":
		return core.ErrorReply
	}
	r.expected(`"refused", "unknown" or "error" before what is`)
	return core.NoFault
}

// node reads a node's number. The machine ignores one that it does not have.
func (r *reader) node() int { return int(r.natural()) }

func (r *reader) facts() core.Facts {
	if r.null() {
		return core.Facts{Unreadable: true}
	}
	return core.Facts{
		Version:      r.text(),
		RunID:        r.text(),
		UptimeS:      r.integer(),
		Replica:      r.boolean(),
		Evicts:       r.boolean(),
		Capabilities: r.texts(),
	}
}

func (r *reader) texts() (list []string) {
	r.begin()
	for r.more() {
		list = append(list, r.text())
	}
	r.end()
	return list
}

// reply reads integers and strings.
func (r *reader) reply() (list []core.Value) {
	r.begin()
	for r.more() {
		if list == nil {
			list = make([]core.Value, 0, 4) // as many as most scripts reply
		}
		if r.nextIs('"') {
			list = append(list, core.Value{Str: r.text(), IsString: true})
		} else {
			list = append(list, core.Value{Int: r.integer()})
		}
	}
	r.end()
	return list
}

// seed reads 32 hex digits.
func (r *reader) seed() (seed [16]byte) {
	digits := r.word()
	valid := len(digits) == 2*len(seed)
	for i := 0; valid && i < len(seed); i++ {
		high, ok := hexDigit(digits[2*i])
		low, alsoOK := hexDigit(digits[2*i+1])
		seed[i] = high<<4 | low
		valid = ok && alsoOK
	}
	if !valid {
		r.expected("32 hex digits before what is")
	}
	return seed
}
