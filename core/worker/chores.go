package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// chores run beside the feeder until the tick ends. A tick without time to wait runs each
// once. A tick that ends by itself does not end before each has run once.
//
// A chore has its own goroutine, so a chore that waits for the database delays no delivery.
type chores struct {
	window  *window
	alarm   *alarm
	running sync.WaitGroup
	pending atomic.Int32 // chores that have not run once
}

// start runs a chore again and again. The chore returns how long to pause after it.
func (c *chores) start(ctx context.Context, chore func(context.Context) time.Duration) {
	c.pending.Add(1)
	c.running.Go(func() {
		once := sync.OnceFunc(func() { c.pending.Add(-1); c.alarm.nudge() })
		// A chore that never ran, because the window was over at once, must not keep the tick up.
		defer once()
		for !c.window.over(ctx) {
			pause := chore(ctx)
			once()
			if c.window.budget.Rest == 0 {
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
}

// allRan reports whether each chore has run at least once.
func (c *chores) allRan() bool { return c.pending.Load() == 0 }

// wait waits until the chores have ended.
func (c *chores) wait() { c.running.Wait() }
