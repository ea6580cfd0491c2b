package storetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of steps whose states a store may keep in another table than the steps. A store may keep
// a large text once for a run and refer to it by a name. A failure means that a step receives
// another step's data, or that its data is lost, which stops the run.

// transitLarge passes a state from step to step, back, and into another epoch. Some transitions
// say that the state is already stored, and others do not. Step states of 2,000 bytes are shared
// between steps, and must be the same however they are read.
func transitLarge(r *rig) {
	j := r.takeNewRun()
	first, state, other := j.Situation.Step, largeState("state"), largeState("other")
	t := r.transitionOf(j.Situation.Run, core.EntryStarted, core.EntrySucceeded)
	first = ended(first, r, core.StepSucceeded)
	first.Output = state
	t.Changed = []core.StepChange{changeOf(first)}
	steps := []core.Step{first}
	enter := func(t *core.Transition, path string, state, output []byte) core.Step {
		s := r.step(t.Run, path, core.StepSucceeded)
		s.State, s.Output, s.FinishedAt = state, output, r.now
		t.New, steps = append(t.New, s), append(steps, s)
		return s
	}
	enter(&t, "second", state, other)
	enter(&t, "third", other, state)
	open := enter(&t, "open", state, nil)
	r.mustTransit(t)
	r.hasSteps(t.Run, 1, steps)

	// With Kept, a transition says which texts are stored, and need not send them.
	for _, known := range []bool{false, true} {
		next := r.transitionOf(t.Run, core.EntrySucceeded)
		if known {
			next.Kept = namesOf(r.survey(t.Run.ID, 1, core.Wanted{All: true}))
		}
		if !known {
			open.Output = open.State
			next.Changed = []core.StepChange{changeOf(open)}
			steps[3] = open
		}
		enter(&next, fmt.Sprint("known: ", known), state, other)
		enter(&next, fmt.Sprint("new: ", known), state, largeState(fmt.Sprint(known)))
		r.mustTransit(next)
		t = next
		r.hasSteps(t.Run, 1, steps)
	}

	// A redrive copies all steps into a new epoch, with texts that the first epoch has.
	again := r.transitionOf(t.Run, core.EntryRedriven)
	again.Run.Epoch, again.Kept = 2, namesOf(r.survey(t.Run.ID, 1, core.Wanted{All: true}))
	old := steps
	steps = nil
	for _, s := range r.survey(t.Run.ID, 1, core.Wanted{All: true}) {
		s.ID, s.Epoch = r.ids.Next(), 2
		again.New, steps = append(again.New, s), append(steps, s)
	}
	r.mustTransit(again)
	r.hasSteps(again.Run, 1, old)
	r.hasSteps(again.Run, 2, steps)
}

// namesOf returns the names under which a store keeps the texts of the steps.
func namesOf(steps []core.Step) (names []string) {
	for _, s := range steps {
		for _, name := range []string{s.StateName, s.OutputName} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// hasSteps reads the steps of an epoch by each method that returns steps. All of them must return
// the same texts.
func (r *rig) hasSteps(run core.Run, epoch int, want []core.Step) {
	r.Helper()
	r.equal("Survey: all", r.survey(run.ID, epoch, core.Wanted{All: true}), want)
	r.equal("Steps", r.steps(run.ID, epoch, "", core.MaxPage).Items, want)
	var ids []core.ID
	var paths []string
	for _, s := range want {
		ids, paths = append(ids, s.ID), append(paths, s.Path)
	}
	r.equal("Survey: ids", r.survey(run.ID, epoch, core.Wanted{IDs: ids}), want)
	r.equal("Survey: paths", r.survey(run.ID, epoch, core.Wanted{Paths: paths}), want)
	found := r.situations(ids...)
	for _, s := range want {
		r.equal("Situation", found[s.ID].Step, s)
	}
}

// transitLargeLater continues a run whose first transition kept its texts within the steps. Runs
// of an older version are continued by a newer one, with texts in both places.
func transitLargeLater(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	t.Apart = false
	r.mustTransit(t)
	old := r.survey(t.Run.ID, 1, core.Wanted{All: true})
	r.equal("names of texts that are with their steps", len(namesOf(old)), 0)
	next := r.transitionOf(t.Run, core.EntrySucceeded)
	call := ended(t.New[1], r, core.StepSucceeded)
	call.Output = largeState("passed on")
	next.Changed = []core.StepChange{changeOf(call)}
	after := r.step(t.Run, "after", core.StepReady)
	after.State = call.State
	next.New = []core.Step{after}
	next.Jobs = []core.StepJob{{ID: after.ID, DueAt: r.now}}
	r.mustTransit(next)
	r.hasSteps(next.Run, 1, []core.Step{old[0], old[1], call, old[3], after})
	r.equal("Take: situation", r.takeOnly(after.ID, r.runQuota(1)).Situation.Step, after)
}

// transitLargeBehind stores a step whose text only another transition would have stored. That
// transition was not made, so the text does not exist and no read returns the step.
func transitLargeBehind(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	r.mustTransit(t)
	names := namesOf(r.survey(t.Run.ID, 1, core.Wanted{Paths: []string{"fan"}}))
	if len(names) == 0 {
		return // this store keeps all texts within the steps
	}
	run := r.newRun().Run
	late := r.transitionOf(run, core.EntryStarted)
	late.New = []core.Step{r.step(run, "fan", core.StepReady)}
	r.mustTransit(r.transitionOf(run, core.EntryStarted))
	r.equal("Transit: made", r.transit(late), []bool{false})
	next := r.transitionOf(r.run(run.ID), core.EntrySucceeded)
	next.New, next.Kept = late.New, names
	r.mustTransit(next)
	steps, err := r.store.Survey(context.Background(), run.ID, 1, core.Wanted{Paths: []string{"fan"}})
	if !core.IsKind(err, core.NotFound) {
		r.Errorf("Survey of a step without its text = %d steps, %v, want a refusal of kind NotFound", len(steps), err)
	}
	r.equal("Situations of a step without its text", r.situations(late.New[0].ID), map[core.ID]core.Situation{})
}

// steps returns one page of the steps of an epoch.
func (r *rig) steps(run core.ID, epoch int, after core.ID, limit int) core.Page[core.Step] {
	r.Helper()
	page, err := r.store.Steps(context.Background(), run, epoch, after, limit)
	if err != nil {
		r.Fatalf("Steps(%s, %d, %s, %d) failed: %v", run, epoch, after, limit, err)
	}
	return page
}

// Every place to begin and limits below and above the number of steps are asked for. Steps of
// another epoch and of another run must not appear.
func listSteps(r *rig) {
	j, other := r.takeNewRun(), r.newRun()
	t := r.fullTransition(j)
	r.mustTransit(t)
	redriven := r.transitionOf(t.Run, core.EntryRedriven)
	redriven.Run.Epoch = 2
	redriven.New = []core.Step{r.step(redriven.Run, "first", core.StepReady)}
	r.mustTransit(redriven)
	want := append([]core.Step{r.firstStepAfter(j, t)}, t.New...)
	for n, after := range []core.ID{"", want[0].ID, want[1].ID, want[2].ID, want[3].ID} {
		for limit := 1; limit < 6; limit++ {
			end := min(n+limit, len(want))
			r.equal(fmt.Sprintf("Steps behind %d", n), r.steps(t.Run.ID, 1, after, limit), core.Page[core.Step]{Items: want[n:end], More: end < len(want)})
		}
	}
	r.equal("Steps of the second epoch", r.steps(t.Run.ID, 2, "", 9), core.Page[core.Step]{Items: redriven.New})
	r.equal("Steps of another run", r.steps(other.Run.ID, 1, "", 9), core.Page[core.Step]{Items: []core.Step{other.Step}})
	r.equal("Steps of no run", r.steps(r.ids.Next(), 1, "", 9), core.Page[core.Step]{})
}

// outlineSteps reads the outline of each epoch of a run that was redriven. It must have the steps that
// Steps lists, in the same order, and nothing of another epoch or run.
func outlineSteps(r *rig) {
	j, other := r.takeNewRun(), r.newRun()
	t := r.fullTransition(j)
	failed := r.step(t.Run, "failed", core.StepReady)
	failed = ended(failed, r, core.StepFailed)
	t.New = append(t.New, failed)
	r.mustTransit(t)
	redriven := r.transitionOf(t.Run, core.EntryRedriven)
	redriven.Run.Epoch = 2
	redriven.New = []core.Step{r.step(redriven.Run, "first", core.StepReady)}
	r.mustTransit(redriven)
	for epoch, want := range map[int][]core.Step{1: append([]core.Step{r.firstStepAfter(j, t)}, t.New...), 2: redriven.New, 3: nil} {
		for i := range want {
			want[i] = outlined(want[i])
		}
		r.equal(fmt.Sprint("Outline of epoch ", epoch), r.outline(t.Run.ID, epoch), want)
	}
	r.equal("Outline of another run", r.outline(other.Run.ID, 1), []core.Step{outlined(other.Step)})
	r.equal("Outline of no run", len(r.outline(r.ids.Next(), 1)), 0)
}

// outlined returns a step without the fields that an outline leaves out.
func outlined(s core.Step) core.Step {
	s.State, s.Output, s.Carry, s.StateName, s.OutputName = nil, nil, "", "", ""
	s.Fan, s.Last, s.HeldUntil = core.Fan{}, false, time.Time{}
	return s
}

// outline reads the outline of an epoch.
func (r *rig) outline(run core.ID, epoch int) []core.Step {
	r.Helper()
	steps, err := r.store.Outline(context.Background(), run, epoch)
	if err != nil {
		r.Errorf("Outline = %v", err)
	}
	return steps
}

// listLargeSteps lists steps that fill a page at different places, with texts kept in another
// table and within the steps. A page must end by its bytes, or a listing of large steps would not
// fit into memory.
func listLargeSteps(r *rig) {
	for _, separate := range []bool{false, true} {
		run := r.newRun().Run
		var sizes []int
		var all []core.Step
		for i, state := range []int{core.MaxRead / 8, 10, core.MaxRead / 8} {
			// A transition for each size: a busy database over HTTP takes long for many MiB at once.
			t := r.transitionOf(r.run(run.ID), core.EntrySucceeded)
			t.Apart = separate
			for n := range 6 {
				s := r.step(run, fmt.Sprint(i, "-", n), core.StepSucceeded)
				s.State = []byte(`"` + strings.Repeat("x", state) + `"`)
				s.Output, s.FinishedAt = []byte(`1`), r.now
				if n%2 == 0 {
					s.Output = s.State
				}
				t.New = append(t.New, s)
				sizes = append(sizes, len(s.State)+len(s.Output))
			}
			r.mustTransit(t)
			all = append(all, t.New...)
		}
		first := r.steps(run.ID, 1, "", 1).Items[0]
		after, at := first.ID, 0
		for at < len(sizes) {
			n, total := 0, 0
			for at+n < len(sizes) && total < core.MaxRead {
				total += sizes[at+n]
				n++
			}
			page := r.steps(run.ID, 1, after, core.MaxPage)
			r.equal(fmt.Sprintf("Steps from %d, apart: %v", at, separate), page, core.Page[core.Step]{Items: all[at : at+n], More: at+n < len(sizes)})
			at += n
			after = all[at-1].ID
		}
	}
}
