// Package operate does operations: retries, replays, cancels and redrives of all that a filter
// selects. See [core.Operation].
//
// The idea to know: an operation is a job in a lane of its own, and its state is a row. An attempt
// of the job does some slices. Each slice reads a bounded number of jobs, events or runs behind the
// operation's cursor ([Walker]), and acts on the matches and moves the cursor in one commit
// ([core.OperationLog.DoSlice]). Then the job is given back, due when the rate of the operation
// allows the next slice. So a worker that vanishes, a function that ends and two workers need no
// code here: leases and the fence of a slice cover them.
//
// The runs of a redrive are the exception: each is redriven in a commit of its own, before the commit
// that counts the slice (Doer.redrive). If the process ends between these commits, those runs are
// redriven and not counted. The next slice does not redrive them again, since they are no matches.
//
//	POST /api/operations ─▶ row + event + job ─▶ worker ─▶ Doer: slice, slice, ... ─▶ job completed
//
// A record that was made, died or failed after the operation was made is no match. So an operation never
// acts on its own results, such as a retried job that died again. A record that is stored when
// it is made is earlier, also if the clock of another process is some seconds ahead ([Walker.Moment]).
//
// The package imports core and core/worker. Package manage uses its Walker for plans.
package operate

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Bounds of one Walker.Next.
const (
	maxLooks  = 2000 // rows that it looks at
	walkChunk = 200  // rows that it reads at once
	maxRepeat = 100  // events that it reads at once, since they come in full
)

// A Store has the methods of a store that a Walker uses.
type Store interface {
	core.OperationLog
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
	Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error)
	Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error)
	Newest(ctx context.Context) (id core.ID, finished time.Time, err error)
}

// A Walker finds the matches of operations. It is safe for concurrent use.
type Walker struct {
	Store Store

	// Match matches a stored event with the configured consumers: see [intake.Rematch]. Select
	// parses a filter: see [intake.Select].
	Match  func(core.Event) core.Arrival
	Select func(filter string) (func(core.Event) bool, error)
}

// A Batch is the next matches of an operation. One of Jobs, Arrivals and Runs has them, depending
// on the action.
type Batch struct {
	Jobs     []core.Job
	Arrivals []core.Arrival // each with a job at least
	Runs     []core.Run

	// Failed are the filters of consumers that failed for events that it looked at. Their events have
	// no payload.
	Failed []core.FilterFailed

	Cursor  string // where the walk goes on
	Looked  int
	Skipped int  // matches that cannot be acted on
	Done    bool // there are no more
}

// Matches returns how many matches the batch has.
func (b *Batch) Matches() int { return len(b.Jobs) + len(b.Arrivals) + len(b.Runs) }

// Next returns at most n of the matches behind a cursor; "" is the beginning. It looks at
// [maxLooks] rows at most, so a batch may be empty and not Done. A filter text that cannot be
// parsed is refused as [core.Invalid].
func (w *Walker) Next(ctx context.Context, op core.Operation, cursor string, n int) (Batch, error) {
	b := &walk{Walker: w, op: op, n: n}
	b.Cursor = cursor
	err := b.read(ctx)
	return b.Batch, err
}

// A walk is a batch that is being read.
type walk struct {
	*Walker
	Batch
	op    core.Operation
	n     int
	bytes int // of the payloads of its events
}

func (b *walk) read(ctx context.Context) error {
	step := map[core.Action]func(context.Context) error{
		core.RetryAction: b.finished, core.CancelAction: b.waiting, core.ReplayAction: b.events, core.RedriveAction: b.runs,
	}[b.op.Action]
	if step == nil {
		return core.Refuse(core.Invalid, "the action %q is of a newer version", b.op.Action)
	}
	for !b.Done && !b.full() {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *walk) full() bool {
	return b.Matches() >= b.n || b.Looked >= maxLooks || b.bytes >= core.MaxRead
}

// below returns the id below which all matches are: the operation's own, or an earlier one.
func (b *walk) below() core.ID {
	if !b.op.Filter.Until.IsZero() {
		return min(b.op.ID, core.FirstID(b.op.Filter.Until))
	}
	return b.op.ID
}

// first returns the first id that may match.
func (b *walk) first() core.ID {
	if b.op.Filter.Since.IsZero() {
		return ""
	}
	return core.FirstID(b.op.Filter.Since)
}

// finished reads dead or canceled jobs, lane by lane and the oldest of a lane first. Jobs of lines
// enter them again in this order. The cursor is the lane and the id of the last job.
func (b *walk) finished(ctx context.Context) error {
	f := b.op.Filter
	w := core.FinishedWalk{Status: core.Dead, Lane: f.Lane, Only: f.Lane != "", From: b.first(), Below: b.below(), Limit: walkChunk}
	if f.Status != "" {
		w.Status = core.Status(f.Status)
	}
	if lane, id, ok := strings.Cut(b.Cursor, " "); ok {
		w.Lane, w.After = core.Lane(lane), core.ID(id)
	}
	if f.Error == "" && f.Source == "" && f.Type == "" { // each row is a match
		w.Limit = max(walkChunk, b.n-b.Matches())
	}
	jobs, err := b.Store.FinishedJobs(ctx, w)
	if err != nil {
		return err
	}
	kinds, err := b.kinds(ctx, jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if b.full() {
			return nil
		}
		b.Looked++
		b.Cursor = string(j.Lane) + " " + string(j.ID)
		if !j.Lane.Operation() && b.madeBefore(j.FinishedAt) && b.fits(kinds, j.EventID, j.LastError) {
			b.Jobs = append(b.Jobs, j)
		}
	}
	b.Done = len(jobs) < w.Limit
	return nil
}

// madeBefore reports whether a job died or a run ended before the operation was made.
func (b *walk) madeBefore(end time.Time) bool { return !end.After(b.op.CreatedAt) }

// waiting reads jobs that wait, newest first. The cursor is the id of the last job.
func (b *walk) waiting(ctx context.Context) error {
	f := b.op.Filter
	page, err := b.Store.Jobs(ctx, core.JobFilter{Status: core.Status(f.Status), Lane: f.Lane, Since: f.Since, After: b.before(), Limit: walkChunk})
	if err != nil {
		return err
	}
	kinds, err := b.kinds(ctx, page.Items)
	if err != nil {
		return err
	}
	for _, j := range page.Items {
		if b.full() {
			return nil
		}
		b.Looked++
		b.Cursor = string(j.ID)
		if j.Status.Finished() || j.Lane.Operation() || j.Lane.Workflow() != "" || !b.fits(kinds, j.EventID, j.LastError) {
			continue
		}
		if j.Status == core.Running {
			b.Skipped++
		} else {
			b.Jobs = append(b.Jobs, j)
		}
	}
	b.Done = !page.More
	return nil
}

// before returns the id below which a walk from the newest to the oldest goes on.
func (b *walk) before() core.ID {
	if b.Cursor != "" {
		return core.ID(b.Cursor)
	}
	return b.below()
}

// kinds reads the sources and types of the events of jobs, if the filter asks for them.
func (b *walk) kinds(ctx context.Context, jobs []core.Job) (map[core.ID]core.EventKind, error) {
	if b.op.Filter.Source == "" && b.op.Filter.Type == "" {
		return nil, nil
	}
	events := make([]core.ID, len(jobs))
	for i, j := range jobs {
		events[i] = j.EventID
	}
	return b.Store.KindsOf(ctx, events)
}

// fits reports whether the event and the error of a job or run fit the filter.
func (b *walk) fits(kinds map[core.ID]core.EventKind, event core.ID, failure string) bool {
	f, kind := b.op.Filter, kinds[event]
	return (f.Source == "" || f.Source == kind.Source) && (f.Type == "" || f.Type == kind.Type) && strings.Contains(failure, f.Error)
}

// runs reads failed or canceled runs, newest first. The cursor is the id of the last run.
func (b *walk) runs(ctx context.Context) error {
	f := b.op.Filter
	status := core.RunFailed
	if f.Status != "" {
		status = core.RunStatus(f.Status)
	}
	page, err := b.Store.Runs(ctx, core.RunFilter{Status: status, Workflow: f.Lane.Workflow(), After: b.before(), Limit: walkChunk})
	if err != nil {
		return err
	}
	var kinds map[core.ID]core.EventKind
	if f.Source != "" || f.Type != "" {
		events := make([]core.ID, len(page.Items))
		for i, r := range page.Items {
			events[i] = r.EventID
		}
		if kinds, err = b.Store.KindsOf(ctx, events); err != nil {
			return err
		}
	}
	for _, r := range page.Items {
		if r.ID < b.first() {
			b.Done = true
			return nil
		}
		if b.full() {
			return nil
		}
		b.Looked++
		b.Cursor = string(r.ID)
		if b.madeBefore(r.FinishedAt) && b.fits(kinds, r.EventID, r.Error) {
			b.Runs = append(b.Runs, r)
		}
	}
	b.Done = !page.More
	return nil
}

// events reads events, oldest first, and matches them with the consumers. The cursor is the id at
// which the next read begins. The batch is full at [core.MaxRead] bytes of payloads too, since it holds
// the events in memory.
func (b *walk) events(ctx context.Context) error {
	f := b.op.Filter
	wanted := func(core.Event) bool { return true }
	if f.Match != "" {
		var err error
		if wanted, err = b.Select(f.Match); err != nil {
			return core.Refuse(core.Invalid, "match: %v", err)
		}
	}
	page, err := b.Store.Read(ctx, cmp.Or(core.ID(b.Cursor), f.First), core.EventFilter{Source: f.Source, Type: f.Type, DeliveryID: f.DeliveryID,
		Since: f.Since, Until: f.Until, Limit: min(maxRepeat, b.n-b.Matches())})
	if err != nil {
		return err
	}
	for _, e := range page.Items {
		if e.ID >= b.op.ID || f.Last != "" && e.ID > f.Last {
			b.Done = true
			return nil
		}
		b.Looked++
		b.Cursor = string(e.ID.Next())
		if wanted(e) {
			b.event(e)
		}
		if e.ID == f.Last {
			b.Done = true
			return nil
		}
	}
	b.Done = !page.More
	return nil
}

// event matches an event with the consumers, and adds it to the batch.
func (b *walk) event(e core.Event) {
	a := Only(b.Match(e), b.op.To)
	for _, u := range a.Undecided {
		told := e
		told.Payload = nil // there may be many
		b.Failed = append(b.Failed, core.FilterFailed{Event: told, Undecided: u})
	}
	if len(a.Jobs) == 0 {
		b.Skipped++
		return
	}
	b.Arrivals = append(b.Arrivals, a)
	b.bytes += len(e.Payload)
}

// Only returns an arrival with those of its jobs and runs that are for some consumers; with all of
// them if there are none.
func Only(a core.Arrival, lanes []core.Lane) core.Arrival {
	if len(lanes) == 0 {
		return a
	}
	kept := map[core.Lane]bool{}
	for _, l := range lanes {
		kept[l] = true
	}
	jobs := map[core.ID]bool{}
	all, runs := a.Jobs, a.Runs
	a.Jobs, a.Runs = nil, nil
	for _, j := range all {
		if kept[j.Lane] {
			a.Jobs, jobs[j.ID] = append(a.Jobs, j), true
		}
	}
	for _, r := range runs {
		if jobs[r.StepID] {
			a.Runs = append(a.Runs, r)
		}
	}
	return a
}
