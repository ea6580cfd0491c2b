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
	LaneStopped   Hindrance = "hold"            // an operator holds its lane, or the source of its event; see [Holds]
	InLine        Hindrance = "line"            // the jobs before it in its line
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

	Since  time.Time // when a hold began, or when a dead job stopped the line; zero otherwise
	Reason string    // of a hold, as its operator gave it; may be empty
	Source string    // the source that is held, if the job waits for that; empty if its lane is held

	// Job is a job that has a slot of the line. If Since is set, it is the dead job that stopped
	// the line. Place is the place in the line, 1 for the next job. It is 0 if it is not known,
	// and beyond core.MaxPage. Both are zero for other hindrances.
	Job   core.ID
	Place int
}

// A LaneStore has the methods of a store that Waits uses.
type LaneStore interface {
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Holding(ctx context.Context, now time.Time) ([]core.Hold, error)
	SourcesOf(ctx context.Context, events []core.ID) (map[core.ID]string, error)
	LinesOf(ctx context.Context, lane core.Lane, next int, keys ...string) ([]core.LineJobs, error)
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

// Of returns the waits of jobs; jobs that do not wait are absent. It queries the store twice
// for any number of jobs, once more if a source is held, once more for each lane with jobs
// that wait in lines, and not at all if none waits. Wait.Place is 0.
func (w *Waits) Of(ctx context.Context, jobs ...core.Job) (map[core.ID]Wait, error) {
	return w.of(ctx, 0, jobs)
}

// Exactly is Of with the places in lines, for a few jobs: it reads up to core.MaxPage places of
// each line.
func (w *Waits) Exactly(ctx context.Context, jobs ...core.Job) (map[core.ID]Wait, error) {
	return w.of(ctx, core.MaxPage, jobs)
}

// of returns the waits of jobs, and looks for them among the first places of their lines.
func (w *Waits) of(ctx context.Context, places int, jobs []core.Job) (map[core.ID]Wait, error) {
	lanes := lanesOf(jobs)
	if w == nil || len(lanes) == 0 {
		return nil, nil
	}
	outlooks, err := w.store.Due(ctx, lanes)
	if err != nil {
		return nil, err
	}
	now, waits := w.clock(), map[core.ID]Wait{}
	held, err := w.held(ctx, jobs, now)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if waiting(j) {
			waits[j.ID] = w.wait(j, outlooks[j.Lane].Gate, held, now)
		}
	}
	return waits, w.inLines(ctx, places, jobs, waits)
}

// inLines completes the waits of the jobs that wait in lines.
func (w *Waits) inLines(ctx context.Context, places int, jobs []core.Job, waits map[core.ID]Wait) error {
	keys := map[core.Lane][]string{}
	for _, j := range jobs {
		if waits[j.ID].For == InLine && !slices.Contains(keys[j.Lane], j.Line) {
			keys[j.Lane] = append(keys[j.Lane], j.Line)
		}
	}
	for lane, keys := range keys {
		lines, err := w.store.LinesOf(ctx, lane, places, keys...)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if i := slices.Index(keys, j.Line); i >= 0 && j.Lane == lane && waits[j.ID].For == InLine {
				waits[j.ID] = lineWait(j.ID, lines[i])
			}
		}
	}
	return nil
}

// lineWait returns the wait of a job in its line.
func lineWait(id core.ID, line core.LineJobs) Wait {
	wait := Wait{For: InLine, Since: line.StoppedAt, Job: line.StoppedBy, Place: slices.Index(line.Next, id) + 1}
	if wait.Job == "" && len(line.Holders) > 0 {
		wait.Job = line.Holders[0]
	}
	return wait
}

// A heldJobs has the lanes and sources that operators hold.
type heldJobs struct {
	lanes   map[core.Lane]core.Hold
	sources map[core.ID]string // of events; empty if no source is held
}

// held returns the holds, and the sources of the jobs' events if a source is held.
func (w *Waits) held(ctx context.Context, jobs []core.Job, now time.Time) (heldJobs, error) {
	holds, err := w.store.Holding(ctx, now)
	if err != nil {
		return heldJobs{}, err
	}
	held := heldJobs{lanes: make(map[core.Lane]core.Hold, len(holds))}
	ofSource := false
	for _, h := range holds {
		held.lanes[h.Lane] = h
		ofSource = ofSource || h.Lane.Source() != ""
	}
	if !ofSource {
		return held, nil
	}
	var events []core.ID
	for _, j := range jobs {
		if waiting(j) {
			events = append(events, j.EventID)
		}
	}
	held.sources, err = w.store.SourcesOf(ctx, events)
	return held, err
}

// source returns the hold of the source of a job's event, unless the job's time comes after the
// end of the hold.
func (h heldJobs) source(j core.Job, now time.Time) (hold core.Hold, held bool) {
	hold, held = h.lanes[core.SourceLane(h.sources[j.EventID])]
	over := !hold.Until.IsZero() && j.DueAt.After(now) && j.DueAt.After(hold.Until)
	return hold, held && !over
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

// wait returns the reason why a job waits, given the gate of its lane and the holds.
func (w *Waits) wait(j core.Job, g core.Gate, held heldJobs, now time.Time) Wait {
	early := j.DueAt.After(now)
	if g.Held(now) && !(early && j.DueAt.After(g.HeldUntil)) {
		return Wait{For: LaneStopped, Until: g.HoldEnd(), Since: g.HeldSince, Reason: held.lanes[j.Lane].Reason}
	}
	if h, ok := held.source(j, now); ok {
		return Wait{For: LaneStopped, Until: h.Until, Since: h.Since, Reason: h.Reason, Source: h.Lane.Source()}
	}
	switch {
	case !w.known[j.Lane] && j.Lane.Workflow() == "": // runs continue under the definition with which they began
		return Wait{For: NotConfigured}
	case j.Status == core.Waiting:
		return Wait{For: InLine}
	case g.Open() && !(early && j.DueAt.After(g.OpenUntil)):
		return Wait{For: BreakerOpen, Until: g.OpenUntil}
	case early:
		return Wait{For: NotDue, Until: j.DueAt}
	case j.Lane.Queue() != "":
		return Wait{For: NoConsumerYet}
	case g.StartAt(now).After(now):
		return Wait{For: RateReached, Until: g.NextAt}
	}
	return Wait{For: NoWorkerYet}
}
