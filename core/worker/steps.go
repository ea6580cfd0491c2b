package worker

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Steps does the work of the jobs of workflows. When the end of an attempt is stored, the run
// decides how it continues.
type Steps interface {
	// Attempt does the work of a step's job, and bounds the call that it makes. ctx ends
	// when the lease may. False means that the run no longer needs the job, which is to be
	// closed. An error means that the work is not known yet. Then the job is to be given
	// back, for about a second if the error is [core.Unavailable], else for a minute.
	Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error)

	// Settle stores how attempts ended. It returns one result for each end, in the same
	// order. After an error the same ends may be settled again: an end that is stored already
	// is not stored twice.
	Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error)
}

const (
	// putOff is for how long a job is given back whose work is not known yet, for instance
	// because a variable of the environment is missing. putOffBusy is for about how long if
	// another process writes the same run, or the database is away.
	putOff     = time.Minute
	putOffBusy = time.Second

	// MovedOn is the error of a job that was closed because its run no longer needs it.
	MovedOn = "the run has moved on"
)

// closed returns the end of a job that its run no longer needs.
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

// stepTurns is how many batches of ends are stored at a time. The end of a step is computed, stored and
// read back, and then the next step begins. With one batch at a time, the database waited while the next
// batch was computed, and the processors while one was stored.
const stepTurns = 2

// A stepBatch is a batch of ends that is being stored, or was.
type stepBatch struct {
	runs map[core.ID]bool
	done chan struct{} // closed when it is stored, or cannot be
}

// writeEnds stores how attempts of steps ended, as writeOutcomes does with outcomes. It does not wait for
// that, but for its turn. The ends of a run are stored in the order in which they came: beside each other,
// one would be computed again from what the other has changed.
func (s *settler) writeEnds(batch []settlement) {
	if len(batch) == 0 {
		return
	}
	own := stepBatch{runs: make(map[core.ID]bool, len(batch)), done: make(chan struct{})}
	for _, b := range batch {
		own.runs[b.end.Job.Situation.Run.ID] = true
	}
	s.awaitRuns(own.runs)
	s.turns <- struct{}{}
	s.underway = append(s.underway, own)
	s.stepping.Go(func() {
		defer func() { close(own.done); <-s.turns }()
		for by, group := range bySteps(batch) {
			s.writeStepped(by, group)
		}
		s.ended(batch)
		s.alarm.nudge()
	})
}

// awaitRuns waits until no end of these runs is being stored, and forgets the batches that are stored.
func (s *settler) awaitRuns(runs map[core.ID]bool) {
	s.underway = slices.DeleteFunc(s.underway, func(b stepBatch) bool {
		for id := range runs {
			if b.runs[id] {
				<-b.done
				return true
			}
		}
		select {
		case <-b.done:
			return true
		default:
			return false
		}
	})
}

// bySteps divides a batch by the Steps that store its ends. Each part keeps the order.
func bySteps(batch []settlement) iter.Seq2[Steps, []settlement] {
	return func(yield func(Steps, []settlement) bool) {
		for len(batch) > 0 {
			by := batch[0].steps
			var own, rest []settlement
			for _, b := range batch {
				if b.steps == by {
					own = append(own, b)
				} else {
					rest = append(rest, b)
				}
			}
			if !yield(by, own) {
				return
			}
			batch = rest
		}
	}
}

// writeStepped stores ends until it succeeds or the tick has no time left. Only a panic of Steps
// ends it earlier, since the same ends would panic again.
func (s *settler) writeStepped(by Steps, batch []settlement) {
	ends := make([]core.StepEnd, len(batch))
	for i, b := range batch {
		ends[i] = *b.end
		ends[i].Hold = s.reserveNext(b.job.Lane)
	}
	for trouble := core.Backoff(0); ; {
		var settled []core.StepSettled
		err := core.Contain(func() (err error) {
			settled, err = by.Settle(s.hard, ends...)
			return err
		})
		if err == nil {
			s.arriveNext(ends, settled) // before the old leases are dropped: see concludeEnds
			s.concludeEnds(batch, settled)
			return
		}
		if p := (*core.Panic)(nil); errors.As(err, &p) {
			s.arriveNext(ends, nil)
			s.abandon(batch, err)
			return
		}
		if !s.again("settle steps", err, &trouble) {
			s.arriveNext(ends, nil)
			return
		}
	}
}

// reserveNext keeps room for the next job of a run, which is leased in the commit that stores the end of
// the one before: see [core.StepEnd]. It returns for how long to lease it; zero if there is no room, or
// if the tick would not take the job.
func (s *settler) reserveNext(l core.Lane) time.Duration {
	now, until := s.Clock(), s.window.until()
	ends := !until.IsZero() && !now.Before(until) || !s.window.fits(l, now) || s.left.Load()
	if ends || !s.window.roster.has(l) || s.gates.opensAt(l, now).After(now) {
		return 0
	}
	hold := s.window.hold(l, now)
	if hold <= 0 || !s.queue.reserveNext(l) {
		return 0
	}
	return hold
}

// arriveNext gives the jobs that were leased so to slots, and the room of the others back.
func (s *settler) arriveNext(ends []core.StepEnd, settled []core.StepSettled) {
	for i, e := range ends {
		if e.Hold == 0 {
			continue
		}
		var next *core.TakenJob
		if settled != nil {
			next = settled[i].Taken
		}
		s.arrive(e.Job.Lane, next)
	}
}

// arrive gives a job that was taken without a claim to a slot, or its room back if the job is nil.
func (s *settler) arrive(l core.Lane, job *core.TakenJob) {
	defer s.queue.arrived()
	if job != nil && !s.leases.note(job) {
		job = nil
	}
	if !s.queue.arrive(l, job) && job != nil {
		s.returns.add(job) // the tick has ended meanwhile
	}
}

// concludeEnds counts the stored ends, and makes their next steps due. The store compares no
// leases here: an end is stored now or never. If this tick took the job again meanwhile, it
// gives the job back, since the run may need another attempt now.
func (s *settler) concludeEnds(batch []settlement, settled []core.StepSettled) {
	var soonest time.Time
	for i, b := range batch {
		next := settled[i].Next
		if !next.IsZero() && !next.After(s.Clock()) {
			s.alarm.due(b.job.Lane) // before the lease is dropped: a function ends when no lease is held and no lane is due
		} else {
			soonest = sooner(soonest, next)
		}
		if newer, retaken := s.leases.drop(b.job.ID, b.job.Lease, true); retaken {
			s.release(core.Job{ID: b.job.ID, Lease: newer})
			s.alarm.due(b.job.Lane)
		}
		if settled[i].Lost {
			s.report.add(core.Report{Lost: 1})
			s.Observe(core.Superseded{Job: b.job.Job, Why: settled[i].Why})
			continue
		}
		s.countStep(b.end.Kind, settled[i].Status)
	}
	s.alarm.expect(soonest)
}

// abandon leaves ends that cannot be stored to the leases of their jobs, so that they do not
// block other ends.
func (s *settler) abandon(batch []settlement, why error) {
	s.Observe(core.Troubled{Doing: "settle steps", Err: why})
	for _, b := range batch {
		s.leases.drop(b.job.ID, b.job.Lease, true)
	}
}

// countStep adds the end of a step to the tick's report. Only a refused call counts as failed.
func (s *settler) countStep(k core.EndKind, status core.Status) {
	switch {
	case k != core.Refused:
		s.report.add(core.Report{Completed: 1})
	case status == core.Dead:
		s.report.add(core.Report{Failed: 1, Dead: 1})
	default:
		s.report.add(core.Report{Failed: 1})
	}
}

// postpone gives jobs back that are not to be tried for a while. It tries once: their leases
// end all the same.
func (s *settler) postpone(batch []settlement) {
	// Two calls at most, one for each due time.
	parts := map[bool][]core.Job{}
	for _, b := range batch {
		j := b.job.Job
		j.Lease, _ = s.leases.drop(b.job.ID, b.job.Lease, true)
		parts[b.soon] = append(parts[b.soon], j)
	}
	for soon, jobs := range parts {
		due := s.Clock().Add(putOff)
		if soon {
			due = s.Clock().Add(spread(putOffBusy))
		}
		if err := s.Worklist.Release(s.hard, due, jobs...); err != nil {
			s.Observe(core.Troubled{Doing: "release", Err: err})
			continue
		}
		s.alarm.expect(due)
		s.report.add(core.Report{Released: len(jobs)})
		s.Observe(core.Released{Jobs: len(jobs), Why: "their work cannot be read yet"})
	}
}
