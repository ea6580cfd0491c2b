package core

import (
	"context"
	"time"
)

// A limit is the longest time of an attempt, with its end.
type limit struct {
	time time.Duration
	end  time.Time
}

type limitKey struct{}

// WithLimit is context.WithTimeout for an attempt whose limit users see in texts. The work
// with this context begins a little later than the limit, tens of milliseconds on a busy
// machine. So the work cannot compute the limit from the deadline; [LimitOf] returns it.
func WithLimit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	end, _ := ctx.Deadline()
	return context.WithValue(ctx, limitKey{}, limit{d, end}), cancel
}

// LimitOf returns the longest time of the work that has this context. It is zero if the
// context has no deadline. It is the time that is left at start if the deadline was not set
// by WithLimit.
func LimitOf(ctx context.Context, start time.Time) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	if l, ok := ctx.Value(limitKey{}).(limit); ok && l.end.Equal(end) {
		return l.time
	}
	return end.Sub(start)
}
