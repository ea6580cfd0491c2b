package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Retry, Purge and migrations. Operators call Retry after they repaired a handler.
// Purge runs in the background for ever. A failure means that dead jobs stay dead, that a purge
// deletes rows that are still in use, or that it leaves old rows behind.

const (
	saysRetry         = "Retry makes dead jobs available at once, with their whole budget of attempts, and returns how many"
	saysRetryOn       = "The attempts of a retried job are numbered on from the earlier ones: see [Job.Earlier]"
	saysRetryAll      = "An empty id means all dead jobs, or the dead jobs of one lane if lane is set"
	saysRetryEarly    = "The job with the given id is due at once, and counts, also if it waits for a later attempt or for its time: it keeps the attempts that it had left"
	saysRetryCanceled = "The job with the given id is revived like a dead one if it is canceled"
	saysRetryOther    = "Any other job that is not dead stays as it is"
	saysRetryStray    = "The StrayTime of every stray lane begins anew, so that revived jobs wait for all of it"
	saysPurge         = "Purge deletes three kinds of records: jobs that finished before the given time, with their attempts; runs that finished before it, with their steps and history; and events received before it of which no job and no run is left"
	saysPurgeLimit    = "A call deletes at most limit jobs and as many runs, with their events, and as many other events, the oldest first, and returns the number of deleted jobs, runs and events together"
	saysPurgeOpen     = "Jobs and runs that are not finished stay, with their events"
	saysPurgeNew      = "A delivery id or key counts as new again once its row is deleted"
	saysPurgeGates    = "A gate becomes the zero Gate again if it has no failures and all its times are before the given time"
	saysMigrate       = "Migrate brings the schema up to date"
	saysMigrateTwo    = "It may run in several processes at once and any number of times"
	saysSchema        = "Schema returns the step that the schema of the database has reached, and the step to which Migrate brings it"
	saysSchemaOnly    = "It changes nothing"
	saysPing          = "Ping reports whether the database answers"
)

// Checks with other subjects are in retries.go, scheduled.go, aroundruns.go and rehearse.go.
var upkeep = role{name: "Upkeep", checks: []check{
	// Retry: which jobs it revives, with how many attempts, and which jobs it leaves.
	{saysRetry, "", retryOne},
	{saysRetry, "due immediately", retryDue},
	{saysRetry, "with all attempts", retryBudget},
	{saysRetry, "earlier attempts stay, oldest first", retryAttempts},
	{saysRetry, "concurrently with takes", raceRetry},
	{saysRetryOn, "", retryCounts},
	{saysRetryOn, "a job that died before its last attempt", retryEarly},
	{saysRetryOn, "released", retryRelease},
	{saysRetryOn, "unlimited attempts", retryUnlimited},
	{saysRetryAll, "all", retryAll},
	{saysRetryAll, "of one lane", retryLane},
	{saysRetryEarly, "after a failure", retryWaiting},
	{saysRetryEarly, "released untried", retryGivenBack},
	{saysRetryEarly, "not of a workflow", retryWaitingStep},
	{saysRetryEarly, "scheduled", retryScheduled},
	{saysRetryCanceled, "", retryCanceled},
	{saysRetryCanceled, "after attempts", retryCanceledLate},
	{saysRetryOther, "", retryOthers},
	{saysRetryOther, "canceled jobs", retryNoCanceled},
	{saysRetryOther, "an unknown job", retryUnknown},
	{saysRetryStray, "one", retryStray},
	{saysRetryStray, "of a lane", retryStrays},
	{saysRetryRun, "", retryRuns},
	// Purge: the rows that it deletes, their number in a call, and the rows that it must leave.
	{saysPurge, "", purgeOver},
	{saysPurge, "not at that time", purgeBefore},
	{saysPurge, "an event without jobs", purgeJobless},
	{saysPurge, "an event with an unfinished job", purgeShared},
	{saysPurge, "runs", purgeRuns},
	{saysPurge, "a run with an unfinished job", purgeRunsJob},
	{saysPurgeLimit, "", purgeLimit},
	{saysPurgeLimit, "of runs", purgeRunsLimit},
	{saysPurgeLimit, "of events without jobs and runs", purgeBareLimit},
	{saysPurgeLimit, "zero", purgeNone},
	{saysPurgeOpen, "", purgeOpen},
	{saysPurgeOpen, "retried concurrently", racePurge},
	{saysPurgeOpen, "runs", purgeRunsOpen},
	{saysPurgeOpen, "a redriven run", purgeRunsRedriven},
	{saysPurgeOpen, "runs redriven concurrently", racePurgeRuns},
	{saysPurgeNew, "", purgeNew},
	{saysDefsStay, "", purgeDefinitions},
	{saysPurgeGates, "", purgeGates},
	{saysPurgeGates, "of a stray", purgeStrayGates},
	// The start of a process, and the calls of health checks.
	{saysMigrate, "", migrate},
	{saysMigrateTwo, "", raceMigrate},
	{saysSchema, "", schema},
	{saysSchemaOnly, "", schemaOnly},
	{saysRehearse, "", rehearse},
	{saysRehearseUnseen, "", rehearseUnseen},
	{saysRehearseEnds, "", rehearseEnds},
	{saysPing, "", ping},
}}

// The retried job is available now, with new attempts, and the other dead job stays.
func retryOne(r *rig) {
	want, other := r.settled(core.Dead), r.settled(core.Dead)
	r.now = r.now.Add(time.Hour)
	r.equal("Retry", r.retry(want.ID, ""), 1)
	want.Status, want.DueAt, want.FinishedAt = core.Available, r.now, time.Time{}
	want.Earlier, want.MaxAttempts = want.Attempt, want.Attempt+maxAttempts
	r.wantJob(want)
	r.wantJob(other)
}

// The due time of a retried job is the time of the Retry, not the time of its failure.
func retryDue(r *rig) {
	j := r.settled(core.Dead)
	r.now = r.now.Add(time.Hour)
	r.retry(j.ID, "")
	r.now = r.now.Add(-time.Millisecond)
	r.nothingDue()
	r.now = r.now.Add(time.Millisecond)
	r.equal("Take", ids(r.take(1)), []core.ID{j.ID})
}

// The job used up all attempts, and the repeats after expired leases (core.MaxRepeats). After a
// Retry it has as many attempts as a new one.
func retryBudget(r *rig) {
	j := r.takeUntilSpent(2)
	o := r.ended(j.Job, core.Dead)
	o.Attempt.Number = j.MaxAttempts
	r.settle(o)
	r.retry(j.ID, "")
	for i := range j.MaxAttempts {
		again := r.take(1)[0]
		r.equal("Take after Retry: attempt since then", again.Round(), i+1)
		r.equal("Take after Retry: Spent", again.Spent(), false)
		r.now = again.DueAt
	}
	r.equal("attempts left after as many as there were", r.job(j.ID).Attempt, r.job(j.ID).MaxAttempts)
}

// An operator sees the attempts of all lives of a job, in order.
func retryAttempts(r *rig) {
	var want []core.Attempt
	id := r.put().ID
	for range 2 {
		for _, s := range []core.Status{core.Retryable, core.Retryable, core.Dead} {
			o := r.ended(r.take(1)[0].Job, s)
			want = append(want, o.Attempt)
			r.settle(o)
			r.now = r.now.Add(2 * leaseTime)
		}
		r.equal("Retry", r.retry("", ""), 1)
	}
	r.equal("Attempts", r.attempts(id), want)
}

// An empty id and lane mean every dead job.
func retryAll(r *rig) {
	dead := map[core.Lane]core.Job{}
	for _, l := range []core.Lane{"handler/a", "handler/b", "queue/c"} {
		r.lane = l
		dead[l] = r.settled(core.Dead)
	}
	r.equal("Retry", r.retry("", ""), 3)
	for _, j := range dead {
		r.equal("status", r.job(j.ID).Status, core.Available)
	}
}

// A lane selects its own dead jobs only, and an unknown lane none.
func retryLane(r *rig) {
	other := r.settled(core.Dead)
	r.lane = "queue/b"
	want := []core.Job{r.settled(core.Dead), r.settled(core.Dead)}
	r.equal("Retry", r.retry("", r.lane), 2)
	r.equal("Take", ids(r.take(2)), ids(want))
	r.wantJob(other)
	r.equal("Retry of an unknown lane", r.retry("", "queue/nobody"), 0)
}

// Retry names jobs that are not dead: by id, by lane and all together, before and after their due
// times. None of them may change. A retried running job would run twice.
func retryOthers(r *rig) {
	want := []core.Job{r.settled(core.Completed), r.settled(core.Retryable), r.taken().Job, r.put()}
	r.now = r.now.Add(time.Second)
	for _, later := range []time.Duration{0, 2 * leaseTime} {
		r.now = r.now.Add(later)
		for _, j := range want {
			if j.Status != core.Retryable || !j.DueAt.After(r.now) {
				r.equal("Retry of a job that is "+string(j.Status), r.retry(j.ID, ""), 0)
			}
		}
	}
	r.equal("Retry of the lane", r.retry("", r.lane), 0)
	r.equal("Retry of all", r.retry("", ""), 0)
	for _, j := range want {
		r.wantJob(j)
	}
}

// retryUnknown retries an unknown id. A store may refuse it or return 0, and changes nothing.
func retryUnknown(r *rig) {
	dead, id := r.settled(core.Dead), r.ids.Next()
	n, err := r.store.Retry(context.Background(), r.now, id, "")
	if n != 0 || err != nil && !core.IsKind(err, core.NotFound) {
		r.Errorf("Retry(%s) of an unknown job = %d, %v; want 0 and no error, or a refusal of kind NotFound", id, n, err)
	}
	r.wantJob(dead)
}

// After a Retry by id, the time of the strays begins anew. Otherwise the retried job could be
// ended early, as a job of a stray.
func retryStray(r *rig) {
	dead := r.settled(core.Dead)
	r.retryInStray(func() int { return r.retry(dead.ID, "") })
}

// A Retry of a lane begins the time of the strays anew as well, even if the lane has no dead job.
func retryStrays(r *rig) {
	r.settled(core.Dead)
	r.retryInStray(func() int { return r.retry("", r.lane) })
	r.now = r.now.Add(core.StrayTime)
	r.strays()
	r.equal("Retry of nothing", r.retry("", r.lane), 0)
	r.equal("Strays after it", r.strays(), map[core.Lane]time.Time{r.lane: r.now, "handler/other": r.now})
}

// retryInStray revives a job in a lane that has been a stray for core.StrayTime, while another
// lane is a stray too.
func (r *rig) retryInStray(retry func() int) {
	r.Helper()
	r.accepted(r.arrival(r.lane, "handler/other"))
	r.strays()
	r.now = r.now.Add(core.StrayTime)
	r.equal("Retry", retry(), 1)
	r.equal("Strays after Retry", r.strays(), map[core.Lane]time.Time{r.lane: r.now, "handler/other": r.now})
}

// wantNoJob checks that no row of a job is stored. Its attempts must be gone, too: no other call
// would ever delete them.
func (r *rig) wantNoJob(j core.Job) {
	r.Helper()
	if _, err := r.store.Job(context.Background(), j.ID); !core.IsKind(err, core.NotFound) {
		r.Errorf("Job(%s) after Purge = %v, want a refusal of kind NotFound", j.ID, err)
	}
	r.equal("Attempts after Purge", r.attempts(j.ID), []core.Attempt{})
}

// wantNoEvent checks that an event is not stored.
func (r *rig) wantNoEvent(id core.ID) {
	r.Helper()
	if _, err := r.store.Event(context.Background(), id); !core.IsKind(err, core.NotFound) {
		r.Errorf("Event(%s) after Purge = %v, want a refusal of kind NotFound", id, err)
	}
}

// A completed and a dead job are deleted with their events a millisecond after they finished.
func purgeOver(r *rig) {
	over := []core.Job{r.settled(core.Completed), r.settled(core.Dead)}
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 4)
	for _, j := range over {
		r.wantNoJob(j)
		r.wantNoEvent(j.EventID)
	}
	r.equal("Purge again", r.purge(10), 0)
}

// A job that finished exactly at the time of the purge stays, with its event and attempt.
func purgeBefore(r *rig) {
	want := r.settled(core.Completed)
	r.equal("Purge at the very time", r.purge(10), 0)
	r.wantJob(want)
	r.storedEvent(want.EventID)
	r.equal("Attempts", len(r.attempts(want.ID)), 1)
}

// Events without jobs are deleted by the time of their arrival.
func purgeJobless(r *rig) {
	a := r.arrival()
	r.accepted(a)
	r.equal("Purge at the very time", r.purge(10), 0)
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 1)
	r.wantNoEvent(a.Event.ID)
}

// An event stays until the last of its jobs is deleted.
func purgeShared(r *rig) {
	a := r.arrival(r.lane, "handler/slow")
	done, left := r.accepted(a)[0], a.Jobs[1]
	r.settle(r.ended(r.take(1)[0].Job, core.Completed))
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 1)
	r.wantNoJob(done)
	r.storedEvent(a.Event.ID)
	r.lane = "handler/slow"
	r.settle(r.ended(r.takeOnly(left.ID, r.quota(1)).Job, core.Completed))
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge of the last job", r.purge(10), 2)
	r.wantNoEvent(a.Event.ID)
}

// Five jobs are purged two at a time, oldest first. Small steps keep senders from waiting.
func purgeLimit(r *rig) {
	var jobs []core.Job
	for range 5 {
		jobs = append(jobs, r.settled(core.Dead))
		r.now = r.now.Add(time.Millisecond)
	}
	r.equal("Purge", r.purge(2), 4)
	for _, j := range jobs[:2] {
		r.wantNoJob(j)
		r.wantNoEvent(j.EventID)
	}
	for _, j := range jobs[2:] {
		r.wantJob(j)
		r.storedEvent(j.EventID)
	}
	r.equal("Purge", r.purge(2), 4)
	r.equal("Purge", r.purge(2), 2)
	r.equal("Purge", r.purge(2), 0)
}

// purgeBareLimit purges events with and without jobs. Neither kind uses up the limit of the
// other.
func purgeBareLimit(r *rig) {
	for range 5 {
		r.accepted(r.arrival())
		r.settled(core.Dead)
		r.now = r.now.Add(time.Millisecond)
	}
	for _, want := range []int{6, 6, 3, 0} {
		r.equal("Purge", r.purge(2), want)
	}
}

// A limit of zero is no limit on some databases. It must delete nothing.
func purgeNone(r *rig) {
	want := r.settled(core.Dead)
	r.now = r.now.Add(time.Hour)
	r.equal("Purge", r.purge(0), 0)
	r.wantJob(want)
}

// Jobs that wait, run, were retried or were never taken stay, however old.
func purgeOpen(r *rig) {
	revived := r.settled(core.Dead)
	r.retry(revived.ID, "")
	r.take(1)
	want := []core.Job{r.job(revived.ID), r.settled(core.Retryable), r.taken().Job, r.put()}
	r.now = r.now.Add(time.Second)
	r.equal("Purge", r.purge(10), 0)
	for _, j := range want {
		r.wantJob(j)
		r.storedEvent(j.EventID)
	}
	r.equal("Attempts", len(r.attempts(revived.ID)), 1)
}

// racePurge revives jobs while they are purged. Each job is deleted with all its rows or kept with
// all of them. Two purges run beside one caller that retries all jobs in order.
func racePurge(r *rig) {
	var dead []core.Job
	for range r.scaled(40) {
		dead = append(dead, r.settled(core.Dead))
	}
	r.now = r.now.Add(time.Second)
	r.concurrently(3, func(i int) error {
		if i == 0 {
			for _, j := range dead {
				if _, err := r.store.Retry(context.Background(), r.now, j.ID, ""); err != nil {
					return err
				}
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
	for _, j := range dead {
		now, err := r.store.Job(context.Background(), j.ID)
		if err != nil {
			r.wantNoJob(j)
			r.wantNoEvent(j.EventID)
			continue
		}
		r.equal("status of a retried job", now.Status, core.Available)
		r.equal("Attempts of a retried job", len(r.attempts(j.ID)), 1)
		r.storedEvent(j.EventID)
	}
}

// A sender may use a delivery id or key again once the first row is deleted.
func purgeNew(r *rig) {
	first := []core.Arrival{r.delivered("d"), r.keyed("k")}
	for _, a := range first {
		r.accepted(a)
		r.settle(r.ended(r.take(1)[0].Job, core.Completed))
	}
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 4)
	r.accepted(r.delivered("d"))
	r.accepted(r.keyed("k"))
}

// purgeGates purges while a breaker is open, after it closed, and after a start a second later.
func purgeGates(r *rig) {
	r.putMany(core.BreakerThreshold + 2)
	r.settle(r.verdicts(r.take(core.BreakerThreshold), failures(core.BreakerThreshold)...)...)
	open := r.gate()
	r.now = r.now.Add(time.Hour)
	r.purge(10)
	r.equal("Gate that is open", r.gate(), open)
	r.settle(r.verdict(r.takeCount("for a probe", 1, r.probe())[0], core.Success))
	r.purge(10)
	r.equal("Gate at the very time it closed: ClosedAt", r.gate().ClosedAt, r.now)
	r.takeCount("in the ramp", 1, r.paced(1, time.Second, time.Second))
	closed := r.gate()
	r.now = closed.NextAt
	r.purge(10)
	r.equal("Gate at the very time of its next start", r.gate(), closed)
	r.now = r.now.Add(time.Millisecond)
	r.purge(10)
	r.equal("Gate after that", r.gate(), core.Gate{})
	r.now = r.now.Add(leaseTime)
	r.settle(r.verdict(r.takeCount("without a Pass", 1, r.quota(1))[0], core.Failure))
	r.purge(10)
	r.now = r.now.Add(time.Hour)
	r.purge(10)
	r.equal("Gate with a failure", r.gate().Failures, 1)
}

// The time of a stray is in the row of its gate, which must therefore stay.
func purgeStrayGates(r *rig) {
	r.put()
	since := r.strays()
	r.now = r.now.Add(time.Hour)
	r.purge(10)
	r.equal("Strays after Purge", r.strays(), since)
}

// Migrating a store with rows keeps them, and the store works.
func migrate(r *rig) {
	want := r.settled(core.Dead)
	if err := r.store.Migrate(context.Background()); err != nil {
		r.Fatalf("Migrate of a migrated store = %v, want none", err)
	}
	r.wantJob(want)
	r.put()
}

// raceMigrate migrates from several callers at once. Each driver's own tests do the same from
// several processes.
func raceMigrate(r *rig) {
	want := r.put()
	r.concurrently(4, func(int) error {
		for range 3 {
			if err := r.store.Migrate(context.Background()); err != nil {
				return fmt.Errorf("Migrate = %w, want none", err)
			}
		}
		return nil
	})
	r.wantJob(want)
}

// schema checks that both numbers of Schema are equal and at least 1.
func schema(r *rig) {
	have, want, err := r.store.Schema(context.Background())
	if err != nil || have != want || want < 1 {
		r.Errorf("Schema of a migrated store = %d, %d, %v, want the same of both", have, want, err)
	}
}

// Commands that must not change the database call Schema, so Schema must not write.
func schemaOnly(r *rig) {
	want := r.settled(core.Dead)
	schema(r)
	schema(r)
	r.wantJob(want)
}

// A store that was just opened answers.
func ping(r *rig) {
	if err := r.store.Ping(context.Background()); err != nil {
		r.Errorf("Ping = %v, want none", err)
	}
}
