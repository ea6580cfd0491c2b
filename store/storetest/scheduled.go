package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of scheduled jobs. Checks of the Ledger run at the machine's time, because a Ledger
// judges due times by the database's clock. A scheduled job is a step of a workflow that waits for
// a time. A failure means that a step runs early or never, or that operators see a waiting step as
// stuck.

// useMachineTime sets the rig's time to the machine's time.
func (r *rig) useMachineTime() { r.now = core.SystemClock().UTC().Truncate(time.Millisecond) }

// scheduledRun stores a run whose first step waits until a time, and returns its job and the run.
func (r *rig) scheduledRun(until time.Time) (core.Job, core.Run) {
	r.Helper()
	j := r.takeNewRun()
	t := r.transitionOf(j.Situation.Run, core.EntryWaiting)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Scheduled, DueAt: until}}
	r.mustTransit(t)
	j.Status, j.Lease, j.DueAt, j.RunID, j.Step = core.Scheduled, "", until, t.Run.ID, "first"
	return j.Job, t.Run
}

// The job waits without a worker until its time, to the millisecond.
func transitScheduled(r *rig) {
	r.useMachineTime()
	due := r.now.Add(time.Hour)
	want, _ := r.scheduledRun(due)
	r.wantJob(want)
	r.equal("Due", r.due(want.Lane), map[core.Lane]time.Time{want.Lane: due})
	r.now = due.Add(-time.Millisecond)
	r.equal("Take before its time", len(r.takeQuotas(r.runQuota(1))), 0)
	r.now = due
	r.equal("Take at its time: attempt", r.takeOnly(want.ID, r.runQuota(1)).Attempt, 2)
}

// transitEnded ends a job that was scheduled after its first attempt. The ended job shows when
// that attempt was due.
func transitEnded(r *rig) {
	r.useMachineTime()
	j, run := r.scheduledRun(r.now.Add(time.Hour))
	t := r.finished(run, core.RunCanceled)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Completed, FinishedAt: r.now}}
	r.mustTransit(t)
	j.Status, j.DueAt, j.ScheduledAt, j.FinishedAt = core.Completed, time.Time{}, j.CreatedAt, r.now
	r.wantJob(j)
}

// transitNewScheduled makes a job in each status that a new job can have.
func transitNewScheduled(r *rig) {
	r.useMachineTime()
	j := r.takeNewRun()
	t := r.transitionOf(j.Situation.Run, core.EntryFanned)
	due := r.now.Add(time.Hour)
	statuses := []core.Status{core.Available, core.Scheduled, core.Retryable}
	for _, status := range statuses {
		s := r.step(t.Run, string(status), core.StepReady)
		t.New, t.Jobs = append(t.New, s), append(t.Jobs, core.StepJob{ID: s.ID, Status: status, DueAt: due})
	}
	r.mustTransit(t)
	for i, status := range statuses {
		r.equal("status", r.job(t.Jobs[i].ID).Status, status)
	}
}

// releaseWaited releases a scheduled job that was taken when its time came. It becomes available,
// because no attempt failed. It then releases a job whose attempt failed before, which stays
// retryable.
func releaseWaited(r *rig) {
	r.useMachineTime()
	want, run := r.scheduledRun(r.now)
	r.release(r.now, r.takeOnly(want.ID, r.runQuota(1)).Job)
	want.Status = core.Available
	r.wantJob(want)
	t := r.transitionOf(run, core.EntryRetried)
	t.JobsEnd = []core.JobChange{{ID: want.ID, Status: core.Retryable, DueAt: r.now, Error: "status: 500"}}
	r.mustTransit(t)
	r.release(r.now, r.takeOnly(want.ID, r.runQuota(1)).Job)
	r.equal("status of a job released after a failure", r.job(want.ID).Status, core.Retryable)
}

// Operators may start a scheduled job early, unless it belongs to a step.
func retryScheduled(r *rig) {
	r.useMachineTime()
	step, run := r.scheduledRun(r.now.Add(time.Hour))
	j := r.put()
	t := r.transitionOf(run, core.EntryWaiting)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Scheduled, DueAt: r.now.Add(time.Hour)}}
	r.mustTransit(t)
	r.equal("status", r.job(j.ID).Status, core.Scheduled)
	r.equal("Retry of the job of a step", r.retry(step.ID, ""), 0)
	r.wantJob(step)
	r.equal("Retry", r.retry(j.ID, ""), 1)
	r.equal("due time and status after the Retry", []any{r.job(j.ID).DueAt, r.job(j.ID).Status}, []any{r.now, core.Available})
	r.takeOnly(j.ID, r.quota(1))
}

// Scheduled jobs count as pending and scheduled until their time, then as available.
func tallyScheduled(r *rig) {
	r.workflow = "waiting"
	lane := core.WorkflowLane(r.workflow)
	due := r.now.Add(time.Hour)
	r.scheduledRun(due)
	r.scheduledRun(due.Add(time.Millisecond))
	r.newRun()
	want := core.Tally{Pending: 3, Scheduled: 2, OldestDue: r.now}
	r.equal("Tallies", r.tallies(lane)[lane], want)
	r.equal("Available", want.Available(), 1)
	r.takeOnly(r.peek(lane, 1)[0].ID, r.runQuota(1))
	r.now = due
	r.equal("Tallies once the first one's time has come", r.tallies(lane)[lane], core.Tally{Pending: 3, Scheduled: 1, Retryable: 1, OldestDue: due.Add(-time.Hour + leaseTime)})
}

// A scheduled job appears in Peek from its time on, as available.
func peekScheduled(r *rig) {
	r.scheduledRun(r.now.Add(time.Hour))
	came, _ := r.scheduledRun(r.now.Add(time.Minute))
	r.now = came.DueAt
	got := r.peek(came.Lane, 9)
	r.equal("Peek", ids(got), []core.ID{came.ID})
	r.equal("Peek: status", got[0].Status, core.Available)
}

// The status follows the time of the query, without a write.
func showCame(r *rig) {
	r.equal("Job that waits for its time: status", r.job(r.stock.by["scheduled"].ID).Status, core.Scheduled)
	r.equal("Job whose time has come: status", r.job(r.stock.by["came"].ID).Status, core.Available)
}

// Filters by status use the status as shown.
func filterCame(r *rig) {
	waits, came := r.stock.by["scheduled"], r.stock.by["came"]
	r.wantJobs(core.JobFilter{Status: core.Scheduled, Lane: waits.Lane}, []core.Job{waits})
	r.wantJobs(core.JobFilter{Status: core.Available, Lane: waits.Lane}, []core.Job{came})
	r.wantJobs(core.JobFilter{Status: core.Scheduled, EventID: came.EventID}, nil)
	r.wantJobs(core.JobFilter{Status: core.Scheduled}, []core.Job{waits})
}
