package storetest

import (
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The checks of Settle, Release and Recover. worklist.go lists them. If Settle dropped a valid
// outcome, the work would be repeated. If Settle stored the outcome of a worker that lost its
// lease, that outcome would overwrite the result of the next worker.

// after returns a taken job as an outcome leaves it.
func after(j core.Job, o core.Outcome) core.Job {
	j.Status, j.Lease, j.LastError = o.Status, "", o.Attempt.Error
	j.DueAt, j.FinishedAt = o.DueAt, time.Time{}
	if o.Status.Finished() {
		j.FinishedAt = o.At
	}
	return j
}

// settleAs settles a new job and compares everything that is stored of it.
func (r *rig) settleAs(s core.Status) {
	r.Helper()
	j := r.taken().Job
	o := r.ended(j, s)
	r.settle(o)
	r.wantJob(after(j, o))
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{o.Attempt})
}

func settleCompleted(r *rig) { r.settleAs(core.Completed) }
func settleDead(r *rig)      { r.settleAs(core.Dead) }

// A failed attempt is due again at its retry time, as the second attempt.
func settleRetryable(r *rig) {
	r.settleAs(core.Retryable)
	r.nothingDue()
	r.now = r.now.Add(leaseTime)
	r.equal("Take after the retry time: attempt", r.take(1)[0].Attempt, 2)
}

// A success clears the error of the attempt before, and both attempts stay recorded.
func settleAfterFailure(r *rig) {
	failed := r.settled(core.Retryable)
	r.now = failed.DueAt
	j := r.take(1)[0].Job
	r.equal("Take: last error", j.LastError, failed.LastError)
	o := r.ended(j, core.Completed)
	r.settle(o)
	r.wantJob(after(j, o))
	r.equal("Attempts: number", len(r.attempts(j.ID)), 2)
}

// One call settles 100 jobs with different statuses and responses, and none may be mixed up.
func settleMany(r *rig) {
	const n = 100
	r.accepted(r.arrival(lanes(r.lane, n)...))
	all := []core.Status{core.Completed, core.Retryable, core.Dead}
	var outcomes []core.Outcome
	want := map[core.ID]core.Job{}
	for i, j := range r.take(n) {
		o := r.ended(j.Job, all[i%3])
		o.Attempt.Response = fmt.Sprint("answer ", i)
		outcomes = append(outcomes, o)
		want[j.ID] = after(j.Job, o)
	}
	r.settle(outcomes...)
	for _, got := range r.jobs(core.JobFilter{Limit: n}).Items {
		r.equal("Job", got, want[got.ID])
	}
	for _, o := range outcomes[:3] {
		r.equal("Attempts", r.attempts(o.JobID), []core.Attempt{o.Attempt})
	}
}

// Empty calls are no errors and change nothing.
func settleNone(r *rig) {
	r.settle()
	r.release(r.now)
	r.equal("Recover of no lane", r.recover(), 0)
}

// The lease ended an hour ago and no worker took the job. Its result is still good.
func settleLate(r *rig) {
	j := r.taken().Job
	r.now = j.DueAt.Add(time.Hour)
	o := r.ended(j, core.Completed)
	r.settle(o)
	r.wantJob(after(j, o))
	r.nothingDue()
}

// wantLost checks that an outcome is lost and changes nothing.
func (r *rig) wantLost(o core.Outcome, want core.Job) {
	r.Helper()
	before := r.attempts(want.ID)
	r.equal(fmt.Sprintf("Settle(%s): lost", o), r.lost(o), []core.ID{o.JobID})
	r.wantJob(want)
	r.equal("Attempts", r.attempts(want.ID), before)
}

// The first worker's outcome, with each status, arrives while the second works and after it ended.
func settleTakenAgain(r *rig) {
	for _, s := range []core.Status{core.Completed, core.Retryable, core.Dead} {
		late := r.taken().Job
		r.now = late.DueAt
		holder := r.take(1)[0].Job
		r.wantLost(r.ended(late, s), holder)
		o := r.ended(holder, core.Completed)
		r.settle(o)
		r.wantLost(r.ended(late, s), after(holder, o))
	}
}

// The outcome of a worker that has released the job is lost.
func settleReleased(r *rig) {
	j := r.taken().Job
	r.release(r.now.Add(leaseTime), j)
	r.wantLost(r.ended(j, core.Completed), r.job(j.ID))
}

// Unknown leases, empty ones, jobs that are not taken and jobs that do not exist: all are lost.
func settleMadeUp(r *rig) {
	j := r.taken().Job
	o := r.ended(j, core.Completed)
	o.Lease = core.Lease(r.ids.Next())
	r.wantLost(o, j)
	o.Lease = ""
	r.wantLost(o, j)
	fresh := r.put()
	o = r.ended(fresh, core.Completed)
	r.wantLost(o, fresh)
	o.JobID, o.Lease = r.ids.Next(), j.Lease
	r.equal("Settle of an unknown job: lost", r.lost(o), []core.ID{o.JobID})
	r.equal("Attempts of an unknown job", len(r.attempts(o.JobID)), 0)
}

// One call has a lost outcome between two valid ones. Only its id is returned, and the others
// count.
func settleBeside(r *rig) {
	late := r.taken().Job
	r.now = late.DueAt
	r.put()
	both := r.take(2)
	a, b := both[0].Job, both[1].Job // a was taken again, under a new lease
	oa, ob := r.ended(a, core.Dead), r.ended(b, core.Completed)
	r.equal("Settle(lost, a, b)", r.lost(r.ended(late, core.Completed), oa, ob), []core.ID{late.ID})
	r.wantJob(after(a, oa))
	r.wantJob(after(b, ob))
	r.equal("Attempts", r.attempts(a.ID), []core.Attempt{oa.Attempt})
}

// A repeated outcome changes nothing and is not reported as lost, or the worker would log a false
// warning.
func settleTwice(r *rig) {
	for _, s := range []core.Status{core.Completed, core.Retryable, core.Dead} {
		j := r.taken().Job
		o := r.ended(j, s)
		r.settle(o)
		r.settle(o)
		r.wantJob(after(j, o))
		r.equal("Attempts", r.attempts(j.ID), []core.Attempt{o.Attempt})
	}
}

// One call has the same outcome twice, as when the buffer of a worker has it twice. Attempts with an
// exchange have a statement of their own.
func settleTwiceInOne(r *rig) {
	for _, kept := range []*core.Exchange{nil, exchange("kept")} {
		j := r.taken().Job
		o := r.ended(j, core.Completed)
		o.Attempt.Exchange = kept
		r.settle(o, o)
		r.wantJob(after(j, o))
		o.Attempt.Exchange = bodiless(kept)
		r.equal("Attempts", r.attempts(j.ID), []core.Attempt{o.Attempt})
	}
}

// The repetition arrives after the job was taken again, ended and was retried. Each time it is
// neither lost nor recorded again.
func settleTwiceLater(r *rig) {
	j := r.taken().Job
	first := r.ended(j, core.Retryable)
	r.settle(first)
	r.now = first.DueAt
	again := r.take(1)[0].Job
	r.settle(first)
	r.wantJob(again)
	second := r.ended(again, core.Dead)
	r.settle(second)
	r.settle(first)
	r.wantJob(after(again, second))
	r.retry(j.ID, "")
	r.settle(first, second)
	r.equal("status", r.job(j.ID).Status, core.Available)
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{first.Attempt, second.Attempt})
}

// A repeated outcome of another job does not disturb a new one.
func settleTwiceBeside(r *rig) {
	old := r.ended(r.taken().Job, core.Completed)
	r.settle(old)
	j := r.taken().Job
	o := r.ended(j, core.Retryable)
	r.settle(o, old)
	r.wantJob(after(j, o))
}

// A released job is as before the Take, except for two fields. DueAt is the time of the call, and
// ScheduledAt is the due time before.
func releaseNew(r *rig) {
	want := r.put()
	due := r.now.Add(5 * time.Second)
	r.release(due, r.take(1)[0].Job)
	want.DueAt, want.ScheduledAt = due, want.DueAt
	r.wantJob(want)
	r.equal("Attempts: number", len(r.attempts(want.ID)), 0)
	r.now = due.Add(-time.Millisecond)
	r.nothingDue()
	r.now = due
	r.equal("Take after the release: attempt", r.take(1)[0].Attempt, 1)
}

// A job that failed before stays retryable, with the attempts that it had.
func releaseTried(r *rig) {
	want := r.settled(core.Retryable)
	r.now = want.DueAt
	r.release(r.now, r.take(1)[0].Job)
	want.ScheduledAt = r.now
	r.wantJob(want)
	r.equal("Take after the release: attempt", r.take(1)[0].Attempt, 2)
}

// All but one of 50 jobs are released, and that one stays leased.
func releaseMany(r *rig) {
	const n = 50
	r.accepted(r.arrival(lanes(r.lane, n)...))
	var jobs []core.Job
	for _, j := range r.take(n) {
		jobs = append(jobs, j.Job)
	}
	r.release(r.now, jobs[1:]...)
	r.take(n - 1)
	r.wantJob(jobs[0])
}

// Releasing after settling must not revive a job.
func releaseSettled(r *rig) {
	for _, s := range []core.Status{core.Completed, core.Retryable, core.Dead} {
		j := r.taken().Job
		r.settle(r.ended(j, s))
		want := r.job(j.ID)
		r.release(r.now, j)
		r.wantJob(want)
	}
}

// The first holder's release does nothing, and the second holder's works once.
func releaseTakenAgain(r *rig) {
	late := r.taken().Job
	r.now = late.DueAt
	holder := r.take(1)[0].Job
	r.release(r.now, late)
	r.wantJob(holder)
	r.release(r.now, holder)
	r.release(r.now, holder, late)
	r.equal("attempt after releasing twice", r.job(late.ID).Attempt, 1)
}

// A process that restarts on its own file takes its jobs again immediately, without waiting for
// leases.
func recoverRunning(r *rig) {
	const n = 3
	r.accepted(r.arrival(lanes(r.lane, n)...))
	first := r.take(n)
	r.now = r.now.Add(time.Second)
	r.equal("Recover", r.recover(r.lane), n)
	for _, j := range r.take(n) {
		r.equal("Take after Recover: attempt", j.Attempt, 2)
	}
	r.equal("Settle of an earlier holder: lost", r.lost(r.ended(first[0].Job, core.Dead)), []core.ID{first[0].ID})
}

// Only the given lanes are recovered, since other processes may work on the others.
func recoverLanes(r *rig) {
	r.accepted(r.arrival("handler/a", "handler/b", "queue/c"))
	for _, l := range []core.Lane{"handler/a", "handler/b", "queue/c"} {
		r.takeQuotas(core.Quota{Lane: l, N: 1, Hold: leaseTime})
	}
	r.equal("Recover(a, c, unknown)", r.recover("handler/a", "queue/c", "queue/unknown"), 2)
	got := r.takeQuotas(core.Quota{Lane: "handler/a", N: 1, Hold: leaseTime},
		core.Quota{Lane: "handler/b", N: 1, Hold: leaseTime}, core.Quota{Lane: "queue/c", N: 1, Hold: leaseTime})
	r.equal("Take: number of jobs", len(got), 2)
}

// Jobs that do not run keep their due times.
func recoverOthers(r *rig) {
	want := []core.Job{r.settled(core.Completed), r.settled(core.Dead), r.settled(core.Retryable)}
	later := r.arrival(r.lane)
	later.Event.CreatedAt = r.now.Add(leaseTime)
	want = append(want, r.accepted(later)...)
	r.equal("Recover", r.recover(r.lane), 0)
	for _, j := range want {
		r.wantJob(j)
	}
}

// lanes returns a lane n times, for an arrival with n jobs there.
func lanes(l core.Lane, n int) []core.Lane {
	out := make([]core.Lane, n)
	for i := range out {
		out[i] = l
	}
	return out
}

// nth returns "1." for 0, for texts in messages and as distinct names.
func nth(i int) string { return fmt.Sprintf("%d.", i+1) }
