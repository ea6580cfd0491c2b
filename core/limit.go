package core

import (
	"context"
	"time"
)

// A limit is how long something may take, and when its time is over.
type limit struct {
	time time.Duration
	end  time.Time
}

type limitKey struct{}

// WithLimit is context.WithTimeout for an attempt of which users are told how long it might
// take: the work that is handed the context begins a little later, on a busy machine tens of
// milliseconds, and cannot tell the limit from the deadline.
func WithLimit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	end, _ := ctx.Deadline()
	return context.WithValue(ctx, limitKey{}, limit{d, end}), cancel
}

// LimitOf is how long what has this context might take. It is zero if the context has no
// deadline, and what is left at start if its deadline is not that of WithLimit.
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
