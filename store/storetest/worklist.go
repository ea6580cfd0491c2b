package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Take, Due and of the rest of the Worklist. Take decides which worker has a job. A
// failure means that jobs are delivered twice at the same time, too early, in the wrong order or
// never.

const (
	saysDueTells   = "Due returns when the next job of each lane is due: in the past if a job is due already, and the end of the lease for a running job"
	saysDueGates   = "It returns the gates of the lanes as well"
	saysDueAbsent  = "A lane is absent if no job waits in it and its gate is the zero Gate"
	saysDueReads   = "It writes nothing"
	saysTake       = "Take leases due jobs of the given lanes until now + Hold, the longest due of each lane first and never more than its quota, and counts their attempts"
	saysTakeEvents = "The jobs come with their events, lane by lane in the requested order"
	saysDue        = "A job is due once its due time has passed or is now; a running job whose lease is over is due like any other"
	saysOneLease   = "No job is held under two leases at once, however many callers take at the same time"
	saysEmpty      = "Taking from an empty or unknown lane, or with a quota of zero, returns no jobs"
	saysSpent      = "A running job whose last attempt is over is taken too, so that its end is recorded: see [Job.Spent]"
	saysBytes      = "Jobs beyond Quota.Bytes come without their events, and the caller releases them: see [TakenJob.Bare]"
	saysFirst      = "The first job comes with its event however large the event is"
	saysSettle     = "Settle ends attempts: each outcome is recorded as an attempt and gives its job the status, due time and error it says"
	saysLost       = "An outcome whose lease is no longer the job's changes nothing, and its job id is returned as lost"
	saysSettled    = "Settling the same outcome again changes nothing and is not lost"
	saysRelease    = "Release gives taken jobs back untried: their attempt is uncounted, and they are due at the given time"
	saysReleaseNo  = "A job stays as it is if its lease is no longer the lease under which it was taken"
	saysRecover    = "Recover makes every running job of the lanes due at once, and returns the number of these jobs"
)

// The checks of Settle, Release and Recover are in settle.go, those of gates in gates.go.
var worklist = role{name: "Worklist", checks: append([]check{
	// Due: when a worker has to look again, and through which gate.
	{saysDueTells, "the earliest of each lane", dueEarliest},
	{saysDueTells, "in the past", duePast},
	{saysDueTells, "the end of a lease", dueLease},
	{saysDueTells, "of many lanes", dueOfMany},
	{saysDueGates, "", dueGates},
	{saysDueGates, "of a lane without waiting jobs", dueGateAlone},
	{saysDueAbsent, "", dueAbsent},
	{saysDueAbsent, "unchanged gate", dueUnmoved},
	{saysDueReads, "", dueNoWrite},
	// Take: which jobs, in which order, under which lease, and with which events.
	{saysTake, "leases", takeLeases},
	{saysTake, "the given lanes only", takeLanes},
	{saysTake, "each lane's longest due first", takeOldest},
	{saysTake, "of equal due times the older job first", takeOldestID},
	{saysTake, "never more than its quota", takeQuota},
	{saysTake, "each take is a new lease", takeNewLease},
	{saysTake, "a finished job is not taken", takeUnfinished},
	{saysTakeEvents, "with their events", haulEvents},
	{saysTakeEvents, "lane by lane", haulLanes},
	{saysDue, "due time", takeDue},
	{saysDue, "lease over", takeOver},
	{saysOneLease, "", raceTakers},
	{saysOneLease, "while jobs arrive", raceArrivals},
	{saysEmpty, "", takeEmpty},
	{saysEmpty, "other jobs are unchanged", takeNothing},
	{saysSpent, "", takeSpent},
	{saysSpent, "settled as dead", settleSpent},
	{saysSpent, "after a release", releaseSpent},
	{saysBytes, "", takeBytes},
	{saysFirst, "", takeLarge},
	{saysTakenRun, "", takeRuns},
	{saysTakenRun, "later", takeRunsLater},
	{saysTakenRun, "without a step", takeStepless},
	// Settle: each outcome, lost outcomes and repeated ones.
	{saysSettle, "completed", settleCompleted},
	{saysSettle, "retryable", settleRetryable},
	{saysSettle, "dead", settleDead},
	{saysSettle, "completed after a failure", settleAfterFailure},
	{saysSettle, "many in one call", settleMany},
	{saysSettle, "none", settleNone},
	{saysSettle, "after the lease ended, before another Take", settleLate},
	{saysLost, "taken again", settleTakenAgain},
	{saysLost, "with an exchange", loseExchange},
	{saysLost, "released", settleReleased},
	{saysLost, "unknown lease", settleMadeUp},
	{saysLost, "beside valid outcomes", settleBeside},
	{saysSettled, "immediately", settleTwice},
	{saysSettled, "in one call", settleTwiceInOne},
	{saysSettled, "after the job was taken again", settleTwiceLater},
	{saysSettled, "beside a new outcome", settleTwiceBeside},
	{saysRelease, "before the first attempt", releaseNew},
	{saysRelease, "after a failed attempt", releaseTried},
	{saysRelease, "many in one call", releaseMany},
	{saysRelease, "of a scheduled step", releaseWaited},
	{saysReleaseNo, "settled", releaseSettled},
	{saysReleaseNo, "taken again", releaseTakenAgain},
	{saysRecover, "", recoverRunning},
	{saysRecover, "the given lanes only", recoverLanes},
	{saysRecover, "other jobs are unchanged", recoverOthers},
}, worklistGates...)}

// The returned job and the stored one agree in all fields, and the job is not due while it is
// leased.
func takeLeases(r *rig) {
	want := r.put()
	got := r.take(1)[0].Job
	if got.Lease == "" {
		r.Errorf("Take: lease of %s is empty, want one", got.ID)
	}
	want.Status, want.Attempt, want.DueAt, want.ScheduledAt, want.Lease = core.Running, 1, r.now.Add(leaseTime), want.DueAt, got.Lease
	r.equal("Take", got, want)
	r.wantJob(want)
	r.equal("Take while it is leased", len(r.takeQuotas(r.quota(9))), 0)
}

// A lane without a quota keeps its job.
func takeLanes(r *rig) {
	a := r.arrival("handler/a", "handler/b", "handler/c")
	r.accepted(a)
	got := r.takeQuotas(core.Quota{Lane: "handler/a", N: 5, Hold: leaseTime}, core.Quota{Lane: "handler/c", N: 5, Hold: leaseTime})
	r.equal("Take(a, c)", ids(got), []core.ID{a.Jobs[0].ID, a.Jobs[2].ID})
	r.equal("status in lane b", r.job(a.Jobs[1].ID).Status, core.Available)
}

// putReversed stores one job in each of the lanes, with due times in the reverse order of the
// lanes. It returns the jobs in the order of due times. So the order of due times differs from the
// order of ids.
func (r *rig) putReversed(lanes ...core.Lane) []core.Job {
	r.Helper()
	var order []core.Job
	for i, l := range lanes {
		job := r.accepted(r.arrival(l))[0]
		order = append([]core.Job{job}, order...)
		taken := r.takeOnly(job.ID, core.Quota{Lane: l, N: 1, Hold: leaseTime})
		r.release(r.now.Add(time.Duration(len(lanes)-i)*time.Second), taken.Job)
	}
	r.now = r.now.Add(leaseTime)
	return order
}

// Single takes return jobs by due time, not by id. In the order of ids, due retries of old jobs
// would always come before new jobs.
func takeOldest(r *rig) {
	order := r.putReversed(lanes(r.lane, 5)...)
	for i, want := range order {
		r.equal("Take of one, the "+nth(i), r.take(1)[0].ID, want.ID)
	}
}

// Jobs with the same due time come in the order of their arrival.
func takeOldestID(r *rig) {
	jobs := r.accepted(r.arrival(lanes(r.lane, 5)...))
	for i, want := range jobs {
		r.equal("Take of one, the "+nth(i), r.take(1)[0].ID, want.ID)
	}
}

// haulLanes checks the order of lanes in a Take. It leaves the order within a lane open.
func haulLanes(r *rig) {
	for range 3 {
		r.accepted(r.arrival("handler/a", "handler/b", "queue/c"))
	}
	var got []core.Lane
	for _, j := range r.takeQuotas(core.Quota{Lane: "handler/b", N: 2, Hold: time.Hour},
		core.Quota{Lane: "queue/c", N: 9, Hold: leaseTime}, core.Quota{Lane: "handler/a", N: 1, Hold: leaseTime}) {
		got = append(got, j.Lane)
	}
	want := []core.Lane{"handler/b", "handler/b", "queue/c", "queue/c", "queue/c", "handler/a"}
	r.equal("Take(b: 2, c: 9, a: 1): lanes", got, want)
}

// Two jobs of one event and one of another come with their own events.
func haulEvents(r *rig) {
	a, b := r.arrival("handler/a", "handler/b"), r.delivered("d")
	b.Jobs[0].Lane, b.Event.Payload = "handler/b", []byte("another")
	r.accepted(a)
	r.accepted(b)
	events := map[core.ID]core.Event{a.Event.ID: a.Event, b.Event.ID: b.Event}
	got := r.takeQuotas(core.Quota{Lane: "handler/a", N: 5, Hold: leaseTime}, core.Quota{Lane: "handler/b", N: 5, Hold: leaseTime})
	r.equal("Take: number of jobs", len(got), 3)
	for _, j := range got {
		r.equal("Take: event", j.Event, events[j.EventID])
	}
}

// Quotas below, above and of zero jobs, in one Take.
func takeQuota(r *rig) {
	for range 5 {
		r.accepted(r.arrival("handler/a", "handler/b", "handler/c"))
	}
	got := map[core.Lane]int{}
	for _, j := range r.takeQuotas(core.Quota{Lane: "handler/a", N: 2, Hold: leaseTime},
		core.Quota{Lane: "handler/b", N: 9, Hold: leaseTime},
		core.Quota{Lane: "handler/c", N: 0, Hold: leaseTime}) {
		got[j.Lane]++
	}
	r.equal("Take(a: 2, b: 9, c: 0) with 5 due in each", got, map[core.Lane]int{"handler/a": 2, "handler/b": 5})
}

// putSized stores n events of one job each, with payloads of that many bytes. The payloads are
// text.
func (r *rig) putSized(n, bytes int) (jobs []core.Job) {
	r.Helper()
	for range n {
		a := r.arrival(r.lane)
		a.Event.Payload = []byte(strings.Repeat("a", bytes))
		jobs = append(jobs, r.accepted(a)...)
	}
	return jobs
}

// takeComplete takes jobs, releases the bare ones, and returns the others.
func (r *rig) takeComplete(q core.Quota, bytes int) (jobs []core.TakenJob) {
	r.Helper()
	for _, j := range r.takeQuotas(q) {
		if j.Bare {
			r.equal("payload of a bare job", len(j.Event.Payload), 0)
			r.release(r.now, j.Job)
			continue
		}
		r.equal("payload of a job", len(j.Event.Payload), bytes)
		jobs = append(jobs, j)
	}
	return jobs
}

// takeBytes takes five jobs with a quota of bytes for two events. The first Take returns two whole
// jobs and three bare ones, which are released untried.
func takeBytes(r *rig) {
	stored := r.putSized(5, 50_000)
	q := r.quota(5)
	q.Bytes = 140_000
	first := r.takeComplete(q, 50_000)
	r.equal("Take of 140,000 bytes: whole jobs", len(first), 2)
	rest := r.takeComplete(r.quota(5), 50_000)
	r.equal("Take of the rest: jobs", len(rest), 3)
	for _, j := range rest {
		r.equal("Take of the rest: attempt", j.Attempt, 1)
	}
	all := ids(append(first, rest...))
	slices.Sort(all)
	r.equal("Take, both times", all, ids(stored))
}

// takeLarge takes jobs whose events are larger than the quota's bytes, one at a time. Otherwise a
// large event would stop its lane.
func takeLarge(r *rig) {
	r.putSized(2, 50_000)
	q := r.quota(2)
	q.Bytes = 1
	for range 2 {
		r.equal("Take of one byte: whole jobs", len(r.takeComplete(q, 50_000)), 1)
	}
	r.nothingDue()
}

// Three takes of one job have three leases, since the lease is the fence against earlier holders.
func takeNewLease(r *rig) {
	seen := map[core.Lease]bool{}
	r.put()
	for i := range 3 {
		j := r.take(1)[0]
		if seen[j.Lease] {
			r.Errorf("Take: lease of the %s take is an earlier one", nth(i))
		}
		seen[j.Lease] = true
		r.now = j.DueAt
	}
}

// No time brings back a job that ended.
func takeUnfinished(r *rig) {
	r.settled(core.Completed)
	r.settled(core.Dead)
	r.now = r.now.Add(1000 * time.Hour)
	r.nothingDue()
}

// A job is taken at its due time and not a millisecond before.
func takeDue(r *rig) {
	j := r.put()
	due := r.now
	r.now = due.Add(-time.Millisecond)
	r.nothingDue()
	r.now = due
	r.equal("Take", ids(r.take(1)), []core.ID{j.ID})
}

// A job whose worker vanished is taken at the end of its lease, as its second attempt.
func takeOver(r *rig) {
	j := r.taken()
	r.now = j.DueAt.Add(-time.Millisecond)
	r.nothingDue()
	r.now = j.DueAt
	again := r.take(1)[0].Job
	want := j.Job
	want.Attempt, want.DueAt, want.ScheduledAt, want.Lease = 2, r.now.Add(leaseTime), j.DueAt, again.Lease
	r.equal("Take again", again, want)
}

// Unknown lanes, no lanes and quotas of zero return nothing, and do not disturb other quotas.
func takeEmpty(r *rig) {
	j := r.put()
	unknown := core.Quota{Lane: "handler/nobody", N: 5, Hold: leaseTime}
	r.equal("Take of an unknown lane", ids(r.takeQuotas(unknown)), []core.ID{})
	r.equal("Take of no lane", ids(r.takeQuotas()), []core.ID{})
	r.equal("Take with a quota of zero", ids(r.takeQuotas(r.quota(0))), []core.ID{})
	r.settle(r.ended(r.takeOnly(j.ID, unknown, r.quota(5)).Job, core.Completed))
	r.equal("Take of an empty lane", ids(r.takeQuotas(r.quota(5))), []core.ID{})
}

// A Take that finds nothing due leaves waiting and running jobs as they are.
func takeNothing(r *rig) {
	waits, runs := r.settled(core.Retryable), r.taken().Job
	r.now = r.now.Add(time.Second)
	r.nothingDue()
	r.wantJob(waits)
	r.wantJob(runs)
}

// takeUntilSpent takes a job as often as its lane permits, and returns it from one Take more. A
// handler's job has core.MaxRepeats attempts more, because the outcome of the last one is unknown if
// its lease ended.
func (r *rig) takeUntilSpent(maxAttempts int) core.TakenJob {
	a := r.arrival(r.lane)
	a.Jobs[0].MaxAttempts = maxAttempts
	r.accepted(a)
	takes := maxAttempts
	if r.lane.Queue() == "" {
		takes += core.MaxRepeats
	}
	for i := range takes {
		j := r.take(1)[0]
		if j.Spent() || j.Number() != min(i+1, maxAttempts) {
			r.Errorf("Take, the %s of %d: attempt %d of %d, number %d, spent: %v; want number %d, not spent",
				nth(i), takes, j.Attempt, j.MaxAttempts, j.Number(), j.Spent(), min(i+1, maxAttempts))
		}
		r.now = j.DueAt
	}
	return r.take(1)[0]
}

// Jobs with one attempt and with three, of handlers and of queues, use up their attempts. The
// next Take returns them as spent.
func takeSpent(r *rig) {
	for _, n := range []int{1, 3} {
		for lane, repeats := range map[core.Lane]int{core.HandlerLane(nth(n)): core.MaxRepeats, core.QueueLane(nth(n)): 0} {
			r.lane = lane
			j := r.takeUntilSpent(n)
			r.equal("Take: attempt of a spent job of "+string(lane), j.Attempt, n+repeats+1)
			r.equal("Take: Spent", j.Spent(), true)
		}
	}
}

// A worker ends a spent job as dead. The job then shows as many attempts as it was permitted.
func settleSpent(r *rig) {
	j := r.takeUntilSpent(2)
	o := r.ended(j.Job, core.Dead)
	o.Attempt.Number, o.Attempt.Error = j.MaxAttempts, core.LeaseExpired
	r.settle(o)
	want := j.Job
	want.Status, want.Attempt, want.DueAt, want.Lease = core.Dead, 2, time.Time{}, ""
	want.LastError, want.FinishedAt = core.LeaseExpired, r.now
	r.wantJob(want)
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{o.Attempt})
}

// Releasing a spent job must not give it another attempt.
func releaseSpent(r *rig) {
	j := r.takeUntilSpent(1)
	r.release(r.now, j.Job)
	again := r.take(1)[0]
	r.equal("Take: Spent", again.Spent(), true)
}

// Each lane has three waiting jobs, of which the earliest counts.
func dueEarliest(r *rig) {
	want := map[core.Lane]time.Time{}
	for i, l := range []core.Lane{"handler/a", "handler/b", "queue/c"} {
		want[l] = r.now.Add(time.Duration(3-i) * time.Minute)
		for _, wait := range []time.Duration{time.Hour, 0, time.Second} {
			a := r.arrival(l)
			a.Event.CreatedAt = want[l].Add(wait)
			r.accepted(a)
		}
	}
	r.equal("Due(a, b, c)", r.due("handler/a", "handler/b", "queue/c"), want)
	delete(want, "handler/b")
	r.equal("Due(c, a)", r.due("queue/c", "handler/a"), want)
}

// Due returns a time in the past if a job is due. The answer does not depend on the time of the
// call.
func duePast(r *rig) {
	retry := r.settled(core.Retryable)
	first := r.put()
	r.put()
	r.equal("Due of a lane with a failed job", r.due(r.lane)[r.lane], first.DueAt)
	r.settle(r.ended(r.take(2)[0].Job, core.Completed))
	r.equal("Due once all is taken", r.due(r.lane)[r.lane], retry.DueAt)
	r.now = r.now.Add(time.Hour)
	r.equal("Due does not depend on the time of asking", r.due(r.lane)[r.lane], retry.DueAt)
}

// A worker that polls looks again when a lease ends, in case its holder vanished.
func dueLease(r *rig) {
	j := r.taken()
	r.equal("Due of a running job", r.due(r.lane)[r.lane], j.DueAt)
	r.put()
	r.equal("Due of a running and a waiting one", r.due(r.lane)[r.lane], r.now)
}

// Lanes in which all jobs are finished need no worker.
func dueAbsent(r *rig) {
	r.accepted(r.arrival("handler/other"))
	r.settled(core.Completed)
	r.settled(core.Dead)
	none := map[core.Lane]time.Time{}
	r.equal("Due of a lane where all is finished", r.due(r.lane), none)
	r.equal("Due of an unknown lane", r.due("handler/nobody"), none)
	r.equal("Due of no lane", r.due(), none)
	r.equal("Due of all of them", r.due("handler/nobody", "handler/other", r.lane), map[core.Lane]time.Time{"handler/other": r.now})
}

// Workers ask all the time, so Due must not write: the state of the store stays the same.
// RunFaults, which sees statements, checks in addition that no statement writes.
func dueNoWrite(r *rig) {
	r.taken()
	r.put()
	want := r.state()
	r.due(r.lane)
	r.equal("state after Due", r.state(), want)
}
