package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// Checks of Cancel. An operator stops the jobs of an event that no process works on. A failure
// means one of these: a canceled job is delivered, a job is taken away from the worker that holds
// it, or an operator gets a wrong number of canceled jobs.

const (
	saysCancel      = "Cancel gives the waiting jobs of an event the status Canceled, and returns how many jobs of the event it canceled, how many run, and how many had finished before"
	saysCancelWaits = "A job waits if it is available, scheduled, waiting or retryable, or if its lease is over"
	saysCancelHeld  = "Running jobs whose lease is not over stay as they are"
	saysCancelLines = "The slots of canceled jobs go to the next jobs of their lines"
	saysCancelRuns  = "The jobs of workflows stay as they are and are not counted, because their runs are canceled instead"
	saysCancelRace  = "Of a Cancel and a Take at the same time, exactly one gets each job"
	saysCancelLease = "A canceled job has no lease, so that no outcome, ack or release counts afterwards"
	saysCancelAgain = "Canceling again changes nothing, and returns the same at the same time"
	saysCancelNone  = "A missing event is refused as NotFound"
)

// cancels are the checks of Operations.Cancel, and of the other methods' treatment of canceled
// jobs.
var cancels = role{name: "Cancel", checks: []check{
	{saysCancel, "", cancelEvent},
	{saysCancel, "with keys, and purged later", cancelPurged},
	{saysCancelWaits, "", cancelWaiting},
	{saysCancelWaits, "at the end of the lease", cancelLapsed},
	{saysCancelHeld, "", cancelHeld},
	{saysCancelLines, "", cancelLined},
	{saysCancelLines, "jobs that wait", cancelLinedWaiting},
	{saysCancelLines, "revived", cancelLinedRevived},
	{saysCancelRuns, "", cancelRuns},
	{saysCancelRace, "", raceCancelTake},
	{saysCancelRace, "under leases that are over", raceCancelLapsed},
	{saysCancelRace, "several callers", raceCancels},
	{saysCancelLease, "", cancelLate},
	{saysCancelAgain, "", cancelAgain},
	{saysCancelNone, "", cancelMissing},
	{saysDrain, "canceled jobs stay", drainCanceled},
	{saysEndedJobs, "canceled", endedCanceled},
	{saysCompleted, "beside canceled ones", completedBesideCanceled},
	{saysJobs, "canceled, beyond the newest jobs", listCanceled},
}}

// cancel cancels the jobs of an event at the rig's time.
func (r *rig) cancel(event core.ID) core.Cancellation {
	r.Helper()
	c, err := r.store.Cancel(r.asked(), r.now, event)
	if err != nil {
		r.Fatalf("Cancel(%s) failed: %v", event, err)
	}
	return c
}

// canceled returns a job as it must be stored after a Cancel at the rig's time.
func (r *rig) canceled(j core.Job) core.Job {
	if j.ScheduledAt.IsZero() {
		j.ScheduledAt = j.DueAt
	}
	j.Status, j.Lease, j.DueAt, j.FinishedAt = core.Canceled, "", time.Time{}, r.now
	return j
}

// takeEach takes one job of each lane.
func (r *rig) takeEach(lanes ...core.Lane) (jobs []core.Job) {
	r.Helper()
	for _, l := range lanes {
		r.lane = l
		jobs = append(jobs, r.take(1)[0].Job)
	}
	return jobs
}

// One event has a job in each state. The jobs of another event in the same lanes stay.
func cancelEvent(r *rig) {
	lanes := []core.Lane{"handler/done", "handler/dead", "handler/busy", "handler/waits", "queue/mail", "alert/1"}
	jobs := r.accepted(r.arrival(lanes...))
	others := r.accepted(r.arrival(lanes...))
	taken := r.takeEach(lanes[:3]...)
	done, dead := r.ended(taken[0], core.Completed), r.ended(taken[1], core.Dead)
	r.settle(done, dead)
	r.now = r.now.Add(time.Second)
	r.equal("Cancel", r.cancel(jobs[0].EventID), core.Cancellation{Canceled: 3, Running: 1, Finished: 2})
	r.wantJob(after(taken[0], done))
	r.wantJob(after(taken[1], dead))
	r.wantJob(taken[2])
	for _, j := range jobs[3:] {
		r.wantJob(r.canceled(j))
	}
	for i, l := range lanes {
		r.wantJob(others[i])
		r.lane = l
		r.takeOnly(others[i].ID, r.quota(9))
	}
}

// A canceled job is finished: its key stays in use, and a purge deletes the job with its event.
func cancelPurged(r *rig) {
	a := r.keyed("k")
	j := r.accepted(a)[0]
	r.cancel(j.EventID)
	r.equal("Accept of the key", r.accept(r.keyed("k")), core.Receipt{EventID: j.EventID, Duplicate: true})
	r.equal("Depth", r.depth(), 0)
	r.equal("Finished", ids(r.finishedSince(r.now, 0).Items), []core.ID{j.ID})
	r.equal("Purge at that time", r.purge(10), 0)
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 2)
	r.wantNoJob(j)
	r.wantNoEvent(j.EventID)
}

// Each kind of waiting job is canceled: in backoff, due after a backoff, under a lease that is over,
// released, delayed and new. Each is in a lane of its own. The attempts and the last error stay.
func cancelWaiting(r *rig) {
	made := map[core.Lane]core.Job{}
	in := func(l core.Lane, make func() core.Job) {
		r.lane = l
		made[l] = make()
	}
	in("queue/due", func() core.Job { return r.settled(core.Retryable) })
	in("queue/lapsed", func() core.Job { return r.taken().Job })
	r.now = r.now.Add(leaseTime)
	in("queue/backoff", func() core.Job { return r.settled(core.Retryable) })
	in("queue/released", func() core.Job {
		j := r.taken().Job
		r.release(r.now.Add(time.Minute), j)
		return r.job(j.ID)
	})
	in("queue/delayed", func() core.Job {
		a := r.arrival(r.lane)
		a.Jobs[0].DueAt = r.now.Add(time.Hour)
		return r.accepted(a)[0]
	})
	in("queue/new", r.put)
	for l, j := range made {
		r.equal("Cancel of the job of "+string(l), r.cancel(j.EventID), core.Cancellation{Canceled: 1})
		r.wantJob(r.canceled(j))
	}
	r.equal("Attempts", len(r.attempts(made["queue/due"].ID)), 1)
	r.now = r.now.Add(2 * time.Hour)
	for r.lane = range made {
		r.nothingDue()
	}
}

// A lease is over from its end on, and not a millisecond earlier.
func cancelLapsed(r *rig) {
	j := r.taken().Job
	r.now = j.DueAt.Add(-time.Millisecond)
	r.equal("Cancel before the end", r.cancel(j.EventID), core.Cancellation{Running: 1})
	r.wantJob(j)
	r.now = j.DueAt
	r.equal("Cancel at the end", r.cancel(j.EventID), core.Cancellation{Canceled: 1})
	r.wantJob(r.canceled(j))
}

// A worker goes on with the job that it holds, and its outcome counts.
func cancelHeld(r *rig) {
	for _, s := range []core.Status{core.Completed, core.Retryable, core.Dead} {
		j := r.taken().Job
		r.equal("Cancel", r.cancel(j.EventID), core.Cancellation{Running: 1})
		r.wantJob(j)
		o := r.ended(j, s)
		r.settle(o)
		r.wantJob(after(j, o))
	}
}

// Steps of workflows stay, whether their jobs wait, run or have finished.
func cancelRuns(r *rig) {
	s := r.newRun()
	want := r.job(s.Step.ID)
	r.equal("Cancel", r.cancel(want.EventID), core.Cancellation{})
	r.wantJob(want)
	taken := r.takeOnly(s.Step.ID, r.runQuota(1)).Job
	r.equal("Cancel beside a running step", r.cancel(want.EventID), core.Cancellation{})
	r.equal("status", r.job(taken.ID).Status, core.Running)
	r.equal("Run", r.run(s.Run.ID), s.Run)
	r.now = taken.DueAt
	r.equal("Cancel after the lease", r.cancel(want.EventID), core.Cancellation{})
	r.takeOnly(s.Step.ID, r.runQuota(1))
}

// Eight takers take while two callers cancel event by event. Each job is held by one taker or is
// canceled, and the counts agree with the jobs.
func raceCancelTake(r *rig) {
	n := r.scaled(40)
	var events []core.ID
	for range n {
		events = append(events, r.accepted(r.arrival(raceLanes...))[0].EventID)
	}
	r.raceCancel(events, n*len(raceLanes))
}

// The same with jobs whose leases are over, of which the first holders still settle some.
func raceCancelLapsed(r *rig) {
	n := r.scaled(40)
	var events []core.ID
	for range n {
		events = append(events, r.accepted(r.arrival(raceLanes...))[0].EventID)
	}
	for _, l := range raceLanes {
		r.lane = l
		r.take(n)
	}
	r.now = r.now.Add(leaseTime)
	r.raceCancel(events, n*len(raceLanes))
}

// raceCancel cancels events, the oldest first and the newest first, while takers take their jobs.
// A job that was taken must run, and any other must be canceled.
func (r *rig) raceCancel(events []core.ID, jobs int) {
	r.Helper()
	var h takenJobs
	counts := make([]map[core.ID]core.Cancellation, 2)
	cancel := func(side int) error {
		counts[side] = map[core.ID]core.Cancellation{}
		for i := range events {
			id := events[i]
			if side == 1 {
				id = events[len(events)-1-i]
			}
			c, err := r.store.Cancel(context.Background(), r.now, id)
			if err != nil {
				return err
			}
			counts[side][id] = c
		}
		return nil
	}
	r.concurrently(takers+len(counts), func(i int) error {
		if i >= takers {
			return cancel(i - takers)
		}
		return r.takeUntilEmpty(&h, noMoreArrivals, raceQuotas...)
	})
	for id, leases := range h.leases {
		j := r.job(id)
		if len(leases) != 1 || j.Status != core.Running || j.Lease != leases[0] {
			r.Errorf("job %s was taken under %q and is %s under %q, want running under the only one", id, leases, j.Status, j.Lease)
		}
	}
	total := len(h.leases)
	for _, id := range events {
		all := r.jobs(core.JobFilter{EventID: id}).Items
		want := core.Cancellation{}
		for _, j := range all {
			if j.Status == core.Canceled {
				want.Canceled++
			} else {
				want.Running++
			}
		}
		total += want.Canceled
		// Both callers cancel at the same time of the rig, so the later one counts for both.
		if a, b := counts[0][id], counts[1][id]; a != want && b != want {
			r.Errorf("Cancel(%s) by two callers = %+v and %+v, want %+v of one of them", id, a, b, want)
		}
	}
	r.equal("jobs that were taken or canceled", total, jobs)
	r.nothingDue()
}

// 16 callers cancel one event at once. All get the answer of the first.
func raceCancels(r *rig) {
	for range r.scaled(20) {
		jobs := r.accepted(r.arrival(lanes(r.lane, 5)...))
		r.concurrently(callers, func(int) error {
			c, err := r.store.Cancel(context.Background(), r.now, jobs[0].EventID)
			if want := (core.Cancellation{Canceled: 5}); err == nil && c != want {
				r.Errorf("Cancel = %+v, want %+v", c, want)
			}
			return err
		})
	}
}

// The holder whose lease was over acts after the Cancel.
func cancelLate(r *rig) {
	jobs, refs := r.putAndTake(4)
	r.now = r.now.Add(leaseTime)
	r.equal("Cancel", r.cancel(jobs[0].EventID), core.Cancellation{Canceled: 4})
	r.equal("Settle: lost", r.lost(r.ended(jobs[0].Job, core.Completed)), []core.ID{jobs[0].ID})
	r.equal("Ack", r.ack(r.lane, refs[1], byID(jobs[1].ID)), 0)
	r.equal("Extend", r.extend(r.now.Add(leaseTime), r.lane, refs[2]), 0)
	r.release(r.now, jobs[3].Job)
	for _, j := range jobs {
		r.wantJob(r.canceled(j.Job))
		r.equal("Attempts", len(r.attempts(j.ID)), 0)
	}
	r.equal("Recover", r.recover(r.lane), 0)
	r.nothingDue()
}

// The second Cancel returns the same at the same time. Later it finds finished jobs.
func cancelAgain(r *rig) {
	j := r.put()
	first := r.cancel(j.EventID)
	r.wantIdempotent("Cancel", func() { r.equal("Cancel again", r.cancel(j.EventID), first) })
	want := r.canceled(j)
	r.now = r.now.Add(time.Second)
	r.equal("Cancel later", r.cancel(j.EventID), core.Cancellation{Finished: 1})
	r.wantJob(want)
}

// An event without jobs is not missing.
func cancelMissing(r *rig) {
	if c, err := r.store.Cancel(context.Background(), r.now, r.ids.Next()); !core.IsKind(err, core.NotFound) {
		r.Errorf("Cancel of a missing event = %+v, %v; want a refusal of kind NotFound", c, err)
	}
	bare := r.arrival()
	r.accepted(bare)
	r.equal("Cancel of an event without jobs", r.cancel(bare.Event.ID), core.Cancellation{})
}

// retryCanceled revives a canceled job by its id, with all its attempts.
func retryCanceled(r *rig) {
	j, other := r.put(), r.put()
	r.cancel(j.EventID)
	r.cancel(other.EventID)
	stays := r.canceled(other)
	want := r.canceled(j)
	r.now = r.now.Add(time.Hour)
	r.equal("Retry", r.retry(j.ID, ""), 1)
	want.Status, want.DueAt, want.FinishedAt = core.Available, r.now, time.Time{}
	r.wantJob(want)
	r.wantJob(stays)
	taken := r.take(1)
	r.equal("Take", ids(taken), []core.ID{j.ID})
	r.equal("attempt and last one", []int{taken[0].Attempt, taken[0].MaxAttempts}, []int{1, maxAttempts})
}

// A job that was canceled after two attempts is numbered on, like a dead one.
func retryCanceledLate(r *rig) {
	j := r.taken().Job
	r.settle(r.ended(j, core.Retryable))
	r.now = r.now.Add(2 * leaseTime)
	r.now = r.take(1)[0].DueAt
	r.cancel(j.EventID)
	r.equal("Retry", r.retry(j.ID, ""), 1)
	got := r.job(j.ID)
	r.equal("attempts, last one and earlier ones", []int{got.Attempt, got.MaxAttempts, got.Earlier}, []int{2, 2 + maxAttempts, 2})
}

// A Retry without an id leaves canceled jobs alone.
func retryNoCanceled(r *rig) {
	j := r.put()
	r.cancel(j.EventID)
	want := r.canceled(j)
	r.now = r.now.Add(time.Second)
	r.equal("Retry of the lane", r.retry("", r.lane), 0)
	r.equal("Retry of all", r.retry("", ""), 0)
	r.wantJob(want)
}

// A drain leaves canceled jobs as a record, like completed ones.
func drainCanceled(r *rig) {
	j := r.put()
	r.cancel(j.EventID)
	want := r.canceled(j)
	r.settled(core.Dead)
	r.equal("Drain", r.drainOf(r.lane, newestID, 10), 1)
	r.wantJob(want)
}

// Canceled jobs are counted by themselves, in each lane.
func endedCanceled(r *rig) {
	a := r.arrival(r.lane, r.lane, "queue/b")
	r.accepted(a)
	r.cancel(a.Event.ID)
	r.settled(core.Dead)
	r.put()
	r.equal("Ended", r.countEnded(r.lane, "queue/b", "queue/c"), map[core.Lane]core.Ended{
		r.lane: {Canceled: 2, Dead: 1}, "queue/b": {Canceled: 1}, "queue/c": {},
	})
	r.equal("Tallies", r.tallies(r.lane, "queue/b"), map[core.Lane]core.Tally{r.lane: {Pending: 1, OldestDue: r.now}, "queue/b": {}})
}

// Canceled jobs are no completed ones.
func completedBesideCanceled(r *rig) {
	r.settled(core.Completed)
	r.settled(core.Dead)
	for range 3 {
		r.cancel(r.put().EventID)
	}
	r.equal("Completed", r.completedJobs(), 1)
}

// Canceled jobs are found behind many newer jobs, with and without the lane.
func listCanceled(r *rig) {
	a := r.arrival(r.lane, "queue/b")
	jobs := r.accepted(a)
	r.cancel(a.Event.ID)
	for range 20 {
		r.putMany(100) // more than a listing looks at before it goes by index
	}
	r.equal("Jobs", ids(r.jobs(core.JobFilter{Status: core.Canceled, Limit: 1}).Items), []core.ID{jobs[1].ID})
	r.equal("Jobs of all lanes", ids(r.jobs(core.JobFilter{Status: core.Canceled}).Items), []core.ID{jobs[1].ID, jobs[0].ID})
	r.equal("Jobs of a lane", ids(r.jobs(core.JobFilter{Status: core.Canceled, Lane: r.lane}).Items), []core.ID{jobs[0].ID})
	r.equal("Jobs of a lane, of each status", ids(r.jobs(core.JobFilter{Lane: "queue/b"}).Items), []core.ID{jobs[1].ID})
	r.equal("Jobs of another lane", r.jobs(core.JobFilter{Status: core.Canceled, Lane: "queue/c"}).Items, []core.Job{})
}

// cancelSome cancels any earlier arrival of a sequence. A duplicate's event is not stored, so its
// Cancel is refused.
func (m *machine) cancelSome(t *rapid.T) {
	if len(m.arrivals) == 0 {
		t.Skip("nothing has arrived")
	}
	id := rapid.SampledFrom(m.arrivals).Draw(t, "arrival").Event.ID
	want, refused := m.model.Cancel(context.Background(), m.now, id)
	got, err := m.store.Cancel(context.Background(), m.now, id)
	if core.IsKind(err, core.NotFound) != core.IsKind(refused, core.NotFound) || err != nil && refused == nil {
		m.Fatalf("Cancel(%s) = %v, want %v", id, err, refused)
	}
	m.equal("Cancel", got, want)
}

// drainBesideCancel cancels the job that Drain selected, before Drain deletes it.
func drainBesideCancel(r *rig, f *Fault) {
	first, second := r.put(), r.put()
	f.justBefore("drain_jobs", func() { r.cancel(first.EventID) })
	r.equal("Drain of one", r.drainOf(r.lane, newestID, 1), 1)
	r.wantJob(r.canceled(first))
	r.wantNoJob(second)
}
