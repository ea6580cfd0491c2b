package worker

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// strayRest is how long after one look for such jobs comes the next, strayTrouble how
	// long after one that failed.
	strayRest    = time.Hour
	strayTrouble = time.Minute

	// NotConfigured is the error of a job that died because nobody takes from its lane.
	NotConfigured = "handler not configured"

	// adoptRest is how long after one look for lanes to adopt comes the next, give or take
	// a quarter: other processes and the command line make runs go on that this process
	// knows nothing of.
	adoptRest = 10 * time.Second

	strayBatch = 100
)

// bury looks for strays, if it is time for that, or else for lanes to adopt, and returns
// when to do so again.
func (t *tick) bury(ctx context.Context, _ core.Budget) (pause time.Duration) {
	var err error
	if now := t.Clock(); !now.Before(t.buryAt) {
		t.buryAt = now.Add(strayRest)
		if err = t.buryStrays(ctx); err != nil {
			t.buryAt = now.Add(strayTrouble)
		}
	} else {
		_, err = t.strays(ctx)
	}
	if err != nil && ctx.Err() == nil {
		t.Observe(core.Troubled{Doing: "look for jobs without a handler", Err: err})
	}
	pause = t.buryAt.Sub(t.Clock())
	if t.Adopt != nil {
		pause = min(pause, rest(core.Budget{Rest: adoptRest}))
	}
	return pause
}

// adoptStrays takes lanes on before anything is taken from others. If that fails, the
// burying tries it again and says so.
func (t *tick) adoptStrays(ctx context.Context) {
	if t.Adopt != nil {
		_, _ = t.strays(ctx)
	}
}

// strays are the lanes in which jobs wait that nobody works for, and since when. Those
// that somebody can work for are adopted.
func (t *tick) strays(ctx context.Context) (map[core.Lane]time.Time, error) {
	known := slices.Concat(t.lanes(), t.Others, t.Queues)
	found, err := t.Worklist.Strays(ctx, t.Clock(), known)
	if err != nil {
		return nil, err
	}
	left := map[core.Lane]time.Time{}
	for lane, since := range found {
		if !t.adopt(lane) {
			left[lane] = since
		}
	}
	return left, nil
}

// buryStrays ends the jobs of lanes that nobody has known for core.StrayTime. Those of
// workflows are left as they are: a run ends by its own rules.
func (t *tick) buryStrays(ctx context.Context) error {
	strays, err := t.strays(ctx)
	if err != nil {
		return err
	}
	for lane, since := range strays {
		if t.Clock().Sub(since) < core.StrayTime || lane.Workflow() != "" {
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
	t.taking.enter()
	jobs, err := t.Worklist.Take(ctx, t.Clock(), []core.Quota{{Lane: lane, N: strayBatch, Hold: time.Minute}})
	fresh := t.hold(jobs)
	t.taking.leave()
	if err != nil {
		return 0, err
	}
	for _, j := range fresh {
		t.outcomes <- settlement{job: j, outcome: t.mourn(j, died(j, min(j.Attempt-1, j.MaxAttempts), NotConfigured, t.Clock()))}
	}
	return len(jobs), nil
}
