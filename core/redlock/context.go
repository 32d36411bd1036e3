package redlock

import "context"

// withoutDeadline gives a context that is cancelled with its parent, but not by its parent's deadline.
func withoutDeadline(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		if parent.Err() == context.Canceled {
			cancel()
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
