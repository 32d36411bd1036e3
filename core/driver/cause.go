package driver

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core"
)

// dialError is a connection that could not be made: nothing was sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// classify tells whether a call that failed may have been executed, and why it failed.
func classify(err error, call core.Call) (core.Fault, string) {
	var reply redis.Error
	if errors.As(err, &reply) {
		return core.ErrorReply, oneLine(reply.Error())
	}
	fault := core.Unknown
	var dial dialError
	if errors.As(err, &dial) || errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) {
		fault = core.Refused
	}
	return fault, cause(err, call)
}

// isReply tells whether an error is a server's answer, rather than the lack of one.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// isFull tells whether a server refused the connection, by an error reply before it closed it.
func isFull(err error) bool { return strings.Contains(err.Error(), "max number of clients reached") }

// cause puts a network failure into few words.
func cause(err error, call core.Call) string {
	var network net.Error
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &network) && network.Timeout():
		return timeoutCause(call)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return oneLine(err.Error())
}

func timeoutCause(call core.Call) string {
	return "timeout after " + strconv.FormatInt(int64(call.Timeout/core.Millisecond), 10) + " ms"
}

// oneLine keeps a text that came from outside from breaking the form of a message.
func oneLine(text string) string {
	text = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text), "?")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return text
}
