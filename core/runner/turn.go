package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

const (
	// surveys bounds how many times a move may ask for more steps of its run. Each level of
	// nesting asks about twice.
	surveys = 100

	// bulk is about how many bytes of transitions are stored in one batch, since databases
	// bound the size of a batch. A single transition may have more.
	bulk = 1 << 20

	// calmConflicts is the number of conflicts after which the turn pauses before the next try.
	// Many conflicts mean that other processes are moving the run. The pause grows with
	// their number.
	calmConflicts = 3
	maxPause      = 250 * time.Millisecond

	// readers is how many turns at most read steps at the same time.
	readers = 8
)

// A turn is one wanted change of a run. Its transition is computed again each time that
// another process moves the run first.
//
// The runner's mu guards seats, count, bytes and closed. Only the caller at the head of the
// run's line uses the other fields.
type turn struct {
	run  core.ID // set for an operator's request; the situations of ends have the run
	ends []core.StepEnd
	plan func(*workflow.Definition, workflow.Pen, workflow.View) (workflow.Move, error)
	bare bool // the plan needs no definition, and works without the event if necessary

	// The seats whose ends it stores, the count and size of these ends, and whether more
	// may join: see lineup.
	seats  []*seat
	count  int
	bytes  int
	closed bool

	event core.Event     // that started the run; zero until it was read
	view  *workflow.View // nil if the run is to be read
	move  workflow.Move

	open bool // the transition was sent, and the store has not answered yet
	over bool // the transition is made, or there is none to make

	result core.Transited // of the transition that is made

	conflicts int
}

// turnOf makes a turn of one end, which no other end may join.
func turnOf(e core.StepEnd) *turn {
	t := newTurn()
	t.ends, t.event, t.closed = []core.StepEnd{e}, e.Job.Event, true
	return t
}

// newTurn makes a turn of ends of one run.
func newTurn() *turn {
	t := &turn{}
	t.plan = func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return d.Advance(p, v, t.ends...), nil
	}
	return t
}

// useSituation makes a turn begin with the situation of its only end, without reading the run.
func (t *turn) useSituation() *turn {
	s := t.ends[0].Job.Situation
	t.setView(s.Run, map[core.ID]core.Situation{s.Step.ID: s})
	return t
}

// setView sets the view from which the transition is computed.
func (t *turn) setView(run core.Run, situations map[core.ID]core.Situation) {
	t.view = &workflow.View{Run: run, Situations: situations}
}

// A patience is how many missing answers of the store a turn tolerates. Conflicts with
// other processes do not count; the time limit bounds these.
type patience int

const (
	brief   patience = 3
	endless patience = math.MaxInt
)

var errBusy error = core.Refuse(core.Unavailable, "others are at this workflow run; try again")

// finish executes turns of different runs until all are over. After an error another call
// may finish the remaining turns.
func (r *Runner) finish(ctx context.Context, p patience, turns ...*turn) error {
	var outages patience
	for {
		// Turns that are over leave the round. The other turns keep their state: a view that was
		// read, or a transition that was sent without an answer.
		turns = slices.DeleteFunc(slices.Clone(turns), func(t *turn) bool { return t.over })
		if len(turns) == 0 {
			return nil
		}
		pause := time.Duration(0)
		switch err := r.round(ctx, turns); {
		case err == nil:
			// The run with the most conflicts decides the pause of the whole round.
			worst := 0
			for _, t := range turns {
				if !t.over {
					worst = max(worst, t.conflicts)
				}
			}
			if worst > calmConflicts {
				pause = min(maxPause, time.Duration(worst*worst)*100*time.Microsecond)
			}
		case core.IsKind(err, core.Unavailable) && outages < p && ctx.Err() == nil:
			r.Observe(core.Troubled{Doing: "move a workflow run", Err: err})
			// The database is away: 50 ms at first, then doubled up to 2 s.
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

// sleep waits between half of most and most, at random. It returns the error of ctx if ctx is done.
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

// round tries each turn once.
func (r *Runner) round(ctx context.Context, turns []*turn) error {
	// Read the missing views, compute each transition, and store all transitions in as few
	// batches as possible.
	if err := r.look(ctx, turns); err != nil {
		return err
	}
	if err := r.workAll(ctx, turns); err != nil {
		return err
	}
	return r.transit(ctx, turns)
}

// workAll computes the transitions of the turns that have none. Most turns have all that they need, and
// are computed by the caller: a goroutine for each would take longer to grow its stack than to compute.
// The others read at the same time, so that many runs take as long as one: an answer of the database may
// take long, and the end of a function's invocation bounds the time for all of them.
func (r *Runner) workAll(ctx context.Context, turns []*turn) error {
	var reading []*turn
	for _, t := range turns {
		if t.open || t.over {
			continue
		}
		computed := false
		err := core.Contain(func() (err error) {
			computed, err = r.compute(t, r.inMemory(t.view.Run.Definition))
			return err
		})
		if err != nil {
			return err
		}
		if !computed {
			reading = append(reading, t)
		}
	}

	var working sync.WaitGroup
	errs, room := make([]error, len(reading)), make(chan struct{}, readers)
	for i, t := range reading {
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			errs[i] = core.Contain(func() error { return r.work(ctx, t) })
		})
	}
	working.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// look reads the runs of the turns that have no view yet.
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
			t.setView(run, nil)
		}
		for _, e := range t.ends {
			steps = append(steps, e.Job.Situation.Step.ID)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	// One query reads the steps of all turns.
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

// found keeps the situations of the turn's steps. If none of them exists, the run was
// purged.
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
	t.setView(run, own)
}

// work computes the transition of a turn, and reads what this needs.
func (r *Runner) work(ctx context.Context, t *turn) error {
	var d *workflow.Definition
	var err error
	if !t.bare {
		if d, err = r.definition(ctx, t.view.Run.Definition); err != nil {
			return fmt.Errorf("the definition of run %s: %w", t.view.Run.ID, err)
		}
	}
	// An operator's request comes without the event. A bare plan also works if the event
	// cannot be read.
	if t.event.ID == "" {
		if t.event, err = r.Store.Event(ctx, t.view.Run.EventID); err != nil && !t.bare {
			return fmt.Errorf("the event of run %s: %w", t.view.Run.ID, err)
		}
	}
	// The plan names the steps that it lacks, and is computed again with them. So small runs
	// cost no survey, and large ones only the steps around the change.
	for range surveys {
		missing, err := r.plan(t, d)
		if err != nil || missing.Nothing() {
			return err
		}
		steps, err := r.Store.Survey(ctx, t.view.Run.ID, t.view.Run.Epoch, missing)
		if err != nil {
			return err
		}
		t.learn(missing, steps)
	}
	return errors.New("run " + string(t.view.Run.ID) + " cannot be read to its end")
}

// compute computes the transition of a turn that needs nothing but the definition and what it has. It
// returns false if anything has to be read, as if d is nil.
func (r *Runner) compute(t *turn, d *workflow.Definition) (bool, error) {
	if d == nil || t.event.ID == "" {
		return false, nil
	}
	missing, err := r.plan(t, d)
	return err == nil && missing.Nothing(), err
}

// plan computes the transition of a turn, unless steps are missing for that.
func (r *Runner) plan(t *turn, d *workflow.Definition) (missing core.Wanted, err error) {
	t.view.Event = t.event
	pen := workflow.Pen{Mint: r.IDs.Next, Now: r.Clock(), Obituary: r.Obituary}
	if t.move, err = t.plan(d, pen, *t.view); err != nil {
		return core.Wanted{}, err
	}
	if missing = t.move.Missing; missing.Nothing() {
		t.open, t.over = t.move.Moved, !t.move.Moved
		t.takeNext(r.Clock())
	}
	return missing, nil
}

// learn adds steps to the view. A step that is in the view already stays unchanged. If it
// has changed since, the run has moved, and the store will not make the transition.
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

// transit stores the open transitions, and announces the transitions that are made. A turn
// stays open until the store answers, and the next round sends the same transition.
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
			// A transition that is not made met another process: the run is read again.
			if made[i].Made {
				t.over, t.result = true, made[i]
				r.announce(t)
			} else {
				t.view = nil
				t.conflicts++
			}
		}
	}
	return nil
}

// batches splits open turns into batches of at most about bulk bytes.
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

// weight returns about how many bytes a transition has.
func weight(t core.Transition) int {
	// row is about the size of a row's fixed columns, in bytes.
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

// announce states the facts of a stored transition, and rings the bell for its next job. It
// also rings for a job that is due later, since the worker may be asleep in another
// process.
func (r *Runner) announce(made *turn) {
	t := made.move.Transition
	lane := core.WorkflowLane(t.Run.Workflow)
	switch next := made.due(); {
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

// due returns the first due time of the jobs that the transition made or left, except the one that
// was taken; zero if there is none.
func (t *turn) due() (first time.Time) {
	sooner := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, j := range t.move.Transition.Jobs {
		if !t.result.Taken || j.ID != t.move.Transition.Take.Job {
			sooner(j.DueAt)
		}
	}
	for _, j := range t.move.Transition.JobsEnd {
		if !j.Status.Finished() {
			sooner(j.DueAt)
		}
	}
	return first
}
