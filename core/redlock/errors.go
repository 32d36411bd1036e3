package redlock

import (
	"context"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// Status says how a request ended, chosen by what the caller can do about it.
type Status = core.Status

// NodeCause is why one node did not do its part.
type NodeCause = core.NodeCause

// Error is what every failing call returns.
type Error struct {
	Status  Status
	Message string
	Nodes   []NodeCause // the nodes that failed

	context error // the end of the caller's context, if that is why
}

// What errors.Is compares with.
var (
	ErrHeld        = sentinel(core.Held, "someone else holds it")
	ErrTimeout     = sentinel(core.Timeout, "the wait limit passed")
	ErrLost        = sentinel(core.Lost, "it was ours and is no longer: stop the work")
	ErrUnavailable = sentinel(core.Unavailable, "too few nodes answered")
	ErrCanceled    = sentinel(core.Canceled, "the caller gave up")
	ErrInvalid     = sentinel(core.Invalid, "bad argument, or illegal in this state")
	ErrNotHeld     = sentinel(core.NotHeld, "never held, or released already")
	ErrWrongKind   = sentinel(core.WrongKind, "the key holds another kind of value")
	ErrUnsupported = sentinel(core.Unsupported, "the server, or this version, can't do it")
	ErrClosed      = sentinel(core.Closed, "the client is closed")
	ErrInternal    = sentinel(core.Internal, "a bug in libredlock")
)

func sentinel(status Status, message string) *Error { return &Error{Status: status, Message: message} }

// Error returns one sentence, then one for each node that failed.
func (e *Error) Error() string {
	text := "redlock: " + e.Status.String() + ": " + e.Message
	for i, node := range e.Nodes {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		text += separator + node.String()
	}
	return strings.ToValidUTF8(text, "?")
}

// Is matches the sentinel of the same status.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Status == e.Status && other.Nodes == nil
}

// Unwrap gives context.Canceled or context.DeadlineExceeded if the caller's context is the reason.
func (e *Error) Unwrap() error { return e.context }

// wrap makes an error of the core one of this package; nil stays nil.
func wrap(err *core.Error) error {
	if err == nil {
		return nil
	}
	return &Error{Status: err.Status, Message: err.Message, Nodes: err.Nodes}
}

// contextError is the error of a call whose context had ended before it began.
func contextError(ctx context.Context, err error) error {
	return &Error{Status: core.Canceled, Message: "the context had ended before: " + context.Cause(ctx).Error(), context: err}
}
