package driver

import (
	"context"
	"errors"

	"github.com/libredlock/libredlock/core/redlock"
)

// sentinels are what errors.Is is to find in an error of each status.
var sentinels = map[string][]error{
	"HELD":        {redlock.ErrHeld},
	"TIMEOUT":     {redlock.ErrTimeout, context.DeadlineExceeded},
	"LOST":        {redlock.ErrLost},
	"UNAVAILABLE": {redlock.ErrUnavailable},
	"CANCELED":    {redlock.ErrCanceled, context.Canceled},
	"INVALID":     {redlock.ErrInvalid},
	"NOT_HELD":    {redlock.ErrNotHeld},
	"WRONG_KIND":  {redlock.ErrWrongKind},
	"UNSUPPORTED": {redlock.ErrUnsupported},
	"CLOSED":      {redlock.ErrClosed},
	"INTERNAL":    {redlock.ErrInternal},
}

// statusOf names the status of an error: that of its *redlock.Error, as long as
// errors.Is agrees. Anything else is no status, which no scenario expects.
func statusOf(err error) string {
	if err == nil {
		return "OK"
	}
	var failure *redlock.Error
	if !errors.As(err, &failure) {
		return "NO_REDLOCK_ERROR"
	}
	status := failure.Status.String()
	for name, errs := range sentinels {
		if errors.Is(err, errs[0]) != (name == status) {
			return "SENTINELS_DISAGREE"
		}
	}
	for _, sentinel := range sentinels[status] {
		if !errors.Is(err, sentinel) {
			return "SENTINELS_DISAGREE"
		}
	}
	return status
}

// messageOf is what is to be read of an error: one sentence, then a line for each node.
func messageOf(err error) string {
	var failure *redlock.Error
	if !errors.As(err, &failure) {
		return err.Error()
	}
	message := failure.Message
	for _, node := range failure.Nodes {
		message += "\n" + node.String()
	}
	return message
}
