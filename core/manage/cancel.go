package manage

import (
	"context"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// A RunCanceler cancels runs that no worker has begun. It refuses any other run with
// [core.Invalid].
type RunCanceler interface {
	CancelPending(ctx context.Context, run core.ID) (core.Run, error)
}

// A Canceled is the result of a Cancel.
type Canceled struct {
	Event core.ID

	// The jobs of handlers, queues and places of alerts.
	core.Cancellation

	// CanceledRuns are the workflow runs that the call canceled, and RunningRuns the runs that
	// it left alone because they are under way. Both are newest first.
	CanceledRuns, RunningRuns []core.ID
}

// Cancel ends the jobs of an event that no worker or consumer holds, and the workflow runs that no
// worker has begun. Jobs and runs under way are left alone and counted: a job whose attempt fails
// is tried again, unless a later Cancel ends it.
//
// The event of an operation is refused as [core.Invalid]: [Operations.Cancel] ends its job too.
func (e *Events) Cancel(ctx context.Context, id core.ID) (Canceled, error) {
	c := Canceled{Event: id}
	kinds, err := e.store.KindsOf(ctx, []core.ID{id})
	if err != nil {
		return Canceled{}, err
	}
	if k := kinds[id]; k.Source == core.AlertSource && strings.HasPrefix(k.Type, core.OperationEvent) {
		return Canceled{}, core.Refuse(core.Invalid, "event %s is an operation; to end it, cancel the operation", id)
	}
	ctx = audited(ctx, core.AuditCancel, string(id)) // one entry for the jobs and the runs
	c.Cancellation, err = e.store.Cancel(ctx, e.clock(), id)
	if core.IsKind(err, core.NotFound) {
		return Canceled{}, ErrEvent
	}
	if c.Canceled > 0 {
		e.ringLines(ctx, id)
	}
	if err == nil {
		err = e.cancelRuns(ctx, &c)
	}
	if c.Canceled+len(c.CanceledRuns) > 0 { // also of a call that failed later
		tell(e.Observe, core.EventCanceled{ID: id, Jobs: c.Canceled, Running: c.Running, Runs: len(c.CanceledRuns)})
	}
	return c, err
}

// ringLines rings for the lanes in whose lines the event has jobs, because the next jobs of these
// lines may be due now. If the jobs cannot be read, no bell rings, and a worker's next look at the
// database finds them.
func (e *Events) ringLines(ctx context.Context, id core.ID) {
	jobs, err := e.store.JobsOf(ctx, []core.ID{id})
	if err != nil {
		return
	}
	for _, j := range jobs[id] {
		if j.Line != "" {
			e.Bell.Ring(j.Lane)
		}
	}
}

// cancelRuns cancels the pending runs of an event, page by page.
func (e *Events) cancelRuns(ctx context.Context, c *Canceled) error {
	if e.Runs == nil {
		return nil
	}
	for f := (core.RunFilter{EventID: c.Event, Limit: core.MaxPage}); ; {
		page, err := e.store.Runs(ctx, f)
		if err != nil {
			return err
		}
		for _, run := range page.Items {
			if err := e.cancelRun(ctx, run, c); err != nil {
				return err
			}
			f.After = run.ID
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
	}
}

// cancelRun cancels a run if it is pending. If a worker has begun it since it was read, it counts as
// running.
func (e *Events) cancelRun(ctx context.Context, run core.Run, c *Canceled) error {
	if run.Status == core.RunPending {
		_, err := e.Runs.CancelPending(ctx, run.ID)
		switch {
		case err == nil:
			c.CanceledRuns = append(c.CanceledRuns, run.ID)
			return nil
		case core.IsKind(err, core.NotFound): // it was purged
			return nil
		case !core.IsKind(err, core.Invalid):
			return err
		}
		if run, err = e.store.Run(ctx, run.ID); err != nil {
			if core.IsKind(err, core.NotFound) {
				return nil
			}
			return err
		}
	}
	if !run.Status.Finished() {
		c.RunningRuns = append(c.RunningRuns, run.ID)
	}
	return nil
}
