package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of writes that other callers make after a Purge selected rows and before it deletes them.
// A Purge looks first and deletes by id later, in small commits. A failure means that it deletes a
// job or run that an operator revived in between.

// An operator retries one of two dead jobs after the purge chose both. The retried job stays with
// its attempt and event, and the other is deleted.
func purgeMeanwhile(r *rig, f *Fault) {
	back, other := r.settled(core.Dead), r.settled(core.Dead)
	r.now = r.now.Add(time.Second)
	f.justBefore("purge_jobs", func() { r.equal("Retry", r.retry(back.ID, ""), 1) })
	r.equal("Purge", r.purge(10), 2)
	r.wantNoJob(other)
	r.equal("status", r.job(back.ID).Status, core.Available)
	r.equal("Attempts", len(r.attempts(back.ID)), 1)
	r.storedEvent(back.EventID)
}

// purgeMuchMeanwhile revives a job and a run before the purge deletes them. Both seem to have
// more rows than one batch deletes, so that their other rows are deleted in later batches.
func purgeMuchMeanwhile(r *rig, f *Fault) {
	o := r.ended(r.taken().Job, core.Dead)
	o.Attempt.Number = 1_000_000
	r.settle(o)
	j := r.takeNewRun()
	t := r.fullTransition(j)
	r.mustTransit(t)
	end := r.finished(t.Run, core.RunFailed)
	end.Run.Seq = 1_000_000
	r.mustTransit(end)
	again := r.transitionOf(end.Run, core.EntryRedriven)
	again.Run.Status, again.Run.FinishedAt = core.RunPending, time.Time{}
	r.now = r.now.Add(time.Second)
	f.justBefore("purge_jobs", func() {
		r.equal("Retry", r.retry(o.JobID, ""), 1)
		r.mustTransit(again)
	})
	r.equal("Purge", r.purge(10), 0)
	r.equal("Attempts", len(r.attempts(o.JobID)), 1)
	r.storedEvent(j.EventID)
	got := r.runView(t.Run.ID)
	r.equal("steps, entries and tokens", []int{len(got.Steps), len(got.History), len(got.Awaited)}, []int{4, 6, 1})
}

// forgetMeanwhile settles a failure in a lane and holds another, just before the purge deletes the
// gates of both, which were in their resting state.
func forgetMeanwhile(r *rig, f *Fault) {
	r.putMany(2)
	r.settle(r.verdict(r.take(1)[0], core.Failure))
	r.settle(r.verdict(r.take(1)[0], core.Success))
	other := r.lane + "-held"
	r.holdLane(other, time.Time{}, "")
	r.unhold(other)
	r.now = r.now.Add(time.Hour)
	j := r.take(1)[0]
	f.justBefore("forget_gates", func() {
		r.settle(r.verdict(j, core.Failure))
		r.holdLane(other, time.Time{}, "")
	})
	r.purge(10)
	r.equal("Failures", r.gate().Failures, 1)
	r.equal("Holding", r.holding(), []core.Hold{{Lane: other, Since: r.now}})
}
