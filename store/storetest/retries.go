package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the attempts of retried jobs. A retried job has as many attempts as a new one,
// numbered on from those before. If the count were wrong, a job would die at once after an
// operator retried it, or never.

// failUntilDead takes the only due job and ends it as dead, after the given number of failed attempts.
func (r *rig) failUntilDead(failures int) core.TakenJob {
	for range failures {
		r.settle(r.ended(r.take(1)[0].Job, core.Retryable))
		r.now = r.now.Add(2 * leaseTime)
	}
	j := r.take(1)[0]
	r.settle(r.ended(j.Job, core.Dead))
	return j
}

// The job uses up all attempts in each of three lives. Each Retry adds the same number.
func retryCounts(r *rig) {
	id := r.put().ID
	for round := range 3 {
		r.equal("attempt that ended "+nth(round)+" life", r.failUntilDead(maxAttempts-1).Attempt, (round+1)*maxAttempts)
		r.equal("Retry", r.retry(id, ""), 1)
		j := r.job(id)
		r.equal("attempts, last one and earlier ones after "+nth(round)+" Retry",
			[]int{j.Attempt, j.MaxAttempts, j.Earlier}, []int{(round + 1) * maxAttempts, (round + 2) * maxAttempts, (round + 1) * maxAttempts})
	}
}

// retryEarly checks that a revived job has as many attempts as a new one, however many it used
// before it died.
func retryEarly(r *rig) {
	id := r.put().ID
	r.failUntilDead(0)
	r.retry("", r.lane)
	r.failUntilDead(1)
	r.retry("", "")
	j := r.job(id)
	r.equal("attempts, last one and earlier ones", []int{j.Attempt, j.MaxAttempts, j.Earlier}, []int{3, 3 + maxAttempts, 3})
}

// retryRelease checks that a job taken after a Retry and released is as the Retry left it.
func retryRelease(r *rig) {
	id := r.put().ID
	r.failUntilDead(1)
	r.retry(id, "")
	want := r.job(id)
	r.release(want.DueAt, r.take(1)[0].Job)
	want.ScheduledAt = want.DueAt
	r.wantJob(want)
	r.settle(r.ended(r.take(1)[0].Job, core.Retryable))
	r.now = r.now.Add(2 * leaseTime)
	r.release(r.now, r.take(1)[0].Job)
	r.equal("status of a job released after a failure", r.job(id).Status, core.Retryable)
}

// Unlimited must stay unlimited: adding to it would overflow.
func retryUnlimited(r *rig) {
	a := r.arrival(r.lane)
	a.Jobs[0].MaxAttempts = core.Unlimited
	r.accept(a)
	r.failUntilDead(1)
	for _, id := range []core.ID{a.Jobs[0].ID, ""} {
		r.equal("Retry", r.retry(id, ""), 1)
		j := r.job(a.Jobs[0].ID)
		r.equal("attempts, last one and earlier ones", []int{j.MaxAttempts, j.Earlier}, []int{core.Unlimited, j.Attempt})
		r.failUntilDead(0)
	}
}

// An operator does not want to wait for a backoff of hours. The retried job is due now and keeps
// its remaining attempts. A Retry of the lane leaves waiting jobs alone.
func retryWaiting(r *rig) {
	want, other := r.settled(core.Retryable), r.settled(core.Retryable)
	r.now = r.now.Add(time.Second)
	r.equal("Retry of the lane", r.retry("", r.lane), 0)
	r.equal("Retry", r.retry(want.ID, ""), 1)
	r.equal("Retry of a job that is due", r.retry(want.ID, ""), 0)
	want.DueAt = r.now
	r.wantJob(want)
	r.wantJob(other)
	taken := r.take(1)
	r.equal("Take", ids(taken), []core.ID{want.ID})
	r.nothingDue()
	r.equal("attempts and last one", []int{taken[0].Attempt, taken[0].MaxAttempts}, []int{2, maxAttempts})
}

// A released job that waits, as at a stopped worker, is due now as well.
func retryGivenBack(r *rig) {
	j := r.taken().Job
	r.release(r.now.Add(time.Hour), j)
	want := r.job(j.ID)
	r.equal("Retry", r.retry(j.ID, ""), 1)
	want.DueAt = r.now
	r.wantJob(want)
}

// retryWaitingStep checks that Retry does not change a waiting job of a step, because its run
// decides when it is due.
func retryWaitingStep(r *rig) {
	r.lane = core.WorkflowLane("w")
	want := r.settled(core.Retryable)
	r.equal("Retry", r.retry(want.ID, ""), 0)
	r.wantJob(want)
}
