package runner

import (
	"context"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// Settle stores the ends of attempts, and returns the result of each. It tries again while
// the database is away or other processes move the runs first. It returns an error only
// when ctx is done.
//
// If the store refuses an end as too large, the end's step fails. If the store refuses an
// end for another reason, the end is lost: the lease of its job ends, and the attempt is
// repeated.
func (r *Runner) Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error) {
	// Ends of one run share a transition, and transitions of several runs share a batch.
	seats, places := r.seatsOf(ends)
	err := r.atHead(ctx, seats, func() error {
		err := r.finish(ctx, endless, together(seats)...)
		if ctx.Err() == nil && (err != nil || slices.ContainsFunc(seats, func(s *seat) bool { return s.turn == nil })) {
			err = r.finishOneByOne(ctx, seats) // an end that cannot be stored must not hold up the others
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// The results go back into the order of the ends.
	settled := make([]core.StepSettled, len(ends))
	for i, s := range seats {
		for n, place := range places[i] {
			settled[place] = s.settled(n)
		}
	}
	return settled, nil
}

// together returns the turns of the seats that are not split.
func together(seats []*seat) (turns []*turn) {
	for _, s := range seats {
		if s.turn != nil {
			turns = append(turns, s.turn)
		}
	}
	return turns
}

// finishOneByOne stores each end in a turn of its own. An end that is too large for the database fails its step.
func (r *Runner) finishOneByOne(ctx context.Context, seats []*seat) error {
	for _, s := range seats {
		r.split(s)
		for _, t := range s.single {
			err := r.finish(ctx, endless, t)
			if core.IsKind(err, core.TooLarge) {
				t.shrink()
				err = r.finish(ctx, endless, t)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				r.Observe(core.Troubled{Doing: "settle steps", Err: err})
			}
		}
	}
	return nil
}

// shrink turns the end of a turn into a failure. It keeps the record of a call. A step that
// makes no call keeps the failure only.
func (t *turn) shrink() {
	e := &t.ends[0]
	why := "data: the state is too large for the database"
	if len(e.Body) > 0 {
		why = "data: the reply and the state are together too large for the database"
	}
	switch e.Kind {
	case core.Replied, core.Refused:
		e.Kind, e.Class, e.Final, e.Body = core.Refused, core.ClassData, true, nil
		e.Attempt.Error = why
	default:
		t.plan = func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
			return d.Spoil(p, v, t.ends[0], why), nil
		}
	}
	// The run is read again, and the transition that was too large is not sent again.
	t.view, t.open = nil, false
}

// seatsOf puts all ends of a run in line together, and returns the index of each. An end on
// the workflow's own list is fresh if it is the only one of its run: meanwhile only
// operators could have moved that run. An end in a branch is not fresh, since other
// branches move the run.
func (r *Runner) seatsOf(ends []core.StepEnd) (seats []*seat, places [][]int) {
	at := map[core.ID]int{}
	for i, e := range ends {
		run := e.Job.Situation.Run.ID
		n, known := at[run]
		if !known {
			n = len(places)
			at[run] = n
			places = append(places, nil)
		}
		places[n] = append(places[n], i)
	}
	for _, own := range places {
		seats = append(seats, r.join(ends[own[0]].Job.Situation.Step.ParentID == "", pick(ends, own)...))
	}
	return seats, places
}

// pick returns the ends at these places. It copies no single end, since an end is large and most runs
// have one at a time.
func pick(ends []core.StepEnd, places []int) []core.StepEnd {
	if at := places[0]; len(places) == 1 {
		return ends[at : at+1 : at+1]
	}
	own := make([]core.StepEnd, len(places))
	for i, p := range places {
		own[i] = ends[p]
	}
	return own
}

// settled returns the result of the nth end of a turn.
func (t *turn) settled(n int) core.StepSettled {
	if why, lost := t.move.Lost[n]; lost {
		return core.StepSettled{Lost: true, Why: why}
	}
	if !t.result.Made {
		return core.StepSettled{Lost: true, Why: "it is not stored; the step is tried again"}
	}
	// The transition says if the job of the step lives on, for instance for a retry.
	s := core.StepSettled{Status: core.Completed, Taken: t.takenJob(), Next: t.due()}
	for _, j := range t.move.Transition.JobsEnd {
		if j.ID == t.ends[n].Job.Situation.Step.ID {
			s.Status, s.DueAt = j.Status, j.DueAt
		}
	}
	return s
}
