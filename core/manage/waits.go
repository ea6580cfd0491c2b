package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Hindrance is what is in the way of a job that is not finished.
type Hindrance string

// The hindrances. Of several that there are, the one that will be there longest counts.
const (
	NotDue        Hindrance = "time"            // its next attempt, or its end of a delay, is yet to come
	BreakerOpen   Hindrance = "circuit_breaker" // its handler's deliveries fail; a probe tells when they stop doing so
	RateReached   Hindrance = "rate_limit"      // its handler's, or that of one that has just recovered
	NoWorkerYet   Hindrance = "worker"          // nothing: a worker takes it when it comes to it
	NoConsumerYet Hindrance = "consumer"        // nothing: a consumer of its queue receives it
	NotConfigured Hindrance = "configuration"   // its handler or queue is not there any more
)

// A Wait is what a job waits for. The zero Wait is that of one that waits for nothing: it
// is finished, or under way.
type Wait struct {
	For   Hindrance
	Until time.Time // when that is over, or looked at again; zero if nobody knows
}

// A LaneStore is what of a store Waits asks.
type LaneStore interface {
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
}

// Waits tell what jobs wait for. They are safe for concurrent use. Nil tells nothing.
type Waits struct {
	store LaneStore
	clock core.Clock
	known map[core.Lane]bool
}

// NewWaits makes the service. Lanes are those of all that is configured.
func NewWaits(store LaneStore, clock core.Clock, lanes []core.Lane) *Waits {
	return &Waits{store: store, clock: clock, known: knownOf(lanes)}
}

// knownOf is the set of lanes.
func knownOf(lanes []core.Lane) map[core.Lane]bool {
	known := make(map[core.Lane]bool, len(lanes))
	for _, l := range lanes {
		known[l] = true
	}
	return known
}

// Of tells what jobs wait for; those that wait for nothing are absent. It asks the store
// once, whatever the number of jobs, and not at all if none waits.
func (w *Waits) Of(ctx context.Context, jobs ...core.Job) (map[core.ID]Wait, error) {
	lanes := lanesOf(jobs)
	if w == nil || len(lanes) == 0 {
		return nil, nil
	}
	outlooks, err := w.store.Due(ctx, lanes)
	if err != nil {
		return nil, err
	}
	now, waits := w.clock(), map[core.ID]Wait{}
	for _, j := range jobs {
		if waiting(j) {
			waits[j.ID] = w.wait(j, outlooks[j.Lane].Gate, now)
		}
	}
	return waits, nil
}

// lanesOf are the lanes in which some of the jobs wait.
func lanesOf(jobs []core.Job) (lanes []core.Lane) {
	for _, j := range jobs {
		if waiting(j) && !slices.Contains(lanes, j.Lane) {
			lanes = append(lanes, j.Lane)
		}
	}
	return lanes
}

func waiting(j core.Job) bool { return !j.Status.Finished() && j.Status != core.Running }

func (w *Waits) wait(j core.Job, g core.Gate, now time.Time) Wait {
	switch early := j.DueAt.After(now); {
	case !w.known[j.Lane] && j.Lane.Workflow() == "": // runs go on under the definition they began with
		return Wait{For: NotConfigured}
	case g.Open() && !(early && j.DueAt.After(g.OpenUntil)):
		return Wait{BreakerOpen, g.OpenUntil}
	case early:
		return Wait{NotDue, j.DueAt}
	case j.Lane.Queue() != "":
		return Wait{For: NoConsumerYet}
	case g.StartAt(now).After(now):
		return Wait{RateReached, g.NextAt}
	}
	return Wait{For: NoWorkerYet}
}
