package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// strayRest is how long a worker waits between two looks for strays to bury, and
	// strayTrouble how long after a look that failed.
	strayRest    = time.Hour
	strayTrouble = time.Minute

	// NotConfigured is the error of a job that died because no process takes from its lane.
	NotConfigured = "handler not configured"

	// adoptRest is how long a worker waits between two looks for lanes to adopt, give or take a
	// quarter. It bounds the delay of runs that other processes or the command line continue,
	// since this process gets no ring for those.
	adoptRest = 10 * time.Second

	strayBatch = 100
)

// A strayChore looks after strays: lanes in which jobs wait and that no worker is configured
// for. It adopts the lanes that Deps.Adopt has a target for, and ends the jobs of the others
// after core.StrayTime.
//
// The wait before a stray is ended gives an operator time to notice a handler that was removed
// or renamed by mistake. To configure it again keeps its jobs.
type strayChore struct {
	*Worker
	roster   *roster
	leases   *leases
	outcomes chan<- settlement

	buryAt time.Time // when to bury next
}

// round buries strays if it is time for that, or else adopts lanes. It returns how long to
// pause.
func (c *strayChore) round(ctx context.Context) (pause time.Duration) {
	var err error
	if now := c.Clock(); !now.Before(c.buryAt) {
		c.buryAt = now.Add(strayRest)
		if err = c.bury(ctx); err != nil {
			c.buryAt = now.Add(strayTrouble)
		}
	} else {
		_, err = c.find(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.Observe(core.Troubled{Doing: "look for jobs without a handler", Err: err})
	}
	pause = c.buryAt.Sub(c.Clock())
	if c.Adopt != nil {
		pause = min(pause, spread(adoptRest))
	}
	return pause
}

// adoptAll adopts lanes before jobs are taken from others. If that fails, the next round
// tries it again and reports the failure.
func (c *strayChore) adoptAll(ctx context.Context) {
	if c.Adopt != nil {
		_, _ = c.find(ctx)
	}
}

// find adopts lanes. It returns the lanes in which jobs wait and that could not be adopted,
// each with the time since which its oldest job waits.
func (c *strayChore) find(ctx context.Context) (map[core.Lane]time.Time, error) {
	known := slices.Concat(c.roster.lanes(), c.Others, c.Queues)
	found, err := c.Worklist.Strays(ctx, c.Clock(), known)
	if err != nil {
		return nil, err
	}
	left := map[core.Lane]time.Time{}
	for lane, since := range found {
		if !c.roster.adopt(lane) {
			left[lane] = since
		}
	}
	return left, nil
}

// bury ends the jobs of lanes that have been strays for core.StrayTime. Jobs of workflows stay
// as they are: a run ends by its own rules.
func (c *strayChore) bury(ctx context.Context) error {
	strays, err := c.find(ctx)
	if err != nil {
		return err
	}
	for lane, since := range strays {
		if c.Clock().Sub(since) < core.StrayTime || lane.Workflow() != "" {
			continue
		}
		// A removed handler may have left many jobs: they are taken in batches, each under a lease.
		for ctx.Err() == nil {
			more, err := c.buryLane(ctx, lane)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

// buryLane ends up to strayBatch jobs of a lane, and reports whether there may be more. The end of a
// job admits the next job of its line, so buryLane waits until the ends of such jobs are stored.
func (c *strayChore) buryLane(ctx context.Context, lane core.Lane) (more bool, err error) {
	jobs, taken, err := c.leases.claim(func() ([]core.TakenJob, error) {
		return c.Worklist.Take(ctx, c.Clock(), []core.Quota{{Lane: lane, N: strayBatch, Hold: time.Minute}})
	})
	if err != nil {
		return false, err
	}
	var passing sync.WaitGroup
	more = taken == strayBatch
	for _, j := range jobs {
		end := core.LineRules{}.Apply(j.Job, died(j, min(j.Attempt-1, j.MaxAttempts), NotConfigured, c.Clock()))
		s := settlement{job: j, outcome: c.withObituary(j, end)}
		if end.PassesSlot() {
			more = true
			passing.Add(1)
			s.ended = passing.Done
		}
		c.outcomes <- s
	}
	passing.Wait()
	return more, nil
}
