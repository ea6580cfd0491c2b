package runner

import (
	"context"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Settle stores how attempts ended, and tells for each what became of it. It goes on for
// as long as the store is away and others are first, and returns an error only when ctx
// is done. A run that the store refuses is left as it is, its ends are lost, and so is
// told: the leases of their jobs end, and they are tried again.
func (r *Runner) Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error) {
	turns, places := turnsOf(ends)
	err := r.finish(ctx, endless, turns...)
	if err != nil && ctx.Err() == nil {
		err = r.apart(ctx, turns) // one that cannot be stored must not be in the way of the others
	}
	if err != nil {
		return nil, err
	}
	settled := make([]core.StepSettled, len(ends))
	for i, t := range turns {
		for n, place := range places[i] {
			settled[place] = t.settled(n)
		}
	}
	return settled, nil
}

// apart finishes turns one by one. A reply that the database has no room for beside the
// state is one that the step cannot go on with.
func (r *Runner) apart(ctx context.Context, turns []*turn) error {
	for _, t := range turns {
		err := r.finish(ctx, endless, t)
		if core.IsKind(err, core.TooLarge) && t.shrink() {
			err = r.finish(ctx, endless, t)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.Observe(core.Troubled{Doing: "settle steps", Err: err})
		}
	}
	return nil
}

// shrink makes failures of the replies that a turn is about, and reports whether there
// are any.
func (t *turn) shrink() (shrunk bool) {
	for i, e := range t.ends {
		if len(e.Body) == 0 {
			continue
		}
		e.Kind, e.Class, e.Final, e.Body = core.Refused, core.ClassData, true, nil
		e.Attempt.Error = "data: the reply and the state are together too large for the database"
		t.ends[i], shrunk = e, true
	}
	t.view, t.open = nil, false
	return shrunk
}

// turnsOf makes a turn of all ends of a run, and tells where they were among all. An end
// on the workflow's own list is told of the run as its attempt found it, if it is the only
// one: nobody else moves the run meanwhile but operators. In branches others do.
func turnsOf(ends []core.StepEnd) (turns []*turn, places [][]int) {
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
		t := newTurn(pick(ends, own)...)
		if len(own) == 1 && t.ends[0].Job.Situation.Step.ParentID == "" {
			t.seen()
		}
		turns = append(turns, t)
	}
	return turns, places
}

func pick(ends []core.StepEnd, places []int) []core.StepEnd {
	own := make([]core.StepEnd, len(places))
	for i, p := range places {
		own[i] = ends[p]
	}
	return own
}

// settled is what became of the nth end of a turn.
func (t *turn) settled(n int) core.StepSettled {
	if !t.made || slices.Contains(t.move.Lost, n) {
		return core.StepSettled{Lost: true}
	}
	s := core.StepSettled{Status: core.Completed, Next: due(t.move.Transition)}
	for _, j := range t.move.Transition.JobsEnd {
		if j.ID == t.ends[n].Job.Situation.Step.ID {
			s.Status, s.DueAt = j.Status, j.DueAt
		}
	}
	return s
}
