package sim

import (
	"slices"

	"github.com/libredlock/libredlock/core"
)

// subscription is a client's connection to a node for one channel.
type subscription struct {
	client  *client
	node    *node
	channel string
	on      bool // confirmed, and not broken
}

// subscribe does what an effect says.
func (w *world) subscribe(c *client, effect core.Subscription) {
	if !effect.On {
		w.subscriptions = slices.DeleteFunc(w.subscriptions, func(s *subscription) bool {
			return s.client == c && s.node.index == effect.Node && s.channel == effect.Channel
		})
		return
	}
	s := &subscription{client: c, node: w.nodes[effect.Node], channel: effect.Channel}
	w.subscriptions = append(w.subscriptions, s)
	c.logf("listens to %s on %s", s.channel, s.node.name)
	s.connect()
}

// connect tries until the node confirms.
func (s *subscription) connect() {
	w := s.client.world
	if s.client.crashed || s.client.closing {
		return
	}
	delay, ok := w.way(s.client, s.node)
	if !ok || w.now < s.node.downUntil || w.now < s.node.stalledUntil {
		w.after(100*core.Millisecond, s.connect)
		return
	}
	w.after(delay, func() {
		s.on = true
		w.after(w.delay(), func() {
			s.client.deliver(func() {
				if s.on {
					s.client.step(&core.Subscribed{Node: s.node.index, Channel: s.channel})
				}
			})
		})
	})
}

// drop breaks the connection, which the driver makes again.
func (s *subscription) drop() {
	if !s.on {
		return
	}
	s.on = false
	s.client.logf("its subscription on %s breaks", s.node.name)
	s.client.deliver(func() {
		s.client.step(&core.Dropped{Node: s.node.index, Channel: s.channel, Cause: "the server closed the connection"})
	})
	s.client.world.after(s.client.world.delay(), s.connect)
}

// publish takes a message to whoever listens; some of them never arrive.
func (w *world) publish(n *node, channel, payload string) (heard int64) {
	n.published = append(n.published, channel+" "+payload)
	for _, s := range w.subscriptions {
		if s.node != n || s.channel != channel || !s.on || s.client.crashed {
			continue
		}
		heard++
		delay, ok := w.way(s.client, n)
		if !ok {
			continue
		}
		w.result.Coverage.add("told of a hand-over")
		w.after(delay, func() {
			s.client.deliver(func() {
				s.client.logf("<- %s %q", n.name, payload)
				s.client.step(&core.Message{Node: n.index, Channel: channel, Payload: payload})
				w.check.told(w, s.client, payload)
			})
		})
	}
	return heard
}

func (w *world) listening(n *node, channel string) (count int64) {
	for _, s := range w.subscriptions {
		if s.node == n && s.channel == channel && s.on && !s.client.crashed {
			count++
		}
	}
	return count
}
