package worker

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// strayRest is how long after one look for such jobs comes the next.
	strayRest = time.Hour

	// NotConfigured is the error of a job that died because nobody takes from its lane.
	NotConfigured = "handler not configured"

	strayBatch = 100
)

// bury looks for strays until the tick ends, and once if it ends by itself.
func (t *tick) bury(ctx context.Context, b core.Budget) {
	for !t.over(ctx, b) {
		if err := t.buryStrays(ctx); err != nil && ctx.Err() == nil {
			t.Observe(core.Troubled{Doing: "look for jobs without a handler", Err: err})
		}
		if b.Rest == 0 {
			return
		}
		select {
		case <-time.After(strayRest):
		case <-ctx.Done():
		}
	}
}

// buryStrays ends the jobs of lanes that nobody has known for core.StrayTime.
func (t *tick) buryStrays(ctx context.Context) error {
	known := slices.Concat(t.lanes, t.Others, t.Queues)
	strays, err := t.Worklist.Strays(ctx, t.Clock(), known)
	if err != nil {
		return err
	}
	for lane, since := range strays {
		if t.Clock().Sub(since) < core.StrayTime {
			continue
		}
		for ctx.Err() == nil {
			n, err := t.buryLane(ctx, lane)
			if err != nil {
				return err
			}
			if n < strayBatch {
				break
			}
		}
	}
	return nil
}

// buryLane ends some jobs of a lane and returns how many.
func (t *tick) buryLane(ctx context.Context, lane core.Lane) (int, error) {
	jobs, err := t.Worklist.Take(ctx, t.Clock(), []core.Quota{{Lane: lane, N: strayBatch, Hold: time.Minute}})
	if err != nil {
		return 0, err
	}
	for _, j := range t.hold(jobs) {
		t.outcomes <- settlement{j, t.mourn(j, died(j, min(j.Attempt-1, j.MaxAttempts), NotConfigured, t.Clock()))}
	}
	return len(jobs), nil
}
