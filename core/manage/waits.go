package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Hindrance is the reason why an unfinished job waits.
type Hindrance string

// The hindrances. Of several, the longest counts.
const (
	NotDue        Hindrance = "time"            // the time of its next attempt, or the end of its delay, is in the future
	BreakerOpen   Hindrance = "circuit_breaker" // its handler's deliveries fail; a probe finds out when they succeed again
	RateReached   Hindrance = "rate_limit"      // the rate limit of its handler, or the ramp after its breaker closed
	NoWorkerYet   Hindrance = "worker"          // none: the next free worker takes it
	NoConsumerYet Hindrance = "consumer"        // none: a consumer of its queue receives it
	NotConfigured Hindrance = "configuration"   // its handler or queue was removed
)

// A Wait is the reason and the end of a job's wait. It is zero for a job that is finished,
// or under way.
type Wait struct {
	For   Hindrance
	Until time.Time // the end of the hindrance, or the time of the next check; zero if unknown
}

// A LaneStore has the methods of a store that Waits uses.
type LaneStore interface {
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
}

// Waits finds out why jobs wait. It is safe for concurrent use. A nil Waits returns
// nothing.
type Waits struct {
	store LaneStore
	clock core.Clock
	known map[core.Lane]bool
}

// NewWaits makes the service. Lanes are the lanes of all configured consumers.
func NewWaits(store LaneStore, clock core.Clock, lanes []core.Lane) *Waits {
	return &Waits{store: store, clock: clock, known: knownOf(lanes)}
}

// knownOf returns the set of lanes.
func knownOf(lanes []core.Lane) map[core.Lane]bool {
	known := make(map[core.Lane]bool, len(lanes))
	for _, l := range lanes {
		known[l] = true
	}
	return known
}

// Of returns the waits of jobs; jobs that do not wait are absent. It queries the store once
// for any number of jobs, and not at all if none waits.
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

// lanesOf returns the lanes in which some of the jobs wait.
func lanesOf(jobs []core.Job) (lanes []core.Lane) {
	for _, j := range jobs {
		if waiting(j) && !slices.Contains(lanes, j.Lane) {
			lanes = append(lanes, j.Lane)
		}
	}
	return lanes
}

// waiting reports whether a job is neither finished nor running.
func waiting(j core.Job) bool { return !j.Status.Finished() && j.Status != core.Running }

// wait returns the reason why a job waits, given the gate of its lane.
func (w *Waits) wait(j core.Job, g core.Gate, now time.Time) Wait {
	switch early := j.DueAt.After(now); {
	case !w.known[j.Lane] && j.Lane.Workflow() == "": // runs continue under the definition with which they began
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
