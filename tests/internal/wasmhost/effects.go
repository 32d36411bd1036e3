package wasmhost

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/libredlock/libredlock/core"
)

// decode reads what a step gave and what redis_send got.
func decode(output, sent []byte) (e core.Effects, err error) {
	var outcomes, notices json.RawMessage
	var wake *core.Time
	if err := row(output, &outcomes, &notices, &wake); err != nil {
		return e, err
	}
	e.Wake = core.Never
	if wake != nil {
		e.Wake = *wake
	}
	if e.Outcomes, err = rows(outcomes, decodeOutcome); err != nil {
		return e, err
	}
	if e.Notices, err = rows(notices, decodeNotice); err != nil || sent == nil {
		return e, err
	}
	var calls, subscriptions json.RawMessage
	if err = row(sent, &calls, &subscriptions); err != nil {
		return e, err
	}
	if e.Calls, err = rows(calls, decodeCall); err != nil {
		return e, err
	}
	e.Subscriptions, err = rows(subscriptions, func(raw []byte) (s core.Subscription, err error) {
		err = row(raw, &s.Node, (*text)(&s.Channel), &s.On)
		return s, err
	})
	if len(e.Calls)+len(e.Subscriptions) == 0 {
		err = fmt.Errorf("redis_send got nothing to send: %s", sent)
	}
	return e, err
}

func decodeCall(raw []byte) (c core.Call, err error) {
	var args []text
	err = row(raw, &c.ID, &c.Node, &c.Timeout, &args)
	for _, arg := range args {
		c.Args = append(c.Args, string(arg))
	}
	return c, err
}

func decodeOutcome(raw []byte) (o core.Outcome, err error) {
	var head []json.RawMessage
	if err = json.Unmarshal(raw, &head); err != nil || len(head) < 2 {
		return o, fmt.Errorf("%s is no outcome", raw)
	}
	if err = json.Unmarshal(head[1], &o.Status); err != nil {
		return o, err
	}
	var rest json.RawMessage
	if o.Status != core.OK {
		if err = row(raw, &o.Op, &o.Status, (*text)(&o.Message), &rest); err != nil {
			return o, err
		}
		o.Nodes, err = rows(rest, func(raw []byte) (n core.NodeCause, err error) {
			err = row(raw, &n.Node, (*text)(&n.Address), (*text)(&n.Cause))
			return n, err
		})
		return o, err
	}
	if err = row(raw, &o.Op, &o.Status, (*text)(&o.Token), &o.Fence, &o.Deadline, &rest, &o.Slot); err != nil || string(rest) == "null" {
		return o, err
	}
	o.Inspection, err = decodeInspection(rest)
	return o, err
}

func decodeInspection(raw []byte) (*core.Inspection, error) {
	var i core.Inspection
	var kind string
	var holders json.RawMessage
	if err := row(raw, &kind, &i.Fence, &holders, &i.QueueLength, &i.QueueAge); err != nil {
		return nil, err
	}
	if i.Kind = core.Kind(slices.Index(kinds, kind)); i.Kind < 0 {
		return nil, fmt.Errorf("there is no kind %q", kind)
	}
	var err error
	i.Holders, err = rows(holders, func(raw []byte) (h core.Holder, err error) {
		var ttl *core.Duration
		err = row(raw, (*text)(&h.Who), (*text)(&h.Digest), &ttl, &h.Nodes, &h.Slot)
		h.TTL = core.Forever
		if ttl != nil {
			h.TTL = *ttl
		}
		return h, err
	})
	return &i, err
}

func decodeNotice(raw []byte) (n core.Notice, err error) {
	var head []json.RawMessage
	if err = json.Unmarshal(raw, &head); err != nil || len(head) == 0 {
		return n, fmt.Errorf("%s is no notice", raw)
	}
	var verb string
	if err = json.Unmarshal(head[0], &verb); err != nil {
		return n, err
	}
	switch verb {
	case "lost":
		n.Kind = core.NoticeLost
		err = row(raw, &verb, &n.Hold, (*text)(&n.Cause))
	case "deadline":
		n.Kind = core.NoticeDeadline
		err = row(raw, &verb, &n.Hold, &n.Deadline)
	case "health":
		n.Kind = core.NoticeHealth
		err = row(raw, &verb, &n.Node, (*text)(&n.Cause))
	default:
		err = fmt.Errorf("there is no notice %q", verb)
	}
	return n, err
}
