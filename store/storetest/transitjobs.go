package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the effects of a transition on jobs, with and without a lease. A transition is fenced
// by the run's Seq, not by leases. So a callback or a second worker may end a step whose job
// another worker holds.

// completes returns a transition that ends the first step of a run and its job, from a caller
// without a lease.
func (r *rig) completes(s core.Situation) core.Transition {
	t := r.transitionOf(s.Run, core.EntrySucceeded)
	t.Changed = []core.StepChange{changeOf(ended(s.Step, r, core.StepSucceeded))}
	t.JobsEnd = []core.JobChange{{ID: s.Step.ID, Status: core.Completed, FinishedAt: r.now}}
	return t
}

// A callback ends a step whose job no worker has taken. The job must not be delivered afterwards.
func transitUnheld(r *rig) {
	s := r.newRun()
	t := r.completes(s)
	t.Attempts = []core.AttemptRecord{{JobID: s.Step.ID, Lease: "of no workflow", Attempt: core.Attempt{Number: 1, StartedAt: r.now}}}
	r.mustTransit(t)
	got := r.job(s.Step.ID)
	r.equal("Job", []any{got.Status, got.Attempt, got.DueAt, got.ScheduledAt, got.FinishedAt}, []any{core.Completed, 0, time.Time{}, s.Step.StartedAt, r.now})
	r.equal("Attempts", r.attempts(s.Step.ID), []core.Attempt{t.Attempts[0].Attempt})
	r.equal("Take: jobs", len(r.takeQuotas(r.runQuota(9))), 0)
}

// transitHeld has the worker that took a job first make its transition while another worker holds
// the job. The second worker's transition is then stale.
func transitHeld(r *rig) {
	first := r.takeNewRun()
	r.now = first.DueAt
	second := r.takeOnly(first.ID, r.runQuota(1))
	t := r.fullTransition(first)
	r.mustTransit(t)
	got := r.job(first.ID)
	r.equal("Job", []any{got.Status, got.Attempt, got.Lease}, []any{core.Completed, 2, core.Lease("")})
	r.wantNotMade(r.fullTransition(second))
	r.equal("Attempts", r.attempts(first.ID), []core.Attempt{t.Attempts[0].Attempt})
}

// transitHolds ends two steps: a worker holds the job of the first, and the job of the second is
// not taken. HeldUntil says until when a worker may still make the call of the ended step. A
// repetition of the transition, after the job lost its lease, must not clear it.
func transitHolds(r *rig) {
	j := r.takeNewRun()
	t := r.transitionOf(j.Situation.Run, core.EntryFanned)
	idle := r.step(t.Run, "idle", core.StepReady)
	t.New, t.Jobs = []core.Step{idle}, []core.StepJob{{ID: idle.ID, DueAt: r.now.Add(time.Hour)}}
	r.mustTransit(t)
	end := r.finished(t.Run, core.RunFailed)
	end.Held = []core.ID{j.ID, idle.ID}
	for _, s := range []core.Step{j.Situation.Step, idle} {
		end.Changed = append(end.Changed, changeOf(ended(s, r, core.StepCanceled)))
		end.JobsEnd = append(end.JobsEnd, core.JobChange{ID: s.ID, Status: core.Completed, FinishedAt: r.now})
	}
	r.mustTransit(end)
	r.equal("HeldUntil", r.heldUntil(end.Run), map[core.ID]time.Time{j.ID: j.DueAt, idle.ID: {}})
	r.mustTransit(end)
	r.equal("HeldUntil once it is made again", r.heldUntil(end.Run), map[core.ID]time.Time{j.ID: j.DueAt, idle.ID: {}})
}

// A lost transition must not set HeldUntil, neither alone in a call nor after a transition that
// is made.
func transitHoldsBehind(r *rig) {
	j := r.takeNewRun()
	t := r.transitionOf(j.Situation.Run, core.EntryStarted)
	r.mustTransit(t)
	late := r.transitionOf(j.Situation.Run, core.EntryFailed)
	late.Held = []core.ID{j.ID}
	r.wantNotMade(late)
	r.equal("HeldUntil", r.heldUntil(t.Run), map[core.ID]time.Time{j.ID: {}})

	j = r.takeNewRun()
	first, second := r.transitionOf(j.Situation.Run, core.EntryStarted), r.transitionOf(j.Situation.Run, core.EntryFailed)
	second.Held = []core.ID{j.ID}
	r.equal("Transit: made", r.transit(first, second), []bool{true, false})
	r.equal("HeldUntil after a second one in the same call", r.heldUntil(first.Run), map[core.ID]time.Time{j.ID: {}})
}

// heldUntil returns the HeldUntil of each step of a run, and checks that Steps and Survey agree
// on it.
func (r *rig) heldUntil(run core.Run) map[core.ID]time.Time {
	r.Helper()
	page, err := r.store.Steps(context.Background(), run.ID, run.Epoch, "", core.MaxPage)
	r.equal("Steps: error", err, nil)
	all, err := r.store.Survey(context.Background(), run.ID, run.Epoch, core.Wanted{All: true})
	r.equal("Survey: error", err, nil)
	listed, surveyed := map[core.ID]time.Time{}, map[core.ID]time.Time{}
	for _, s := range page.Items {
		listed[s.ID] = s.HeldUntil
	}
	for _, s := range all {
		surveyed[s.ID] = s.HeldUntil
	}
	r.equal("HeldUntil of Steps and of Survey", listed, surveyed)
	return listed
}

// A worker may settle the job as a plain one after the run moved on. The outcome is lost.
func transitThenSettle(r *rig) {
	j := r.takeNewRun()
	t := r.completes(j.Situation)
	r.mustTransit(t)
	want := r.state()
	r.equal("Settle: lost", r.lost(r.ended(j.Job, core.Dead)), []core.ID{j.ID})
	r.equal("state after a lost outcome", r.state(), want)
}

// A release after the transition must not make the completed job available.
func transitThenRelease(r *rig) {
	j := r.takeNewRun()
	r.mustTransit(r.completes(j.Situation))
	want := r.state()
	r.release(r.now, j.Job)
	r.equal("state after a stale release", r.state(), want)
}

// transitRetryable makes a job due again, sooner than any other job of its lane. Its attempts are
// counted on, and the next transition may make it due even sooner.
func transitRetryable(r *rig) {
	j := r.takeNewRun()
	t := r.transitionOf(j.Situation.Run, core.EntryRetried)
	r.now = r.now.Add(time.Second)
	due := r.now.Add(time.Second)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Retryable, DueAt: due, Error: "network: refused"}}
	r.mustTransit(t)
	r.wantJob(core.Job{ID: j.ID, EventID: j.EventID, Lane: j.Lane, Status: core.Retryable, Attempt: 1, MaxAttempts: core.Unlimited,
		DueAt: due, ScheduledAt: j.CreatedAt, RunID: t.Run.ID, Step: "first", LastError: "network: refused", CreatedAt: j.CreatedAt})
	r.equal("Due", r.due(j.Lane), map[core.Lane]time.Time{j.Lane: due})
	r.equal("Take before it is due", len(r.takeQuotas(r.runQuota(1))), 0)
	r.now = due
	again := r.takeOnly(j.ID, r.runQuota(1))
	r.equal("Take: attempt, Seq", []int{again.Attempt, again.Situation.Run.Seq}, []int{2, 1})

	sooner := r.transitionOf(t.Run, core.EntryRetried)
	sooner.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Retryable, DueAt: due.Add(-time.Minute)}}
	r.mustTransit(sooner)
	got := r.takeOnly(j.ID, r.runQuota(1))
	r.equal("last error of a job without", got.LastError, "")
}

// The job of a failed run is shown among the dead ones, until a redrive completes it.
func transitDead(r *rig) {
	j := r.takeNewRun()
	t := r.finished(j.Situation.Run, core.RunFailed)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Dead, Error: "status: 500", FinishedAt: r.now}}
	r.mustTransit(t)
	dead := r.jobs(core.JobFilter{Status: core.Dead, Lane: j.Lane}).Items
	r.equal("Jobs: dead", ids(dead), []core.ID{j.ID})
	again := r.transitionOf(t.Run, core.EntryRedriven)
	again.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Completed, Error: "status: 500", FinishedAt: r.now}}
	r.mustTransit(again)
	r.equal("Jobs: dead once completed", len(r.jobs(core.JobFilter{Status: core.Dead}).Items), 0)
	r.equal("last error of the completed job", r.job(j.ID).LastError, "status: 500")
}

// transitNewJobs makes a job that is due before all other jobs of the lane, and one that is due
// later. Both come with the event of the run and their own situation.
func transitNewJobs(r *rig) {
	j := r.takeNewRun()
	r.now = r.now.Add(time.Second)
	t := r.transitionOf(j.Situation.Run, core.EntryFanned)
	soon, later := r.step(t.Run, "soon", core.StepReady), r.step(t.Run, "later", core.StepReady)
	t.New = []core.Step{soon, later}
	t.Jobs = []core.StepJob{{ID: soon.ID, DueAt: r.now.Add(-time.Minute)}, {ID: later.ID, DueAt: r.now.Add(time.Second)}}
	r.mustTransit(t)
	want := core.Job{ID: soon.ID, EventID: j.EventID, Lane: j.Lane, Status: core.Available, MaxAttempts: core.Unlimited,
		DueAt: r.now.Add(-time.Minute), RunID: t.Run.ID, Step: "soon", CreatedAt: r.now}
	r.wantJob(want)
	got := r.takeOnly(soon.ID, r.runQuota(9))
	r.equal("Take: event", got.Event, j.Event)
	r.equal("Take: situation", got.Situation, core.Situation{Run: t.Run, Step: soon})
	r.now = r.now.Add(time.Second)
	r.takeOnly(later.ID, r.runQuota(9))
}
