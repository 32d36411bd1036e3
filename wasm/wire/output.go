package wire

import "github.com/libredlock/libredlock/core"

// output is what the steps of a batch want done, in the four lists that they leave the plugin in. Each is
// without its closing bracket.
type output struct {
	outcomes, notices, calls, subscriptions []byte

	step, sends []byte
}

func (o *output) begin() {
	o.outcomes = append(o.outcomes[:0], '[')
	o.notices = append(o.notices[:0], '[')
	o.calls = append(o.calls[:0], '[')
	o.subscriptions = append(o.subscriptions[:0], '[')
}

func (o *output) add(e core.Effects) {
	for i := range e.Outcomes {
		o.outcomes = appendOutcome(o.outcomes, &e.Outcomes[i])
	}
	for _, n := range e.Notices {
		o.notices = appendNotice(o.notices, n)
	}
	for _, c := range e.Calls {
		o.calls = appendCall(o.calls, c)
	}
	for _, s := range e.Subscriptions {
		o.subscriptions = append(next(o.subscriptions), '[')
		o.subscriptions = appendInt(o.subscriptions, int64(s.Node))
		o.subscriptions = AppendText(o.subscriptions, s.Channel)
		o.subscriptions = append(appendBool(o.subscriptions, s.On), ']')
	}
}

// finish gives the output of the step, and what is to be sent: nil if nothing.
func (o *output) finish(wake core.Time) (step, sends []byte) {
	o.step = join(o.step, o.outcomes, o.notices)
	o.step = append(appendLimit(o.step, wake), ']')
	if len(o.calls) > 1 || len(o.subscriptions) > 1 {
		o.sends = append(join(o.sends, o.calls, o.subscriptions), ']')
		sends = o.sends
	}
	return o.step, sends
}

// join begins an array with two lists.
func join(out, first, second []byte) []byte {
	out = append(append(out[:0], '['), first...)
	out = append(append(out, "],"...), second...)
	return append(out, ']')
}

func appendCall(out []byte, c core.Call) []byte {
	out = append(next(out), '[')
	out = appendInt(out, int64(c.ID))
	out = appendInt(out, int64(c.Node))
	out = appendInt(out, int64(c.Timeout))
	out = append(next(out), '[')
	for _, arg := range c.Args {
		out = AppendText(out, arg)
	}
	return append(out, "]]"...)
}

func appendOutcome(out []byte, o *core.Outcome) []byte {
	out = append(next(out), '[')
	out = appendInt(out, int64(o.Op))
	out = appendInt(out, int64(o.Status))
	if o.Status != core.OK {
		out = AppendText(out, o.Message)
		out = append(next(out), '[')
		for _, n := range o.Nodes {
			out = append(next(out), '[')
			out = appendInt(out, int64(n.Node))
			out = AppendText(out, n.Address)
			out = append(AppendText(out, n.Cause), ']')
		}
		return append(out, "]]"...)
	}
	out = AppendText(out, o.Token)
	out = appendInt(out, o.Fence)
	out = appendInt(out, int64(o.Deadline))
	if o.Inspection == nil {
		out = append(out, ",null"...)
	} else {
		out = appendInspection(out, o.Inspection)
	}
	return append(appendInt(out, int64(o.Slot)), ']')
}

func appendInspection(out []byte, i *core.Inspection) []byte {
	out = append(next(out), '[')
	out = AppendText(out, kinds[i.Kind])
	out = appendInt(out, i.Fence)
	out = append(next(out), '[')
	for _, h := range i.Holders {
		out = append(next(out), '[')
		out = AppendText(out, h.Who)
		out = AppendText(out, h.Digest)
		out = appendLimit(out, h.TTL)
		out = appendInt(out, int64(h.Nodes))
		out = append(appendInt(out, int64(h.Slot)), ']')
	}
	out = append(out, ']')
	out = appendInt(out, i.QueueLength)
	return append(appendInt(out, int64(i.QueueAge)), ']')
}

func appendNotice(out []byte, n core.Notice) []byte {
	out = append(next(out), '[')
	switch n.Kind {
	case core.NoticeLost:
		out = AppendText(out, "lost")
		out = appendInt(out, int64(n.Hold))
		out = AppendText(out, n.Cause)
	case core.NoticeDeadline:
		out = AppendText(out, "deadline")
		out = appendInt(out, int64(n.Hold))
		out = appendInt(out, int64(n.Deadline))
	case core.NoticeHealth:
		out = AppendText(out, "health")
		out = appendInt(out, int64(n.Node))
		out = AppendText(out, n.Cause)
	}
	return append(out, ']')
}
