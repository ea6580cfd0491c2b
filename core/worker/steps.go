package worker

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Steps does what the jobs of workflows ask for. What an attempt leads to is decided
// where it is stored, by the run as it stands then.
type Steps interface {
	// Attempt does what the job of a step asks for, and bounds the call that it makes.
	// ctx ends when the lease may. False means that the run has moved on and the job is to
	// be closed. An error means that nobody can tell yet what is to be done: the job is to
	// be given back, for about a second if it is [core.Unavailable].
	Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error)

	// Settle stores how attempts ended, and tells for each what became of it. After an
	// error the same ends may be settled again: what was stored by then is not lost.
	Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error)
}

const (
	// putOff is how long a job is left alone of which nobody can tell what it asks for,
	// since a variable of the environment is missing, say; putOffBusy how long, about, if
	// others are at its run, or the database is away.
	putOff     = time.Minute
	putOffBusy = time.Second

	// MovedOn is the error of a job that was closed because the run does without it.
	MovedOn = "the run has moved on"
)

// step makes one attempt of a step.
func (t *tick) step(to Target, job *core.TakenJob) {
	ctx, cancel := context.WithTimeout(t.hard, to.Hold)
	defer cancel()
	started := t.Clock()
	var end core.StepEnd
	var current bool
	err := core.Contain(func() (err error) {
		end, current, err = to.Steps.Attempt(ctx, *job)
		return err
	})
	t.pace.sent(t.Clock().Sub(started))
	s := settlement{job: job}
	switch {
	case t.hard.Err() != nil && (err != nil || current && end.Kind == core.Refused):
		return // it was cut short by us; its lease will tell
	case err != nil:
		t.Observe(core.Troubled{Doing: "run a workflow", Err: err})
		s.kind, s.soon = postponed, core.IsKind(err, core.Unavailable)
	case !current:
		s.kind, s.outcome = stale, closed(job, t.Clock())
	default:
		s.kind, s.end, s.steps = stepped, &end, to.Steps
	}
	t.outcomes <- s
}

// closed is the end of a job that its run does without.
func closed(job *core.TakenJob, now time.Time) core.Outcome {
	return core.Outcome{
		JobID:   job.ID,
		Lease:   job.Lease,
		Lane:    job.Lane,
		Status:  core.Completed,
		At:      now,
		Attempt: core.Attempt{Number: job.Attempt, Error: MovedOn, StartedAt: now},
	}
}

// writeEnds stores how attempts of steps ended, as writeOutcomes does with outcomes.
func (t *tick) writeEnds(batch []settlement) {
	for by, group := range bySteps(batch) {
		t.writeStepped(by, group)
	}
}

// bySteps parts a batch by who stores it, in its order.
func bySteps(batch []settlement) iter.Seq2[Steps, []settlement] {
	return func(yield func(Steps, []settlement) bool) {
		for len(batch) > 0 {
			by := batch[0].steps
			var own, rest []settlement
			for _, s := range batch {
				if s.steps == by {
					own = append(own, s)
				} else {
					rest = append(rest, s)
				}
			}
			if !yield(by, own) {
				return
			}
			batch = rest
		}
	}
}

func (t *tick) writeStepped(by Steps, batch []settlement) {
	ends := make([]core.StepEnd, len(batch))
	for i, s := range batch {
		ends[i] = *s.end
	}
	for trouble := backoff(0); ; {
		var settled []core.StepSettled
		err := core.Contain(func() (err error) {
			settled, err = by.Settle(t.hard, ends...)
			return err
		})
		if err == nil {
			t.tellEnds(batch, settled)
			return
		}
		if p := (*core.Panic)(nil); errors.As(err, &p) {
			t.abandon(batch, err)
			return
		}
		if !t.again("settle steps", err, &trouble) {
			return
		}
	}
}

// tellEnds counts what was stored, and sees to what follows. That the store looks at no
// lease here makes it simple: an end is stored, or it never will be. A job that was
// taken again meanwhile is given back: it may ask for something else now.
func (t *tick) tellEnds(batch []settlement, settled []core.StepSettled) {
	var soonest time.Time
	for i, s := range batch {
		next := settled[i].Next
		if !next.IsZero() && !next.After(t.Clock()) {
			t.stir(s.job.Lane) // before it is forgotten: a function ends when nothing is held or stirred
		} else if !next.IsZero() && (soonest.IsZero() || next.Before(soonest)) {
			soonest = next
		}
		if newer, retaken := t.forget(s.job.ID, s.job.Lease, true); retaken {
			t.release(core.Job{ID: s.job.ID, Lease: newer})
			t.stir(s.job.Lane)
		}
		if settled[i].Lost {
			t.report.Lost++
			t.Observe(core.Superseded{Job: s.job.Job, Why: settled[i].Why})
			continue
		}
		t.countStep(s.end.Kind, settled[i].Status)
	}
	t.expect(soonest)
}

// abandon leaves ends that cannot be stored to the leases of their jobs, so that they are
// not in the way of others.
func (t *tick) abandon(batch []settlement, why error) {
	t.Observe(core.Troubled{Doing: "settle steps", Err: why})
	for _, s := range batch {
		t.forget(s.job.ID, s.job.Lease, true)
	}
}

func (t *tick) countStep(k core.EndKind, s core.Status) {
	if k != core.Refused {
		t.report.Completed++
		return
	}
	t.report.Failed++
	if s == core.Dead {
		t.report.Dead++
	}
}

// postpone gives jobs back that are to be left alone for a while. It tries once: their
// leases will do it as well.
func (t *tick) postpone(batch []settlement) {
	parts := map[bool][]core.Job{}
	for _, s := range batch {
		j := s.job.Job
		j.Lease, _ = t.forget(s.job.ID, s.job.Lease, true)
		parts[s.soon] = append(parts[s.soon], j)
	}
	for soon, jobs := range parts {
		due := t.Clock().Add(putOff)
		if soon {
			due = t.Clock().Add(rest(core.Budget{Rest: putOffBusy}))
		}
		if err := t.Worklist.Release(t.hard, due, jobs...); err != nil {
			t.Observe(core.Troubled{Doing: "release", Err: err})
			continue
		}
		t.expect(due)
		t.postponed += len(jobs)
		t.Observe(core.Released{Jobs: len(jobs), Why: "nobody can tell yet what their workflows ask for"})
	}
}
