package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A LineStore has the methods of a store that Lines uses.
type LineStore interface {
	Lines(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error)
	LinesOf(ctx context.Context, lane core.Lane, next int, keys ...string) ([]core.LineJobs, error)
	Skip(ctx context.Context, now time.Time, job core.ID) (bool, error)
	Job(ctx context.Context, id core.ID) (core.Job, error)
}

// Lines are the lines of handlers and queues. They are safe for concurrent use.
type Lines struct {
	// Bell is rung for the lane of a skipped job, and Observe gets a fact for each skip. Both
	// may be nil.
	Bell    *core.Bell
	Observe core.Observer

	// Waits returns why a job waits; nil returns nothing.
	Waits *Waits

	store LineStore
	clock core.Clock
	names *Names
	lined []core.Lane
}

// NewLines makes the service. Names are the names of all configured entries, and lined the lanes
// of the entries with lines.
func NewLines(store LineStore, clock core.Clock, names *Names, lined []core.Lane) *Lines {
	return &Lines{store: store, clock: clock, names: names, lined: lined}
}

// List lists the lines of a lane by key: the lines in which jobs have slots, so that an idle line
// is absent. List refuses a lane that has neither lines nor jobs in lines.
func (l *Lines) List(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error) {
	page, err := l.store.Lines(ctx, lane, after, limit)
	if err == nil && len(page.Items) == 0 && after == "" {
		err = l.check(lane)
	}
	return page, err
}

// check refuses a lane without lines.
func (l *Lines) check(lane core.Lane) error {
	if lane.Handler() == "" && lane.Queue() == "" {
		return core.Refuse(core.Invalid, "only handlers and queues have lines")
	}
	if err := l.names.Lane(lane); err != nil {
		return err
	}
	if !slices.Contains(l.lined, lane) {
		return core.Refuse(core.Invalid, `%s has no lines; "lines" in its configuration gives it some`, lane.Consumer())
	}
	return nil
}

// Bounds of Inspect: how many jobs with slots it returns, how many waiting jobs it returns, and up
// to how many waiting jobs it counts.
const (
	shownHolders = 20
	shownNext    = 20
	countedNext  = core.MaxPage
)

// A LineStory is a line with the first of its jobs.
type LineStory struct {
	core.LineState // Waiting is up to core.MaxPage

	Holders []core.Job // some of the jobs with slots
	Next    []core.Job // the first jobs that wait in the line
	Waits   map[core.ID]Wait
}

// Inspect returns a line with its jobs. The refusal of a line without jobs is of kind NotFound.
func (l *Lines) Inspect(ctx context.Context, lane core.Lane, key string) (LineStory, error) {
	if key == "" || len(key) > core.MaxLineKey {
		return LineStory{}, core.Refuse(core.Invalid, "the key of a line has 1 to %d bytes", core.MaxLineKey)
	}
	found, err := l.store.LinesOf(ctx, lane, countedNext, key)
	if err != nil {
		return LineStory{}, err
	}
	line := found[0]
	if line.Admitted+line.Waiting == 0 {
		if err := l.check(lane); err != nil {
			return LineStory{}, err
		}
		return LineStory{}, core.Refuse(core.NotFound, "no job of %s is in the line with this key", lane.Consumer())
	}
	story := LineStory{LineState: line.LineState}
	if story.Holders, err = l.jobs(ctx, line.Holders, shownHolders); err != nil {
		return LineStory{}, err
	}
	if story.Next, err = l.jobs(ctx, line.Next, shownNext); err != nil {
		return LineStory{}, err
	}
	story.Waits, err = l.Waits.Exactly(ctx, append(story.Holders[:len(story.Holders):len(story.Holders)], story.Next...)...)
	return story, err
}

// jobs reads the first of some jobs. A job that was deleted meanwhile is left out.
func (l *Lines) jobs(ctx context.Context, ids []core.ID, most int) (jobs []core.Job, _ error) {
	for _, id := range ids[:min(most, len(ids))] {
		job, err := l.store.Job(ctx, id)
		if core.IsKind(err, core.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// Skip lets the line go on that a dead job stops, and leaves the job dead. It refuses any other
// job, with the reason.
func (l *Lines) Skip(ctx context.Context, id core.ID) error {
	skipped, err := l.store.Skip(audited(ctx, core.AuditSkip, string(id)), l.clock(), id)
	if core.IsKind(err, core.NotFound) {
		return ErrJob
	}
	if err != nil {
		return err
	}
	job, err := l.store.Job(ctx, id)
	if err != nil {
		return err
	}
	if !skipped {
		return notSkipped(job)
	}
	l.Bell.Ring(job.Lane)
	tell(l.Observe, core.LineSkipped{Job: job})
	return nil
}

// notSkipped returns the refusal to skip a job that stops no line.
func notSkipped(job core.Job) error {
	switch {
	case job.Line == "":
		return core.Refuse(core.Invalid, "job %s is %s and in no line, so it stops none", job.ID, job.Status)
	case job.Status == core.Dead:
		return core.Refuse(core.Invalid, "job %s is dead, and its line goes on already", job.ID)
	}
	return core.Refuse(core.Invalid, "job %s is %s; only a dead job that stops its line can be skipped", job.ID, job.Status)
}
