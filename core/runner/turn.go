package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

const (
	// surveys bounds how often a move may ask for more of its run. Each level of nesting
	// asks about twice.
	surveys = 100

	// bulk is about how many bytes of transitions are stored at once, unless a single one
	// has more: databases bound what a batch may hold.
	bulk = 1 << 20

	// patient is after how many conflicts there is a pause before the next try. It grows
	// with their number: other processes are at the run.
	patient  = 3
	maxPause = 250 * time.Millisecond
)

// A turn is what somebody wants to become of one run. It is worked out anew for as long
// as others move the run first.
type turn struct {
	run  core.ID // of an operator's wish; of ends their situations tell
	ends []core.StepEnd
	plan func(*workflow.Definition, workflow.Pen, workflow.View) (workflow.Move, error)
	bare bool // the plan does without a definition, and if need be without the event

	// Those whose ends it tells, how many and how large these are, and whether more may
	// join: see lineup.
	seats  []*seat
	count  int
	bytes  int
	closed bool

	event core.Event     // that started the run, once it is known
	view  *workflow.View // nil if the run is to be read
	move  workflow.Move

	open bool // the transition is worked out, and nobody knows yet whether it is made
	over bool // it is made, or there is none to make
	made bool

	conflicts int
}

// turnOf tells of one end, of which no more is known than that.
func turnOf(e core.StepEnd) *turn {
	t := newTurn()
	t.ends, t.event, t.closed = []core.StepEnd{e}, e.Job.Event, true
	return t
}

// newTurn tells of ends of steps of one run.
func newTurn() *turn {
	t := &turn{}
	t.plan = func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return d.Advance(p, v, t.ends...), nil
	}
	return t
}

// seen has a turn begin with the situation that its only end came with.
func (t *turn) seen() *turn {
	s := t.ends[0].Job.Situation
	t.saw(s.Run, map[core.ID]core.Situation{s.Step.ID: s})
	return t
}

func (t *turn) saw(run core.Run, situations map[core.ID]core.Situation) {
	t.view = &workflow.View{Run: run, Situations: situations}
}

// A patience is how many answers the store may owe before a turn is given up. Others may
// be first until the time is over.
type patience int

const (
	brief   patience = 3
	endless patience = math.MaxInt
)

var errBusy error = core.Refuse(core.Unavailable, "others are at this workflow run; try again")

// finish takes turns of different runs until all are over. After an error the turns that
// are not over may be finished by another call.
func (r *Runner) finish(ctx context.Context, p patience, turns ...*turn) error {
	var outages patience
	for {
		turns = slices.DeleteFunc(slices.Clone(turns), func(t *turn) bool { return t.over })
		if len(turns) == 0 {
			return nil
		}
		pause := time.Duration(0)
		switch err := r.round(ctx, turns); {
		case err == nil:
			worst := 0
			for _, t := range turns {
				if !t.over {
					worst = max(worst, t.conflicts)
				}
			}
			if worst > patient {
				pause = min(maxPause, time.Duration(worst*worst)*100*time.Microsecond)
			}
		case core.IsKind(err, core.Unavailable) && outages < p && ctx.Err() == nil:
			r.Observe(core.Troubled{Doing: "move a workflow run", Err: err})
			pause = min(2*time.Second, 50*time.Millisecond<<min(outages, 10))
			outages++
		default:
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits up to so long.
func sleep(ctx context.Context, most time.Duration) error {
	if most <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(most/2 + rand.N(most/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// round tries turns once.
func (r *Runner) round(ctx context.Context, turns []*turn) error {
	if err := r.look(ctx, turns); err != nil {
		return err
	}
	for _, t := range turns {
		if t.open || t.over {
			continue
		}
		if err := r.work(ctx, t); err != nil {
			return err
		}
	}
	return r.transit(ctx, turns)
}

// look reads the runs of turns that have to begin with that.
func (r *Runner) look(ctx context.Context, turns []*turn) error {
	var steps []core.ID
	for _, t := range turns {
		if t.view != nil {
			continue
		}
		if t.run != "" {
			run, err := r.Store.Run(ctx, t.run)
			if err != nil {
				return err
			}
			t.saw(run, nil)
		}
		for _, e := range t.ends {
			steps = append(steps, e.Job.Situation.Step.ID)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	found, err := r.Store.Situations(ctx, steps)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.view == nil {
			t.found(found)
		}
	}
	return nil
}

// found notes what there is of the steps whose ends are told. If there is nothing, the
// run is gone.
func (t *turn) found(all map[core.ID]core.Situation) {
	own, run := map[core.ID]core.Situation{}, core.Run{}
	for _, e := range t.ends {
		id := e.Job.Situation.Step.ID
		if s, ok := all[id]; ok {
			own[id], run = s, s.Run
		}
	}
	if len(own) == 0 {
		t.over, t.move = true, workflow.Move{}
		return
	}
	t.saw(run, own)
}

// work works a transition out, reading what it takes.
func (r *Runner) work(ctx context.Context, t *turn) error {
	var d *workflow.Definition
	var err error
	if !t.bare {
		if d, err = r.definition(ctx, t.view.Run.Definition); err != nil {
			return fmt.Errorf("the definition of run %s: %w", t.view.Run.ID, err)
		}
	}
	if t.event.ID == "" {
		if t.event, err = r.Store.Event(ctx, t.view.Run.EventID); err != nil && !t.bare {
			return fmt.Errorf("the event of run %s: %w", t.view.Run.ID, err)
		}
	}
	t.view.Event = t.event
	for range surveys {
		pen := workflow.Pen{Mint: r.IDs.Next, Now: r.Clock(), Obituary: r.Obituary}
		if t.move, err = t.plan(d, pen, *t.view); err != nil {
			return err
		}
		missing := t.move.Missing
		if missing.Nothing() {
			t.open, t.over = t.move.Moved, !t.move.Moved
			return nil
		}
		steps, err := r.Store.Survey(ctx, t.view.Run.ID, t.view.Run.Epoch, missing)
		if err != nil {
			return err
		}
		t.learn(missing, steps)
	}
	return errors.New("run " + string(t.view.Run.ID) + " cannot be read to its end")
}

// learn adds steps that were read to the view. One that is there already stays: if it is
// another by now the run has moved, and the transition will not be made.
func (t *turn) learn(wanted core.Wanted, steps []core.Step) {
	known := make(map[core.ID]bool, len(t.view.Steps))
	for _, s := range t.view.Steps {
		known[s.ID] = true
	}
	for _, s := range steps {
		if !known[s.ID] {
			t.view.Steps = append(t.view.Steps, s)
		}
	}
	t.view.Have = t.view.Have.And(wanted)
}

// transit stores what is open, and tells of what is made. Until it has an answer for a
// transition the turn stays open: the next round sends the same.
func (r *Runner) transit(ctx context.Context, turns []*turn) error {
	for batch := range batches(turns) {
		ts := make([]core.Transition, len(batch))
		for i, t := range batch {
			ts[i] = t.move.Transition
		}
		made, err := r.Store.Transit(ctx, ts...)
		if err != nil {
			return err
		}
		for i, t := range batch {
			t.open = false
			if made[i] {
				t.over, t.made = true, true
				r.announce(t.move.Transition)
			} else {
				t.view = nil
				t.conflicts++
			}
		}
	}
	return nil
}

// batches parts open turns by how much can be stored at once.
func batches(turns []*turn) func(yield func([]*turn) bool) {
	return func(yield func([]*turn) bool) {
		var batch []*turn
		size := 0
		for _, t := range turns {
			if !t.open {
				continue
			}
			own := weight(t.move.Transition)
			if len(batch) > 0 && size+own > bulk {
				if !yield(batch) {
					return
				}
				batch, size = nil, 0
			}
			batch, size = append(batch, t), size+own
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// weight is about how many bytes a transition has.
func weight(t core.Transition) int {
	const row = 300
	n := len(t.Run.Output) + row*(1+len(t.Entries)+len(t.Jobs)+len(t.JobsEnd)+len(t.Tokens))
	for _, s := range t.New {
		n += row + len(s.State) + len(s.Output) + len(s.Carry)
	}
	for _, c := range t.Changed {
		n += row + len(c.Output) + len(c.Carry)
	}
	for _, a := range t.Attempts {
		n += row + len(a.Response)
	}
	return n
}

// announce tells of a transition that is stored, and of when the run goes on. A time that is
// yet to come is told as well: the worker may be in another process, asleep.
func (r *Runner) announce(t core.Transition) {
	lane := core.WorkflowLane(t.Run.Workflow)
	switch next := due(t); {
	case next.IsZero():
	case next.After(r.Clock()):
		r.Bell.RingAt(lane, next)
	default:
		r.Bell.Ring(lane)
	}
	for _, f := range t.Facts {
		r.Observe(f)
	}
	if a := t.GivesRise; a != nil {
		for _, j := range a.Jobs {
			r.Bell.Ring(j.Lane)
		}
		r.Observe(core.Accepted{Event: a.Event, Jobs: len(a.Jobs), Asked: a.Jobs})
	}
}

// due is when the first of the jobs is due that a transition makes or leaves; zero if
// there is none.
func due(t core.Transition) (first time.Time) {
	sooner := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, j := range t.Jobs {
		sooner(j.DueAt)
	}
	for _, j := range t.JobsEnd {
		if !j.Status.Finished() {
			sooner(j.DueAt)
		}
	}
	return first
}
