package wasmhost

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/libredlock/libredlock/core"
)

// Machine is a core.Machine that lives in an instance. As with that one, a Step that can't be done panics.
type Machine struct {
	Instance *Instance
	using    sync.Mutex
}

// Open opens a client in a fresh instance.
func Open(i *Instance, c core.Config) (*Machine, *core.Error) {
	m := &Machine{Instance: i}
	host, pid, language := parseWho(c.Who)
	event := []any{"open", texts(c.Nodes), text(c.Prefix), c.NodeTimeout, c.UnavailableAfter, text(host), pid, text(language)}
	outcome := m.feed(0, event).Outcomes[0]
	if outcome.Op != 0 {
		panic(fmt.Sprintf("open has the outcome %v", outcome))
	}
	return m, outcome.Err()
}

func parseWho(who string) (host string, pid int, language string) {
	part := strings.Split(who, "/")
	for len(part) < 3 {
		part = append(part, "")
	}
	host, _ = url.PathUnescape(part[0])
	pid, _ = strconv.Atoi(part[1])
	language, _ = url.PathUnescape(part[2])
	return host, pid, language
}

// Close ends the instance, when nothing steps it. Later steps panic.
func (m *Machine) Close() {
	m.using.Lock()
	defer m.using.Unlock()
	m.Instance.Close()
}

// Step feeds one event.
func (m *Machine) Step(now core.Time, event core.Event) core.Effects { return m.Feed(now, event) }

// Feed feeds events that happened at the same time in one step.
func (m *Machine) Feed(now core.Time, events ...core.Event) core.Effects {
	list := make([]any, len(events))
	for i, event := range events {
		list[i] = encode(event)
	}
	return m.feed(now, list...)
}

func (m *Machine) feed(now core.Time, events ...any) core.Effects {
	input, err := json.Marshal([]any{now, events})
	if err != nil {
		panic(err)
	}
	m.using.Lock()
	defer m.using.Unlock()
	output, sent, err := m.Instance.Step(input)
	if err != nil {
		panic(err)
	}
	effects, err := decode(output, sent)
	if err != nil {
		panic(err)
	}
	return effects
}

var kinds = []string{"mutex", "reentrant", "read", "write", "semaphore", "multi"}

func kind(k core.Kind) string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return "?"
}

// encode makes the array of an event.
func encode(event core.Event) []any {
	switch e := event.(type) {
	case *core.Acquire:
		return []any{"acquire", e.Op, kind(e.Kind), text(e.Name), e.Permits, e.TTL, limit(e.Wait), toggle(e.Fencing), toggle(e.AutoRenew),
			toggle(e.Queue), retry(e.Retry), e.MaxHold, text(e.Metadata), hex.EncodeToString(e.Seed[:]), e.Wall}
	case *core.Renew:
		return []any{"renew", e.Op, e.Hold, e.TTL}
	case *core.Release:
		return []any{"release", e.Op, e.Hold}
	case *core.Inspect:
		return []any{"inspect", e.Op, kind(e.Kind), text(e.Name)}
	case *core.ForceRelease:
		return []any{"force_release", e.Op, kind(e.Kind), text(e.Name), text(e.Digest)}
	case *core.Close:
		return []any{"close", e.Op}
	case *core.Cancel:
		return []any{"cancel", e.Op}
	case *core.Answer:
		return encodeAnswer(e)
	case *core.Connected:
		f := e.Facts
		if f.Unreadable {
			return []any{"connected", e.Node, nil}
		}
		return []any{"connected", e.Node, text(f.Version), text(f.RunID), f.UptimeS, f.Replica, f.Evicts, texts(f.Capabilities)}
	case *core.Subscribed:
		return []any{"subscribed", e.Node, text(e.Channel)}
	case *core.Dropped:
		return []any{"dropped", e.Node, text(e.Channel), text(e.Cause)}
	case *core.Message:
		return []any{"message", e.Node, text(e.Channel), text(e.Payload)}
	case *core.Tick:
		return []any{"tick"}
	}
	panic(fmt.Sprintf("there is no event %T", event))
}

func encodeAnswer(e *core.Answer) []any {
	switch e.Fault {
	case core.Refused:
		return []any{"failed", e.Call, "refused", text(e.Cause)}
	case core.Unknown:
		return []any{"failed", e.Call, "unknown", text(e.Cause)}
	case core.ErrorReply:
		return []any{"failed", e.Call, "error", text(e.Cause)}
	}
	values := make([]any, len(e.Reply))
	for i, v := range e.Reply {
		values[i] = v.Int
		if v.IsString {
			values[i] = text(v.Str)
		}
	}
	return []any{"answer", e.Call, values}
}

func limit(d core.Duration) any {
	if d == core.Forever {
		return nil
	}
	return d
}

func retry(r core.Retry) any {
	if r == (core.Retry{}) {
		return nil
	}
	return []any{r.Delay, r.Jitter, r.MaxTries}
}

func toggle(t core.Toggle) any {
	if t == core.Default {
		return nil
	}
	return t == core.On
}
