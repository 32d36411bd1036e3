package core_test

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/sim"
)

// A whole driver: one loop that feeds the machine and does what it says. The server here is the
// simulation's; a real driver sends each call over the network and feeds its answer when it comes, or
// Unknown when the call's Timeout has passed.
func Example() {
	start := time.Now()
	now := func() core.Time { return core.Time(time.Since(start).Microseconds()) }
	server := sim.NewServer(func() int64 { return time.Now().UnixMicro() })

	machine, err := core.New(core.Config{Nodes: []string{"127.0.0.1:6379"}, Who: "example/1/go"})
	if err != nil {
		panic(err)
	}
	acquire := &core.Acquire{Op: 1, Name: "orders", TTL: 10 * core.Second, Wait: core.Forever, Wall: time.Now().UnixMicro()}
	rand.Read(acquire.Seed[:])

	events := []core.Event{acquire}
	for len(events) > 0 {
		event := events[0]
		events = events[1:]
		effects := machine.Step(now(), event)

		for _, call := range effects.Calls {
			answer := &core.Answer{Call: call.ID}
			reply, err := server.Do(call.Args)
			if answer.Reply = reply; err != nil {
				answer.Fault, answer.Cause = core.ErrorReply, err.Error()
			}
			events = append(events, answer)
		}
		for _, sub := range effects.Subscriptions {
			fmt.Println("listen to", sub.Channel, sub.On)
		}
		for _, outcome := range effects.Outcomes {
			switch outcome.Op {
			case 1:
				fmt.Println("acquire:", outcome.Status, outcome.Fence > 0, "for", (outcome.Deadline-now())/core.Time(core.Second), "s")
				events = append(events, &core.Release{Op: 2, Hold: 1})
			case 2:
				fmt.Println("release:", outcome.Status)
			}
		}
		for _, notice := range effects.Notices {
			fmt.Println("notice:", notice.Cause)
		}
		if len(events) == 0 && effects.Wake != core.Never {
			time.Sleep(time.Duration(effects.Wake-now()) * time.Microsecond)
			events = append(events, &core.Tick{})
		}
	}
	// Output:
	// acquire: OK true for 9 s
	// release: OK
}
