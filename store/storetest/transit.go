package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Transit, which makes all changes of workflow runs. A transition has many parts in many
// tables. If one part were left out, a run would stop for ever or lose data, and if a lost
// transition left a part, a step would run twice.

const (
	saysTransit      = "Transit makes transitions of different runs, and returns for each of them whether it is made, and whether the job of its Take has the lease"
	saysAllOrNothing = "A transition is made if the run's Seq equals the transition's Seq: then all of it takes effect, otherwise nothing does"
	saysTransitAgain = "Sending a transition again after it was made changes nothing, even if the run has moved on since, and returns that it is made"
	saysOneForSeq    = "Of several transitions for the same Seq of a run, exactly one is made"
	saysAnyLease     = "Attempts are recorded and jobs are changed under any lease of the jobs, and no outcome or release under an older lease counts afterwards"
	saysNewJobs      = "New jobs wait in the lane of the workflow, for the event of the run"
	saysTakeNext     = "The job of Take is leased at once, with the Mark as its lease, unless a hold of its lane or source keeps it: then it waits like the others"
)

// transitTells sends transitions that are made together with one that is not. The ids of their
// runs are in no order. So an answer in another order than the call is noticed.
func transitTells(r *rig) {
	a, b, c := r.newRun().Run, r.newRun().Run, r.newRun().Run
	late := r.transitionOf(b, core.EntryStarted)
	r.mustTransit(r.transitionOf(b, core.EntryStarted))
	made := r.transit(r.transitionOf(c, core.EntryStarted), late, r.transitionOf(a, core.EntryStarted))
	r.equal("Transit: made", made, []bool{true, false, true})
	for _, run := range []core.Run{a, b, c} {
		r.equal("Seq", r.run(run.ID).Seq, 1)
	}
}

// A call without transitions is no error.
func transitNone(r *rig) {
	r.newRun()
	r.wantIdempotent("Transit of none", func() { r.equal("Transit: made", r.transit(), []bool{}) })
}

// transitAll reads back each part of a transition. The parts are steps, changes, jobs, an attempt,
// a token, an alert and entries. A second run of the same workflow must not change.
func transitAll(r *rig) {
	j := r.takeNewRun()
	run, rest := j.Situation.Run, r.newRun()
	t := r.fullTransition(j)
	r.mustTransit(t)
	call := t.New[1]
	r.equal("run and its rows", r.runView(run.ID), runView{
		Run: t.Run, Steps: append([]core.Step{r.firstStepAfter(j, t)}, t.New...),
		History: t.Entries, Awaited: map[core.ID]string{call.ID: t.Tokens[0].Hash},
	})
	r.wantJob(core.Job{ID: j.ID, EventID: j.EventID, Lane: j.Lane, Status: core.Completed, Attempt: 1, MaxAttempts: core.Unlimited,
		ScheduledAt: j.CreatedAt, RunID: run.ID, Step: "first", LastError: string(t.Mark), CreatedAt: j.CreatedAt, FinishedAt: r.now})
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{t.Attempts[0].Attempt})
	r.equal("event it gives rise to", r.storedEvent(t.GivesRise.Event.ID), t.GivesRise.Event)
	for _, n := range t.GivesRise.Jobs {
		r.wantJob(core.Job{ID: n.ID, EventID: t.GivesRise.Event.ID, Lane: n.Lane, Status: core.Available,
			MaxAttempts: n.MaxAttempts, DueAt: r.now, CreatedAt: r.now})
	}
	r.equal("rows of another run", r.runView(rest.Run.ID), runView{Run: rest.Run, Steps: []core.Step{rest.Step}})
}

// transitSequence takes a run from its start to its end, and checks that cleared fields are empty.
// A run is redriven after it failed: its error, end, deadline and start must not stay behind.
func transitSequence(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	r.mustTransit(t)
	r.now = r.now.Add(time.Second)

	fan, call := t.New[0], t.New[1]
	call = ended(call, r, core.StepSucceeded)
	call.Error, call.Last, call.Carry = "", true, "{}"
	fan.Fan.Ended, fan.Fan.Bytes, fan.Carry = 2, 1<<31, ""
	fan = ended(fan, r, core.StepSucceeded)
	next := r.transitionOf(t.Run, core.EntrySucceeded, core.EntrySucceeded)
	next.Changed = []core.StepChange{changeOf(call), changeOf(fan)}
	next.Disarm = []core.ID{call.ID}
	next.JobsEnd = []core.JobChange{{ID: call.ID, Status: core.Completed, FinishedAt: r.now}}
	r.mustTransit(next)
	first := r.firstStepAfter(j, t)
	first.FinishedAt = t.Changed[0].FinishedAt
	steps := []core.Step{first, fan, call, t.New[2]}
	r.equal("run and its rows", r.runView(t.Run.ID), runView{Run: next.Run, Steps: steps, History: append(t.Entries, next.Entries...)})

	last := r.finished(next.Run, core.RunFailed)
	r.mustTransit(last)
	r.equal("failed run", r.run(t.Run.ID), last.Run)
	again := r.transitionOf(last.Run, core.EntryRedriven)
	again.Run.Status, again.Run.Error, again.Run.FinishedAt, again.Run.DeadlineAt, again.Run.StartedAt = core.RunPending, "", time.Time{}, time.Time{}, time.Time{}
	r.mustTransit(again)
	r.equal("run with cleared fields", r.run(t.Run.ID), again.Run)
	done := r.finished(again.Run, core.RunCompleted)
	r.mustTransit(done)
	r.equal("completed run", r.run(t.Run.ID), done.Run)
}

// transitPassing has steps return their state as their output, in the transition that makes them
// and in a later one. Stores keep such a text once, which must not show.
func transitPassing(r *rig) {
	s := r.newRun()
	t := r.transitionOf(s.Run, core.EntryStarted, core.EntryStarted)
	at, later := r.step(t.Run, "at", core.StepSucceeded), r.step(t.Run, "later", core.StepReady)
	at.State, later.State = []byte(`{"a": 1}`), []byte(`{"b": 1}`)
	at.Output = at.State
	t.New = []core.Step{at, later}
	r.mustTransit(t)
	over := ended(later, r, core.StepSucceeded)
	over.Output = later.State
	next := r.transitionOf(t.Run, core.EntrySucceeded)
	next.Changed = []core.StepChange{changeOf(over)}
	r.mustTransit(next)
	r.equal("steps", r.survey(t.Run.ID, 1, core.Wanted{All: true}), []core.Step{s.Step, at, over})
}

// A transition may be an entry only. The steps and the job stay as they are.
func transitBare(r *rig) {
	s := r.newRun()
	t := r.transitionOf(s.Run, core.EntryStarted)
	r.mustTransit(t)
	r.equal("run and its rows", r.runView(s.Run.ID), runView{Run: t.Run, Steps: []core.Step{s.Step}, History: t.Entries})
	r.equal("job", r.job(s.Step.ID).Status, core.Available)
}

// transitEpoch opens steps at the same paths in a new epoch. A path is unique within an epoch
// only.
func transitEpoch(r *rig) {
	j := r.takeNewRun()
	t := r.transitionOf(j.Situation.Run, core.EntryRedriven)
	t.Run.Epoch = 2
	again := r.step(t.Run, "first", core.StepReady)
	t.New, t.Jobs = []core.Step{again}, []core.StepJob{{ID: again.ID, DueAt: r.now}}
	r.mustTransit(t)
	r.equal("run and its rows", r.runView(t.Run.ID), runView{Run: t.Run, Steps: []core.Step{j.Situation.Step, again}, History: t.Entries})
	r.equal("Situation", r.takeOnly(again.ID, r.runQuota(9)).Situation, core.Situation{Run: t.Run, Step: again})
}

// A worker read the run before others changed it. Nothing of its transition may be stored, whether
// the run is one or two entries ahead.
func transitBehind(r *rig) {
	j := r.takeNewRun()
	r.mustTransit(r.transitionOf(j.Situation.Run, core.EntryStarted, core.EntryWaiting))
	r.wantNotMade(r.fullTransition(j))
	j.Situation.Run.Seq = 1
	r.wantNotMade(r.fullTransition(j))
}

// A transition with a Seq that the run has not reached is a defect of the caller, and changes
// nothing. Afterwards the right one is made.
func transitAhead(r *rig) {
	j := r.takeNewRun()
	for _, seq := range []int{1, 2, 4} {
		j.Situation.Run.Seq = seq
		r.wantNotMade(r.fullTransition(j))
	}
	j.Situation.Run.Seq = 0
	r.mustTransit(r.fullTransition(j))
}

// A run that was purged in the meantime gets no rows.
func transitUnknown(r *rig) {
	j := r.takeNewRun()
	j.Situation.Run.ID = r.ids.Next()
	r.wantNotMade(r.fullTransition(j))
}

// One call has transitions of two runs, one of them stale. The stale transition must neither
// stop the others nor store anything.
func transitSome(r *rig) {
	j, behind := r.takeNewRun(), r.takeNewRun()
	r.mustTransit(r.transitionOf(behind.Situation.Run, core.EntryStarted))
	want := r.runView(behind.Situation.Run.ID)
	t, late := r.fullTransition(j), r.fullTransition(behind)
	r.equal("Transit: made", r.transit(late, t), []bool{false, true})
	r.equal("run of the transition that is made", r.runView(t.Run.ID).Run, t.Run)
	r.equal("rows of the other run", r.runView(behind.Situation.Run.ID), want)
	r.equal("job of the other", r.job(behind.ID).Status, core.Running)
	r.equal("attempts of the other", r.attempts(behind.ID), []core.Attempt{})
	r.equal("jobs of the other event", len(r.jobs(core.JobFilter{EventID: behind.EventID}).Items), 1)
	r.wantAbsent(*late.GivesRise)
}

// transitMany opens 1,000 items of a map, and reads them by their paths. A map opens and ends its
// items in one transition each, more rows than one statement takes.
func transitMany(r *rig) {
	j := r.takeNewRun()
	n := r.scaled(1000)
	t := r.transitionOf(j.Situation.Run, core.EntryFanned)
	var paths []string
	for i := range n {
		item := r.step(t.Run, fmt.Sprintf("map/%d/item", i), core.StepReady)
		item.ParentID, item.Branch = j.ID, fmt.Sprint(i)
		t.New, paths = append(t.New, item), append(paths, item.Path)
		if i%2 == 0 {
			t.Jobs = append(t.Jobs, core.StepJob{ID: item.ID, DueAt: r.now})
		}
	}
	r.mustTransit(t)
	r.equal("Survey: paths", r.survey(t.Run.ID, 1, core.Wanted{Paths: paths}), t.New)
	r.equal("Take: jobs", len(r.takeQuotas(r.runQuota(n))), len(t.Jobs))

	// All items end at once, as when a run fails.
	end := r.transitionOf(t.Run, core.EntryFailed)
	var want []core.Step
	for _, item := range t.New {
		item = ended(item, r, core.StepSucceeded)
		item.Last = true
		want, end.Changed = append(want, item), append(end.Changed, changeOf(item))
	}
	for _, job := range t.Jobs {
		end.JobsEnd = append(end.JobsEnd, core.JobChange{ID: job.ID, Status: core.Completed, FinishedAt: r.now})
	}
	r.mustTransit(end)
	r.equal("Survey: leaves", r.survey(t.Run.ID, 1, core.Wanted{Leaves: []core.ID{j.ID}}), want)
	r.equal("Jobs: running", len(r.jobs(core.JobFilter{Status: core.Running, Lane: j.Lane, Limit: core.MaxPage}).Items), 1)
}

// transitDefinition has runs follow a definition with which no run began. A redrive may move a run
// to a corrected definition. Other runs keep theirs.
func transitDefinition(r *rig) {
	a, b, next := r.newRun().Run, r.newRun().Run, definition("another")
	for i, run := range []core.Run{a, b} {
		t := r.transitionOf(run, core.EntryRedriven)
		t.Definition, t.Run.Definition = next, next.Hash
		r.mustTransit(t)
		r.equal("Definition of the run", r.run(run.ID).Definition, next.Hash)
		r.wantDefinition(next)
		r.mustTransit(r.transitionOf(t.Run, core.EntryStarted))
		r.equal("Definition of the run, later", r.run(run.ID).Definition, next.Hash)
		if i == 0 {
			r.equal("Definition of another run", r.run(b.ID).Definition, b.Definition)
		}
	}
}

// A worker that got no answer sends its transition again. The store must report the transition as
// made.
func transitAgain(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.wantIdempotent("Transit", func() { r.mustTransit(t) })
}

// One call has a transition that was made before and a new transition of another run.
func transitAgainBeside(r *rig) {
	t, other := r.fullTransition(r.takeNewRun()), r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	r.mustTransit(other, t)
	r.equal("History", len(r.history(t.Run.ID, 0, 10)), 4)
	r.wantIdempotent("Transit of both", func() { r.mustTransit(t, other) })
}

// transitAgainLater repeats transitions after each of the transitions that follow, which change
// the same rows again.
func transitAgainLater(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	call, sent := t.New[1], []core.Transition{t}
	for i := range 3 {
		r.now = r.now.Add(time.Second)
		next := r.transitionOf(sent[i].Run, core.EntrySucceeded, core.EntryRetried)
		next.Run.Step, call.Attempt = fmt.Sprint(i), i
		next.Changed = []core.StepChange{changeOf(call)}
		next.JobsEnd = []core.JobChange{{ID: call.ID, Status: core.Retryable, DueAt: r.now.Add(leaseTime), Error: fmt.Sprint(i)}}
		if i == 1 {
			next.Tokens = []core.Token{{Hash: tokenOf(call.ID), StepID: call.ID, ExpiresAt: r.now.Add(leaseTime)}}
		} else {
			next.Disarm = []core.ID{call.ID}
		}
		r.mustTransit(next)
		sent = append(sent, next)
		want := r.state()
		for _, older := range slices.Backward(sent) {
			r.mustTransit(older)
		}
		r.equal("state after older transitions were sent again", r.state(), want)
	}
}

// transitTogether sends several transitions of one run in one batch, as a process that batches
// the transitions of many workers may.
func transitTogether(r *rig) {
	j := r.takeNewRun()
	ts := []core.Transition{r.fullTransition(j), r.fullTransition(j), r.fullTransition(j)}
	ts[1].Disarm = []core.ID{ts[0].New[1].ID}
	r.wantOneMade(j, ts, r.transit(ts...))
}
