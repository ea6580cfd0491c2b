package operate

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
)

const (
	// Turn is about how long one attempt does slices. It holds a slot of the worker meanwhile, so
	// it is short. A slot that waits between slices saves the claims of as many attempts.
	Turn = time.Second

	// rest is the pause after a slice without matches, which only reads.
	rest = 10 * time.Millisecond

	// Timeout bounds an attempt.
	Timeout = 10 * time.Second

	// Lease is how long the job of an operation is leased, and so how long an operation rests if its
	// worker vanishes. It may be short: if an attempt outlasts it, two workers do slices, and of two slices
	// with one Seq only one takes effect.
	Lease = 15 * time.Second
)

// Worklist is the part of a store that gives jobs back and completes them.
type Worklist interface {
	Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error)
	Release(ctx context.Context, due time.Time, jobs ...core.Job) error
}

// A Mover redrives runs. See [manage.Mover].
type Mover interface {
	Redrive(ctx context.Context, run core.ID, fromFailed bool, as core.Definition) (core.Run, error)
}

// Deps are the dependencies of a Doer.
type Deps struct {
	Walker
	Worklist Worklist
	Mover    Mover
	IDs      *core.IDs
	Clock    core.Clock
	Bell     *core.Bell
	Observe  core.Observer

	// Ending makes the alert about an operation that is over; nil makes none. See [alert.Endings].
	Ending func(op core.Operation, at time.Time) *core.Arrival

	// Every is the time between two slices at the default rate. A database where each commit is
	// a request gets fewer and larger ones.
	Every time.Duration

	// Rush is how many matches a slice of an operation without a rate has; 0 is core.MaxRush. A replay
	// has core.MaxSlice at most.
	Rush int
}

// A Doer does operations. It implements [worker.Steps] for the lane [core.OperationLane]. It keeps
// no state between calls.
type Doer struct{ Deps }

var _ worker.Steps = (*Doer)(nil)

// New makes a Doer.
func New(d Deps) *Doer { return &Doer{d} }

// Attempt does slices of the operation of a job, for about [Turn]. Its StepEnd is Final if the
// operation is over. Otherwise RetryAfter says when the next slice may begin.
//
// If the store fails, the job is to be given back, and the slices that were done stay done. An
// operation that cannot go on, for instance because its filter cannot be parsed, ends as failed.
func (d *Doer) Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error) {
	end := core.StepEnd{Job: job, Kind: core.Elapsed}
	if rushed, err := d.rushed(ctx, job.EventID); rushed || err != nil {
		end.At, end.RetryAfter = d.Clock(), Head
		return end, err == nil, err
	}
	for stop := d.Clock().Add(Turn); ; {
		op, err := d.Store.Operation(ctx, job.EventID)
		if core.IsKind(err, core.NotFound) { // it was purged
			return end, false, nil
		}
		if err == nil && op.State == core.OperationRunning {
			op, end.RetryAfter, err = d.slice(ctx, op)
		}
		if err != nil {
			return end, false, err
		}
		end.At, end.Final = d.Clock(), op.State != core.OperationRunning
		// A slice of a rate that is low is followed by a long wait, which is not spent here.
		if end.Final || !end.At.Add(end.RetryAfter).Before(stop) || !sleep(ctx, end.RetryAfter) {
			return end, true, nil
		}
	}
}

// sleep waits, and reports whether ctx is still going on.
func sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// slice does the next slice of an operation. It returns the operation afterwards, and how long the
// next slice has to wait.
func (d *Doer) slice(ctx context.Context, op core.Operation) (core.Operation, time.Duration, error) {
	b, err := d.Next(ctx, op, op.Cursor, d.Size(op))
	if core.IsKind(err, core.Invalid) {
		if op, err = d.Store.EndOperation(ctx, d.Clock(), op.ID, err.Error()); err == nil {
			d.Observe(core.OperationEnded{Operation: op})
		}
		return op, 0, err
	}
	if err != nil {
		return op, 0, err
	}
	return d.act(ctx, op, b)
}

// act does a slice with the next matches of an operation. Its results are those of slice.
func (d *Doer) act(ctx context.Context, op core.Operation, b Batch) (core.Operation, time.Duration, error) {
	s := core.Slice{Operation: op, Mark: d.IDs.Next(), Jobs: b.Jobs, Arrivals: b.Arrivals, Cursor: b.Cursor,
		Looked: b.Looked, Skipped: b.Skipped, State: core.OperationRunning}
	if b.Done {
		s.State = core.OperationFinished
	}
	var broken error
	if len(b.Runs) > 0 {
		if s, broken = d.redrive(ctx, s, b); broken != nil && s.Looked == 0 {
			return op, 0, broken
		}
	}
	done, err := d.Store.DoSlice(ctx, d.Clock(), s)
	if err != nil {
		return op, 0, err
	}
	d.ring(b)
	d.tell(b, done.Acted > op.Acted)
	// If another worker did a slice meanwhile, this one did nothing. Two workers may report the end
	// then; it is seldom, and the row is right.
	if done.State == core.OperationFinished {
		d.Observe(core.OperationEnded{Operation: done})
	}
	acted := max(0, done.Acted-op.Acted)
	if op.Rate == 0 && acted > 0 {
		return done, 0, broken
	}
	return done, max(rest, time.Duration(acted)*time.Second/time.Duration(max(1, op.Rate))), broken
}

// Size returns how many matches a slice of an operation has. At the default rate and on a database of
// this machine it is 10, so that an accept seldom waits for a slice.
func (d *Doer) Size(op core.Operation) int {
	switch n := cmp.Or(d.Deps.Rush, core.MaxRush); {
	case op.Rate == 0 && op.Action == core.ReplayAction:
		return min(n, core.MaxSlice)
	case op.Rate == 0:
		return n
	}
	n := int(time.Duration(op.Rate) * d.Every / time.Second)
	return min(max(1, n), core.MaxSlice)
}

// redrive redrives runs, and returns the slice that counts them. A run that was redriven is not
// failed any more, and fails again only after the operation was made. So no run is redriven twice,
// also if the slice is not stored. After an error the slice ends before the run that failed.
func (d *Doer) redrive(ctx context.Context, s core.Slice, b Batch) (core.Slice, error) {
	for i, run := range b.Runs {
		_, err := d.Mover.Redrive(ctx, run.ID, false, core.Definition{})
		switch {
		case err == nil:
			s.Acted++
		case core.IsKind(err, core.Invalid), core.IsKind(err, core.NotFound):
			s.Skipped++
		default:
			if s.State, s.Looked = core.OperationRunning, i; i > 0 {
				s.Cursor = string(b.Runs[i-1].ID)
			}
			return s, err
		}
	}
	return s, nil
}

// tell reports the events of a batch that got jobs, and the filters that failed for its events.
func (d *Doer) tell(b Batch, acted bool) {
	for _, f := range b.Failed {
		d.Observe(f)
	}
	for _, a := range b.Arrivals {
		if acted {
			d.Observe(core.Replayed{Event: a.Event, Asked: a.Jobs})
		}
	}
}

// ring rings for the lanes in which jobs may be due now.
func (d *Doer) ring(b Batch) {
	for _, j := range b.Jobs {
		d.Bell.Ring(j.Lane)
	}
	for _, a := range b.Arrivals {
		for _, j := range a.Jobs {
			d.Bell.Ring(j.Lane)
		}
	}
}

// Settle gives the jobs of operations back, due at their next slices, and completes the jobs of
// operations that are over.
func (d *Doer) Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error) {
	settled := make([]core.StepSettled, len(ends))
	var errs error
	for i, e := range ends {
		if e.Final {
			settled[i].Status, errs = core.Completed, errors.Join(errs, d.complete(ctx, e))
			continue
		}
		due := e.At.Add(e.RetryAfter)
		settled[i] = core.StepSettled{Status: core.Available, DueAt: due, Next: due}
		errs = errors.Join(errs, d.Worklist.Release(ctx, due, e.Job.Job))
	}
	return settled, errs
}

// complete completes the job of an operation that is over, with the alert about it.
func (d *Doer) complete(ctx context.Context, e core.StepEnd) error {
	o := core.Outcome{
		JobID: e.Job.ID, Lease: e.Job.Lease, Lane: e.Job.Lane, Status: core.Completed, At: e.At,
		Attempt: core.Attempt{Number: e.Job.Number(), StartedAt: e.At},
	}
	if d.Ending != nil {
		op, err := d.Store.Operation(ctx, e.Job.EventID)
		if err != nil && !core.IsKind(err, core.NotFound) {
			return err
		}
		if err == nil {
			o.GivesRise = d.Ending(op, e.At)
		}
	}
	settlement, err := d.Worklist.Settle(ctx, o)
	if err != nil || o.GivesRise == nil || len(settlement.Lost) > 0 {
		return err
	}
	for _, j := range o.GivesRise.Jobs {
		d.Bell.Ring(j.Lane)
	}
	d.Observe(core.Accepted{Event: o.GivesRise.Event, Jobs: len(o.GivesRise.Jobs), Asked: o.GivesRise.Jobs})
	return nil
}
