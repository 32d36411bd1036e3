package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// formatEffects writes all that a step wants done, one thing a line; every field that is not
// zero is there. wake is the one before: it is written when it changes.
func formatEffects(out *strings.Builder, e core.Effects, wake core.Time) {
	formatCalls(out, e.Calls)
	for _, s := range e.Subscriptions {
		verb := "unsubscribe"
		if s.On {
			verb = "subscribe"
		}
		fmt.Fprintf(out, "  %s node %d %s\n", verb, s.Node, word(s.Channel))
	}
	for i := range e.Outcomes {
		formatOutcome(out, &e.Outcomes[i])
	}
	for _, n := range e.Notices {
		formatNotice(out, n)
	}
	if e.Wake != wake {
		fmt.Fprintf(out, "  wake %s\n", moment(e.Wake))
	}
}

// formatCalls writes calls that differ in their nodes only on one line.
func formatCalls(out *strings.Builder, calls []core.Call) {
	for len(calls) > 0 {
		first, same := calls[0], 1
		for same < len(calls) && calls[same].ID == first.ID+core.CallID(same) && calls[same].Node == first.Node+same &&
			calls[same].Timeout == first.Timeout && slices.Equal(calls[same].Args, first.Args) {
			same++
		}
		if last := calls[same-1]; same == 1 {
			fmt.Fprintf(out, "  call %d node %d", first.ID, first.Node)
		} else {
			fmt.Fprintf(out, "  calls %d-%d nodes %d-%d", first.ID, last.ID, first.Node, last.Node)
		}
		fmt.Fprintf(out, " timeout %s: %s\n", span(first.Timeout), command(first.Args))
		calls = calls[same:]
	}
}

// command writes a command with the name of its script instead of the SHA or the source.
func command(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = word(arg)
	}
	for _, s := range script.All {
		if len(args) > 1 && (args[0] == "EVALSHA" && args[1] == s.SHA || args[0] == "EVAL" && args[1] == s.Source) {
			words[1] = s.Name
		}
	}
	return strings.Join(words, " ")
}

func formatOutcome(out *strings.Builder, o *core.Outcome) {
	fmt.Fprintf(out, "  outcome %d %s", o.Op, o.Status)
	if o.Message != "" {
		fmt.Fprintf(out, ": %s", o.Message)
	}
	field(out, "token", o.Token)
	if o.Fence != 0 {
		fmt.Fprintf(out, " fence=%d", o.Fence)
	}
	if o.Slot != 0 {
		fmt.Fprintf(out, " slot=%d", o.Slot)
	}
	if o.Deadline != 0 {
		fmt.Fprintf(out, " deadline=%s", moment(o.Deadline))
	}
	out.WriteString("\n")
	for _, cause := range o.Nodes {
		fmt.Fprintf(out, "    %s\n", cause)
	}
	if o.Inspection == nil {
		return
	}
	fmt.Fprintf(out, "    %s fence=%d", kinds[o.Inspection.Kind], o.Inspection.Fence)
	if o.Inspection.QueueLength > 0 {
		fmt.Fprintf(out, " queue_length=%d queue_age=%s", o.Inspection.QueueLength, span(o.Inspection.QueueAge))
	}
	out.WriteString("\n")
	for _, h := range o.Inspection.Holders {
		fmt.Fprintf(out, "    holder who=%q digest=%s ttl=%s nodes=%d", h.Who, h.Digest, span(h.TTL), h.Nodes)
		if h.Slot != 0 {
			fmt.Fprintf(out, " slot=%d", h.Slot)
		}
		out.WriteString("\n")
	}
}

func formatNotice(out *strings.Builder, n core.Notice) {
	fmt.Fprintf(out, "  notice %s", [...]string{"lost", "deadline", "health"}[n.Kind])
	if n.Kind == core.NoticeHealth {
		fmt.Fprintf(out, " node=%d", n.Node)
	}
	if n.Hold != 0 {
		fmt.Fprintf(out, " hold=%d", n.Hold)
	}
	if n.Deadline != 0 {
		fmt.Fprintf(out, " deadline=%s", moment(n.Deadline))
	}
	field(out, "cause", n.Cause)
	out.WriteString("\n")
}

func field(out *strings.Builder, key, value string) {
	if value != "" {
		fmt.Fprintf(out, " %s=%s", key, word(value))
	}
}

// word quotes a text that is not one plain word.
func word(text string) string {
	if quoted := strconv.Quote(text); text == "" || quoted != `"`+text+`"` || strings.Contains(text, " ") {
		return quoted
	}
	return text
}

func span(d core.Duration) string {
	if d == core.Forever {
		return "forever"
	}
	return (time.Duration(d) * time.Microsecond).String()
}

func moment(t core.Time) string {
	if t == core.Never {
		return "never"
	}
	return span(core.Duration(t))
}
