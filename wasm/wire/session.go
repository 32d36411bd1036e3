// Package wire is redlock.wasm without its edges: core's machine behind text. docs/reference.md ("The plugin:
// redlock.wasm") is the contract of what goes in and out.
//
// The text is JSON, read and written by hand: encoding/json would make the plugin a third larger, and a step ten
// times as slow.
package wire

import "github.com/libredlock/libredlock/core"

// Version is that of the plugin.
const Version = "0.1.0"

// Session is one client. Its zero value waits for the event "open".
type Session struct {
	machine *core.Machine
	wake    core.Time
	output  output
	events  []core.Event
	failure error // of the machine: it can't go on
}

// Failure is a step that gave no output. Its text begins with "malformed: " or "internal: ".
type Failure string

func (f Failure) Error() string { return string(f) }

const (
	malformed = "malformed: "
	internal  = "internal: "
)

// Step takes a batch of events that happened, and gives the output and what is for redis_send, nil if nothing is. Both
// are valid until the next Step.
//
// If the input makes no sense nothing of it is done. If the machine panics, the session has failed
// for good.
func (s *Session) Step(input []byte) (output, sends []byte, err error) {
	if s.failure != nil {
		return nil, nil, s.failure
	}
	defer func() {
		if reason := recover(); reason != nil {
			output, sends, err = nil, nil, s.Fail(reason)
		}
	}()
	batch, wrong := parse(input, s.events)
	if wrong == "" && (s.machine == nil) != (batch.open != nil) {
		wrong = `"open" comes first, and once`
	}
	if wrong != "" {
		return nil, nil, Failure(malformed + wrong)
	}
	s.output.begin()
	if batch.open == nil || s.open(batch.open) {
		for _, event := range batch.events {
			effects := s.machine.Step(batch.now, event)
			s.output.add(effects)
			s.wake = effects.Wake
		}
	}
	clear(batch.events)
	s.events = batch.events
	output, sends = s.output.finish(s.wake)
	return output, sends, nil
}

// open makes the machine. If that fails, what came with it in one batch is not done.
func (s *Session) open(config *core.Config) bool {
	s.wake = core.Never
	machine, err := core.New(*config)
	outcome := core.Outcome{Status: core.OK}
	if err != nil {
		outcome = core.Outcome{Status: err.Status, Message: err.Message, Nodes: err.Nodes}
	} else {
		s.machine = machine
	}
	s.output.outcomes = appendOutcome(s.output.outcomes, &outcome)
	return err == nil
}

// Fail makes every later Step fail with the same error, which it gives back. The reason is what a panic said.
func (s *Session) Fail(reason any) error {
	text := "panic"
	switch reason := reason.(type) {
	case string:
		text = reason
	case error:
		text = reason.Error()
	}
	s.failure = Failure(internal + text)
	return s.failure
}
