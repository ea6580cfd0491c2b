package boot

import (
	"context"
	"runtime/debug"
	"time"
)

// Functions count for curves as far as no sender waits for it. The worker's function stores its counts
// at the end of each invocation that counted something. An environment of the function of the API
// stores the minutes that are over, at the end of an invocation, so at most once a minute. The
// function that accepts events stores nothing: the worker's function counts the stored events, in the
// invocations of its schedule.

// minutesTime bounds the storing of counts, within the time that an invocation has left when its tick
// must be over (endBefore). Counts that could not be stored are stored by the next invocation of the
// environment.
const minutesTime = 700 * time.Millisecond

// censusTime bounds the counting of stored events.
const censusTime = 5 * time.Second

// countEvents counts the stored events of the minutes that are over.
func (f *function) countEvents(ctx context.Context, a *assembly) {
	ctx, cancel := context.WithTimeout(ctx, censusTime)
	defer cancel()
	f.countMinutes(ctx, a.Census.Tick)
}

// storeMinutes calls a function that stores counts.
func (f *function) storeMinutes(ctx context.Context, store func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), minutesTime)
	defer cancel()
	f.countMinutes(ctx, store)
}

// countMinutes calls a function that counts or stores counts. An error or a panic does not fail the
// invocation.
func (f *function) countMinutes(ctx context.Context, count func(context.Context) error) {
	defer func() {
		if v := recover(); v != nil {
			f.log.Error("panic while counting minutes", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	if err := count(ctx); err != nil {
		f.log.Error("counting minutes failed", "error", err)
	}
}
