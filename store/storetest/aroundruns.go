package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Accept, Take, Retry, Purge and the Ledger for workflow runs. They show that the rows
// of a run appear and disappear together with those of its event and job. If one failed, a run
// could exist that no worker ever takes, or a purge could delete a run that goes on.

const (
	saysRunsStored = "The runs of an arrival are stored with it: pending, in their first epoch, each with its ready first step, which receives the event, and with its definition, unless that is stored already"
	saysTakenRun   = "A job of a workflow comes with the situation of its step"
	saysJobRun     = "For a job of a workflow, this method and Jobs return the run and step as well"
	saysRetryRun   = "Jobs of workflows stay dead, because their runs are redriven instead"
	saysDefsStay   = "Definitions are kept"
)

// One arrival brings runs of two workflows, one of them without a deadline, and a plain job beside
// them. All rows are read back.
func acceptRuns(r *rig) {
	a := r.runArrival(defaultWorkflow, "billing", defaultWorkflow)
	a.Runs[1].Timeout = 0
	a.Jobs = append(a.Jobs, r.arrival(r.lane).Jobs...)
	for _, j := range r.accepted(a)[:3] {
		for _, n := range a.Runs {
			if n.StepID == j.ID {
				j.RunID, j.Step = n.ID, n.Step
			}
		}
		r.wantJob(j)
	}
	for _, s := range pending(a) {
		r.equal("run and its rows", r.runView(s.Run.ID), runView{Run: s.Run, Steps: []core.Step{s.Step}})
	}
	r.equal("no deadline", r.run(a.Runs[1].ID).DeadlineAt, time.Time{})
	r.equal("job without a run", r.job(a.Jobs[3].ID).RunID, core.ID(""))
}

// acceptRunsAgain accepts an arrival again after its run got more jobs, and once more after the
// run ended. A sender that got no answer sends again at any later time. The repetition must not
// start the workflow anew, and the receipt must not count jobs of later steps.
func acceptRunsAgain(r *rig) {
	for _, delivery := range []string{"", "d"} {
		a := r.runArrival(defaultWorkflow)
		a.Event.DeliveryID = delivery
		want := core.Receipt{EventID: a.Event.ID, Jobs: 1}
		r.wantIdempotent("Accept", func() { r.equal("Accept", r.accept(a), want) })
		t := r.fullTransition(r.takeOnly(a.Jobs[0].ID, r.runQuota(1)))
		r.mustTransit(t)
		r.wantIdempotent("Transit and Accept", func() { r.mustTransit(t); r.equal("Accept again", r.accept(a), want) })
		r.now = r.now.Add(time.Second)
		r.mustTransit(r.finished(t.Run, core.RunCompleted))
		want2 := r.state()
		r.equal("Accept again at the end", r.accept(a), want)
		r.equal("state after Accept again at the end", r.state(), want2)
	}
}

// A duplicate delivery must start no workflow, although its run has ids of its own.
func acceptRunsDuplicate(r *rig) {
	first, second := r.runArrival(defaultWorkflow), r.runArrival(defaultWorkflow, "billing")
	first.Event.DeliveryID, second.Event.DeliveryID = "d", "d"
	r.accept(first)
	want := r.state()
	r.equal("Accept", r.accept(second), core.Receipt{EventID: first.Event.ID, Duplicate: true})
	r.equal("state after a duplicate", r.state(), want)
	for _, n := range second.Runs {
		r.wantNoRun(n.ID, n.StepID)
	}
}

// acceptRunsKeyed leaves out a run whose job is left out because its key is taken. A run without
// its first job would stay pending for ever.
func acceptRunsKeyed(r *rig) {
	first, second, third := r.runArrival(defaultWorkflow), r.runArrival(defaultWorkflow, "billing"), r.runArrival(defaultWorkflow)
	for _, a := range []core.Arrival{first, second, third} {
		a.Jobs[0].Key = "k"
	}
	r.accepted(first)
	r.equal("Accept", r.accept(second), core.Receipt{EventID: second.Event.ID, Jobs: 1})
	r.wantNoRun(second.Runs[0].ID, second.Runs[0].StepID)
	r.equal("run that is not left out", r.run(second.Runs[1].ID), pending(second)[1].Run)
	r.equal("Accept", r.accept(third), core.Receipt{EventID: first.Event.ID, Duplicate: true})
	r.wantNoRun(third.Runs[0].ID, third.Runs[0].StepID)
	r.equal("runs", len(r.runs(core.RunFilter{}).Items), 2)
}

// Many callers accept the same arrival at once, and then different arrivals with the same delivery
// id. Each event must have its runs once, and each run one first step.
func raceAcceptRuns(r *rig) {
	for range r.scaled(15) {
		a := r.runArrival(defaultWorkflow, "billing")
		id := string(a.Event.ID)
		a.Event.DeliveryID = id
		r.concurrently(callers, func(int) error {
			got, err := r.store.Accept(context.Background(), a)
			if want := (core.Receipt{EventID: a.Event.ID, Jobs: 2}); err == nil && got != want {
				err = fmt.Errorf("Accept = %+v, want %+v", got, want)
			}
			return err
		})
		r.equal("runs of the event", len(r.runs(core.RunFilter{EventID: a.Event.ID}).Items), 2)
		r.acceptConcurrently(func() core.Arrival {
			a := r.runArrival(defaultWorkflow)
			a.Event.DeliveryID = "another " + id
			return a
		})
	}
	for _, run := range r.runs(core.RunFilter{Limit: core.MaxPage}).Items {
		r.equal("steps", len(r.survey(run.ID, 1, core.Wanted{All: true})), 1)
		r.storedEvent(run.EventID)
	}
}

// One Take returns jobs of two workflows and of a handler. Only jobs of workflows have a
// situation, and it must be the one of their own step.
func takeRuns(r *rig) {
	a := r.runArrival(defaultWorkflow, "billing", defaultWorkflow)
	r.accept(a)
	bare := r.put()
	first := pending(a)
	want := map[core.ID]core.Situation{first[0].Step.ID: first[0], first[1].Step.ID: first[1], first[2].Step.ID: first[2], bare.ID: {}}
	got := map[core.ID]core.Situation{}
	for _, j := range r.takeQuotas(r.quota(9), r.runQuota(9), core.Quota{Lane: core.WorkflowLane("billing"), N: 1, Hold: leaseTime}) {
		got[j.ID] = j.Situation
		r.equal("Take: event", j.Event, r.storedEvent(j.EventID))
		r.equal("Take: run and step, beside the situation", []any{j.RunID, j.Step}, []any{core.ID(""), ""})
	}
	r.equal("Take: situations", got, want)
}

// A job of a later step comes with the steps around it. After another transition of the run, the
// same job must come with the run as it is then: a worker would otherwise send a transition that
// is lost.
func takeRunsLater(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	r.now = t.Jobs[0].DueAt
	fan, call := t.New[0], t.New[1]
	fan.State = nil
	r.equal("Take: situation", r.takeOnly(call.ID, r.runQuota(9)).Situation, core.Situation{Run: t.Run, Step: call, Above: []core.Step{fan}})
	r.now = r.now.Add(leaseTime)
	next := r.transitionOf(t.Run, core.EntryWaiting)
	r.mustTransit(next)
	r.equal("Take again: Seq", r.takeOnly(call.ID, r.runQuota(9)).Situation.Run, next.Run)
}

// takeStepless takes a workflow's job that has no step. Such a job remains if its run was purged.
// It must not block the jobs behind it.
func takeStepless(r *rig) {
	r.lane = core.WorkflowLane(defaultWorkflow)
	bare := r.put()
	s := r.newRun()
	for _, j := range r.take(2) {
		want := core.Situation{}
		if j.ID != bare.ID {
			want = s
		}
		r.equal("Take: situation", j.Situation, want)
	}
}

// Operators find the run and step of a failed job by the Ledger. Jobs of handlers and alerts must
// show neither.
func showJobRun(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	bare := r.put()
	got := map[core.ID][]any{}
	for _, j := range r.jobs(core.JobFilter{}).Items {
		r.equal("Job and Jobs", j, r.job(j.ID))
		got[j.ID] = []any{j.RunID, j.Step}
	}
	for _, n := range t.GivesRise.Jobs {
		r.equal("run and step of an alert", got[n.ID], []any{core.ID(""), ""})
	}
	r.equal("run and step of a first job", got[t.JobsEnd[0].ID], []any{t.Run.ID, "first"})
	r.equal("run and step of a later job", got[t.Jobs[0].ID], []any{t.Run.ID, "fan/a/call"})
	r.equal("run and step of another job", got[bare.ID], []any{core.ID(""), ""})
}

// failedRun stores a failed run with its dead job, and returns both.
func (r *rig) failedRun() (core.Run, core.Job) {
	r.Helper()
	j := r.takeNewRunBeside()
	t := r.finished(j.Situation.Run, core.RunFailed)
	t.Changed = []core.StepChange{changeOf(ended(j.Situation.Step, r, core.StepFailed))}
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Dead, Error: "status: 500", FinishedAt: r.now}}
	t.Attempts = []core.AttemptRecord{{JobID: j.ID, Lease: j.Lease, Attempt: r.called(j, "no")}}
	r.mustTransit(t)
	return t.Run, r.job(j.ID)
}

// A retried job of a failed run would continue a run that has ended. Lanes whose names only
// resemble "workflow/" are retried as usual.
func retryRuns(r *rig) {
	_, want := r.failedRun()
	other := r.settled(core.Dead)
	r.now = r.now.Add(time.Second)
	r.equal("Retry of one of a workflow", r.retry(want.ID, ""), 0)
	r.equal("Retry of the lane of a workflow", r.retry("", want.Lane), 0)
	r.equal("Retry of all", r.retry("", ""), 1)
	r.wantJob(want)
	r.equal("status of another", r.job(other.ID).Status, core.Available)
	for _, l := range []core.Lane{"workflow", "workflo", "workflows/x", "workflow0"} {
		r.lane = l
		r.settled(core.Dead)
		r.equal("Retry of "+string(l), r.retry("", ""), 1)
	}
}

// A run is deleted with its event, job, steps and history a millisecond after it finished, and an
// unfinished run keeps all its rows.
func purgeRuns(r *rig) {
	over, job := r.failedRun()
	step := job.ID
	left := r.newRun()
	want := r.runView(left.Run.ID)
	r.equal("Purge at the very time", r.purge(10), 0)
	r.equal("run at the very time", r.run(over.ID), over)
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 3)
	r.wantNoRun(over.ID, step)
	r.wantNoJob(job)
	r.wantNoEvent(over.EventID)
	r.equal("rows of an unfinished run", r.runView(left.Run.ID), want)
	r.equal("Purge again", r.purge(10), 0)
}

// purgeRunsOpen purges while a run goes on whose only job is finished: the job is deleted, and
// the run, its token and its event stay.
func purgeRunsOpen(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	t.Jobs = nil
	r.mustTransit(t)
	r.now = r.now.Add(time.Second)
	want := r.runView(t.Run.ID)
	r.equal("Purge", r.purge(10), 1)
	r.wantNoJob(j.Job)
	r.equal("rows of an unfinished run", r.runView(t.Run.ID), want)
	r.storedEvent(t.Run.EventID)
	r.equal("token of a run that goes on", r.awaited(t.Tokens[0].Hash), t.New[1].ID)

	r.mustTransit(r.finished(t.Run, core.RunCompleted))
	r.now = r.now.Add(time.Second)
	r.equal("Purge after the run finished", r.purge(10), 2)
	r.wantNoRun(t.Run.ID, t.New[1].ID)
	r.wantNoEvent(t.Run.EventID)
}

// purgeRunsJob purges a completed run with a job that is not finished: the run is deleted and the
// job stays.
func purgeRunsJob(r *rig) {
	s := r.newRun()
	r.mustTransit(r.finished(s.Run, core.RunCompleted))
	r.now = r.now.Add(time.Second)
	r.equal("Purge", r.purge(10), 1)
	r.wantNoRun(s.Run.ID, s.Step.ID)
	r.storedEvent(s.Run.EventID)
	got := r.takeOnly(s.Step.ID, r.runQuota(1))
	r.equal("Take of a job without a step: situation", got.Situation, core.Situation{})
}

// purgeRunsRedriven purges after a failed run was redriven: the run stays.
func purgeRunsRedriven(r *rig) {
	run, _ := r.failedRun()
	again := r.transitionOf(run, core.EntryRedriven)
	again.Run.Status, again.Run.FinishedAt = core.RunPending, time.Time{}
	r.mustTransit(again)
	r.now = r.now.Add(time.Second)
	r.equal("Purge", r.purge(10), 1) // its dead job
	r.equal("run", r.run(run.ID), again.Run)
	r.storedEvent(run.EventID)
}

// Runs are purged oldest first, at most the limit in a call, each with its job and event.
func purgeRunsLimit(r *rig) {
	var over []core.Run
	for range 5 {
		run, _ := r.failedRun()
		over = append(over, run)
		r.now = r.now.Add(time.Millisecond)
	}
	r.equal("Purge", r.purge(2), 6)
	for _, run := range over[2:] {
		r.equal("Run", r.run(run.ID), run)
		r.equal("History", len(r.history(run.ID, 0, 10)), 1)
	}
	r.equal("Purge", r.purge(2), 6)
	r.equal("Purge", r.purge(2), 3)
	r.equal("Purge", r.purge(2), 0)
}

// A definition outlives its runs, since new runs refer to it by its hash and do not send it again.
func purgeDefinitions(r *rig) {
	run, _ := r.failedRun()
	r.now = r.now.Add(time.Second)
	r.purge(10)
	r.wantNoEvent(run.EventID)
	r.wantDefinition(definition(defaultWorkflow))
	again := r.newRun()
	r.equal("Definition of a new run", again.Run.Definition, run.Definition)
}

// racePurgeRuns redrives runs while they are purged. Each run is deleted with all its rows or
// kept with all of them.
func racePurgeRuns(r *rig) {
	var failed []core.Run
	again := map[core.ID]core.Transition{}
	for range r.scaled(24) {
		run, _ := r.failedRun()
		failed = append(failed, run)
	}
	r.now = r.now.Add(time.Second)
	for _, run := range failed {
		t := r.transitionOf(run, core.EntryRedriven)
		t.Run.Status, t.Run.FinishedAt = core.RunPending, time.Time{}
		again[run.ID] = t
	}
	made := map[core.ID]bool{}
	r.concurrently(3, func(i int) error {
		if i == 0 {
			for _, run := range failed {
				got, err := r.store.Transit(context.Background(), again[run.ID])
				if err != nil {
					return err
				}
				made[run.ID] = got[0].Made
			}
			return nil
		}
		for n := 1; n > 0; {
			var err error
			if n, _, err = r.store.Purge(context.Background(), r.now, 3); err != nil {
				return err
			}
		}
		return nil
	})
	for _, run := range failed {
		if !made[run.ID] {
			r.wantNoRun(run.ID, "")
			continue
		}
		got := r.runView(run.ID)
		r.equal("run redriven during its purge", got.Run, again[run.ID].Run)
		r.equal("its steps and entries", []int{len(got.Steps), len(got.History)}, []int{1, 2})
		r.storedEvent(run.EventID)
	}
}
