package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Races of transitions with transitions, takes, settles and releases. Steps of a run end on any
// worker at any moment, and each end is a transition. A failure means that a step runs twice, that
// a join counts wrong and a run never continues, or that a run ends in two ways.

// wantOneMade checks that exactly one of several transitions of a run was made, and that the store
// shows all of it and nothing of the others. Every part of a full transition carries its mark, so
// a part of a lost one is recognized.
func (r *rig) wantOneMade(j core.TakenJob, ts []core.Transition, made []bool) {
	r.Helper()
	won := slices.Index(made, true)
	if won < 0 || slices.Contains(made[won+1:], true) {
		r.Fatalf("Transit of %d at once: made = %v, want one", len(ts), made)
	}
	t := ts[won]
	r.equal("rows of the run after the transition that was made", r.runView(t.Run.ID), runView{
		Run: t.Run, Steps: append([]core.Step{r.firstStepAfter(j, t)}, t.New...),
		History: t.Entries, Awaited: map[core.ID]string{t.New[1].ID: t.Tokens[0].Hash},
	})
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{t.Attempts[0].Attempt})
	r.equal("last error of the job, which is the mark of the transition", r.job(j.ID).LastError, string(t.Mark))
	r.equal("jobs of the event", ids(r.jobs(core.JobFilter{EventID: j.EventID}).Items), []core.ID{t.New[1].ID, j.ID})
	for i, lost := range ts {
		if i != won {
			r.wantAbsent(*lost.GivesRise)
			r.equal("Awaited with the token of a lost transition", r.awaited(lost.Tokens[0].Hash), core.ID(""))
		}
	}
	r.storedEvent(t.GivesRise.Event.ID)
}

// 16 workers have read the same state of a run and send different transitions. One wins as a
// whole.
func raceTransit(r *rig) {
	for range r.scaled(20) {
		j := r.takeNewRun()
		ts, made := make([]core.Transition, callers), make([]bool, callers)
		for i := range ts {
			ts[i] = r.fullTransition(j)
		}
		r.concurrently(callers, func(i int) error {
			got, err := r.store.Transit(context.Background(), ts[i])
			made[i] = len(got) == 1 && got[0].Made
			return err
		})
		r.wantOneMade(j, ts, made)
	}
}

// raceTransits has callers make transitions of the same runs in opposite orders. The runs are
// locked in opposite orders if a store locks them in the order of the call. Several winners may be
// in one call, each for its own run.
func raceTransits(r *rig) {
	const runs = 3
	for range r.scaled(20) {
		jobs := []core.TakenJob{r.takeNewRun(), r.takeNewRun(), r.takeNewRun()}
		ts, made := make([][]core.Transition, callers), make([][]core.Transited, callers)
		for i := range ts {
			for _, j := range jobs {
				ts[i] = append(ts[i], r.fullTransition(j))
			}
			if i%2 == 1 {
				slices.Reverse(ts[i])
			}
		}
		r.concurrently(callers, func(i int) (err error) {
			made[i], err = r.store.Transit(context.Background(), ts[i]...)
			return err
		})
		for n := range runs {
			var of []core.Transition
			var done []bool
			for i := range ts {
				at := n
				if i%2 == 1 {
					at = runs - 1 - n
				}
				of, done = append(of, ts[i][at]), append(done, made[i][at].Made)
			}
			r.wantOneMade(jobs[n], of, done)
		}
	}
}

// raceSameMark has many callers send the same transition at once, as after lost answers. The
// store must report the transition as made to all of them.
func raceSameMark(r *rig) {
	for range r.scaled(20) {
		j := r.takeNewRun()
		t := r.fullTransition(j)
		r.concurrently(callers, func(int) error {
			made, err := r.store.Transit(context.Background(), t)
			if err == nil && !made[0].Made {
				err = errors.New("Transit sent by many tells one that it is not made")
			}
			return err
		})
		r.wantOneMade(j, []core.Transition{t}, []bool{true})
	}
}

// raceCallback makes a transition for the reply to a call and one for its callback at once. Both
// read the step first. The loser reads again and finds the step finished. Output and attempt must
// come from the same one of both.
func raceCallback(r *rig) {
	for range r.scaled(30) {
		j := r.takeNewRun()
		ends := make([]int, 2)
		r.concurrently(2, func(i int) error {
			for range callers {
				read, err := r.store.Situations(context.Background(), []core.ID{j.ID})
				s := read[j.ID]
				if err != nil || !s.Step.Status.Open() {
					return err
				}
				t := r.completes(s)
				if i == 0 {
					t.Attempts = []core.AttemptRecord{{JobID: j.ID, Lease: j.Lease, Attempt: r.called(j, "ok")}}
				}
				t.Changed[0].Output = fmt.Append(nil, i)
				made, err := r.store.Transit(context.Background(), t)
				if err != nil {
					return err
				}
				if made[0].Made {
					ends[i]++
				}
			}
			return errors.New("a step was open whenever it was read, and no transition of it was made")
		})
		r.equal("ends of a step that are made", ends[0]+ends[1], 1)
		r.equal("output, by the caller whose transition is made", string(r.situation(j.ID).Step.Output), fmt.Sprint(ends[1]))
		r.equal("Attempts", len(r.attempts(j.ID)), ends[0])
	}
}

// raceJoin ends all items of a map at once. Each item counts itself. All transitions are for the
// same run, so each worker loses many times and reads again. The count of ended items must be
// exact, or the step after the map would start early or never.
func raceJoin(r *rig) {
	j := r.takeNewRun()
	n := r.scaled(24)
	t := r.transitionOf(j.Situation.Run, core.EntryFanned)
	fan := r.step(t.Run, "map", core.StepRunning)
	fan.Fan = core.Fan{Total: n, Started: n}
	t.New = []core.Step{fan}
	for i := range n {
		item := r.step(t.Run, fmt.Sprintf("map/%d/item", i), core.StepRunning)
		item.ParentID, item.Branch = fan.ID, fmt.Sprint(i)
		t.New = append(t.New, item)
	}
	r.mustTransit(t)
	r.concurrently(n, func(i int) error { return r.endItem(t.New[i+1].ID) })
	fan.Fan.Ended = n
	r.equal("the map", r.situation(fan.ID).Step, fan)
	r.equal("items that are over", len(r.survey(t.Run.ID, 1, core.Wanted{Leaves: []core.ID{fan.ID}})), n)
	for i, e := range r.history(t.Run.ID, 0, core.MaxPage) {
		r.equal("History: Seq", e.Seq, i+1)
	}
	r.equal("Seq", r.run(t.Run.ID).Seq, n+1)
}

// endItem ends an item of a map. It tries again each time another item's transition came first.
func (r *rig) endItem(item core.ID) error {
	for range 10_000 {
		read, err := r.store.Situations(context.Background(), []core.ID{item})
		if err != nil {
			return err
		}
		s := read[item]
		over, fan := ended(s.Step, r, core.StepSucceeded), s.Above[0]
		over.Last = true
		fan.Fan.Ended++
		t := r.transitionOf(s.Run, core.EntrySucceeded)
		t.Changed = []core.StepChange{changeOf(over), changeOf(fan)}
		made, err := r.store.Transit(context.Background(), t)
		if err != nil || made[0].Made {
			return err
		}
	}
	return fmt.Errorf("the item %s could not be ended, however often it was read", item)
}

// raceSituations reads a step while transitions increase a number in its run and in the step. Each
// read must find both numbers equal. Four readers read while one writer counts. A worker that saw
// a step of one moment and a run of another would send transitions that are lost, or make
// decisions twice.
func raceSituations(r *rig) {
	s := r.newRun()
	n := r.scaled(60)
	r.concurrently(5, func(i int) error {
		if i == 0 {
			return r.countUp(s, n)
		}
		for range n {
			read, err := r.store.Situations(context.Background(), []core.ID{s.Step.ID})
			if err != nil {
				return err
			}
			if now := read[s.Step.ID]; now.Run.Seq != now.Step.Attempt {
				return fmt.Errorf("Situations: the run is at %d and its step at %d, want the same", now.Run.Seq, now.Step.Attempt)
			}
		}
		return nil
	})
	r.equal("Seq", r.run(s.Run.ID).Seq, n)
}

// countUp makes n transitions that each increase a number in a run and in its step. It is the only
// writer, so each transition must be made.
func (r *rig) countUp(s core.Situation, n int) error {
	for range n {
		t := r.transitionOf(s.Run, core.EntryRetried)
		s.Step.Attempt++
		t.Changed = []core.StepChange{changeOf(s.Step)}
		if made, err := r.store.Transit(context.Background(), t); err != nil || !made[0].Made {
			return fmt.Errorf("Transit of one who is alone: made = %v, %w", made, err)
		}
		s.Run = t.Run
	}
	return nil
}

// raceTransition runs rounds of a transition that completes a job, at the same time as another
// call on that job. In each case the job must end as completed and without a lease. The other call
// has a lease that ended. The transition carries none.
func (r *rig) raceTransition(other func(core.TakenJob) error) {
	r.Helper()
	for range r.scaled(30) {
		j := r.takeNewRun()
		r.now = j.DueAt
		t := r.completes(j.Situation)
		r.concurrently(2, func(i int) error {
			if i == 0 {
				return other(j)
			}
			made, err := r.store.Transit(context.Background(), t)
			if err == nil && !made[0].Made {
				err = errors.New("Transit: a transition that is alone is not made")
			}
			return err
		})
		got := r.job(j.ID)
		r.equal("Job", []any{got.Status, got.Lease, got.DueAt.IsZero(), got.FinishedAt}, []any{core.Completed, core.Lease(""), true, r.now})
		r.equal("Take of a job that is completed", len(r.takeQuotas(r.runQuota(9))), 0)
		r.equal("Run", r.run(t.Run.ID), t.Run)
	}
}

// A worker settles the job of a step whose run has moved on.
func raceTransitSettle(r *rig) {
	r.raceTransition(func(j core.TakenJob) error {
		o := r.ended(j.Job, core.Retryable)
		o.DueAt = r.now
		_, err := r.store.Settle(context.Background(), o)
		return err
	})
}

// A worker that stops releases the job of such a step.
func raceTransitRelease(r *rig) {
	r.raceTransition(func(j core.TakenJob) error { return r.store.Release(context.Background(), r.now, j.Job) })
}

// raceTransitTake takes the job of a step while a transition completes it. A Take must return the
// run as it was before or as it is after, and the job must end without a lease.
func raceTransitTake(r *rig) {
	r.raceTransition(func(j core.TakenJob) error {
		taken, err := r.store.Take(context.Background(), r.now, []core.Quota{r.runQuota(1)})
		for _, again := range taken {
			if s := again.Situation; s.Step.ID != j.ID || (s.Run.Seq == 0) != s.Step.Status.Open() {
				err = fmt.Errorf("Take: the step %s is %s in a run at %d", s.Step.ID, s.Step.Status, s.Run.Seq)
			}
		}
		return err
	})
}
