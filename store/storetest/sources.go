package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of held sources. A person holds a source, and the jobs of its events wait in every lane. A
// failure means that jobs are delivered that a person has stopped, that jobs of other sources wait
// with them, or that jobs never come back.

const (
	saysSourceHeld  = "No job is taken whose event came from a held source"
	saysSourceAlone = `The lane of a source, such as "source/shop", holds the jobs of its events in every lane, and no others`
	saysSourceKeeps = "They keep their statuses, due times and attempts"
	saysSourceBack  = "The jobs of a source that is not held any more are taken as if it had not been"
	saysSourceRamp  = "A lane in which a Take met some of them begins slowly, as after a hold of the lane"
	saysSourceDue   = "Once a Take has met a job of a held source, the end of that hold counts as the job's due time"
)

// shop is the lane of the source of the rig's events.
const shop = core.Lane("source/shop")

// putFrom stores a new event of a source with one job in the rig's lane.
func (r *rig) putFrom(source string) core.Job {
	r.Helper()
	a := r.arrival(r.lane)
	a.Event.Source = source
	return r.accepted(a)[0]
}

// wantTaken checks which jobs of the rig's lane a Take gets, in any order. It ends the test if these
// are others.
func (r *rig) wantTaken(when string, want ...core.ID) []core.TakenJob {
	r.Helper()
	got := r.takeQuotas(r.quota(20))
	slices.Sort(want)
	if some := slices.Sorted(slices.Values(ids(got))); !slices.Equal(some, want) {
		r.Fatalf("Take %s = %v, want %v", when, some, want)
	}
	return got
}

// A Take gets the jobs of other sources, before and after jobs of the held one.
func sourceHeld(r *rig) {
	r.put()
	other := r.putFrom("billing")
	r.holdLane(shop, time.Time{}, "their deploy")
	r.put()
	late := r.putFrom("billing")
	r.wantTaken("while the source is held", other.ID, late.ID)
	r.put()
	r.nothingDue()
	r.now = r.now.Add(400 * 24 * time.Hour)
	r.wantTaken("a year later", other.ID, late.ID)
}

// Neither an interval nor a probe lets such jobs through.
func sourceHeldPassed(r *rig) {
	r.openBreaker()
	r.putMany(3)
	r.holdLane(shop, time.Time{}, "")
	r.now = r.gate().OpenUntil
	r.nothingTaken("of a held source behind an open breaker")
	r.unhold(shop)
	r.closeBreakers(r.lane)
	r.holdLane(shop, time.Time{}, "")
	r.nothingTaken("of a held source in the ramp")
}

// A running job whose worker vanished waits like the others, also if its last attempt is used up.
func sourceHeldRunning(r *rig) {
	j := r.taken()
	r.holdLane(shop, time.Time{}, "")
	r.now = r.now.Add(leaseTime)
	r.nothingDue()
	r.unhold(shop)
	r.now = r.now.Add(core.RampTime)
	again := r.wantTaken("after the hold", j.ID)
	r.equal("attempt", again[0].Attempt, 2)
}

// Jobs of other sources are found behind any number of jobs of a held source.
func sourceHeldMany(r *rig) {
	const many = 450
	arrivals := make([]core.Arrival, many)
	for i := range arrivals {
		arrivals[i] = r.arrival(r.lane)
	}
	if _, err := r.store.AcceptAll(context.Background(), arrivals); err != nil {
		r.Fatalf("AcceptAll = %v, want no error", err)
	}
	r.now = r.now.Add(time.Second)
	other := r.putFrom("billing")
	r.holdLane(shop, time.Time{}, "")
	r.wantTaken("behind many jobs", other.ID)
	r.unhold(shop)
	r.now = r.now.Add(core.RampTime)
	r.wantAll(many)
}

// Of several sources that different callers hold at the same time, each is held.
func raceSourceHolds(r *rig) {
	sources := make([]string, r.scaled(8))
	for i := range sources {
		sources[i] = fmt.Sprint("source-", i)
		r.putFrom(sources[i])
	}
	other := r.put()
	r.concurrently(len(sources), func(i int) error {
		return r.store.Hold(context.Background(), r.now, core.SourceLane(sources[i]), time.Time{}, "")
	})
	taken := r.wantTaken("of a source that is not held", other.ID)
	r.settle(r.completed(taken)...)
	r.concurrently(len(sources), func(i int) error {
		_, err := r.store.Unhold(context.Background(), r.now, core.SourceLane(sources[i]))
		return err
	})
	r.now = r.now.Add(core.RampTime)
	r.wantAll(len(sources))
}

// wantAll takes and completes n jobs of the rig's lane.
func (r *rig) wantAll(n int) {
	r.Helper()
	for n > 0 {
		got := r.takeQuotas(r.quota(100))
		if len(got) == 0 || len(got) > n {
			r.Fatalf("Take brought %d jobs, want 1 to %d", len(got), n)
		}
		n -= len(got)
		r.settle(r.completed(got)...)
	}
	r.nothingDue()
}

// completed returns the outcomes of completed jobs.
func (r *rig) completed(jobs []core.TakenJob) (outcomes []core.Outcome) {
	for _, j := range jobs {
		outcomes = append(outcomes, r.ended(j.Job, core.Completed))
	}
	return outcomes
}

// A held lane stays held when a source of its jobs is released.
func sourceOfHeldLane(r *rig) {
	r.put()
	r.holdLane(shop, time.Time{}, "")
	r.nothingDue()
	r.holdLane(r.lane, time.Time{}, "")
	r.now = r.now.Add(time.Second)
	r.unhold(shop)
	r.nothingTaken("of a held lane whose source was released")
	r.equal("Holding", len(r.holding()), 1)
}

// A source whose name begins with that of another one, or ends with it, is not that source.
func sourceAlone(r *rig) {
	r.holdLane(shop, time.Time{}, "")
	var want []core.ID
	for _, source := range []string{"sho", "shop2", "shop/2", "Shop", "the-shop", core.AlertSource} {
		want = append(want, r.putFrom(source).ID)
	}
	r.put()
	r.wantTaken("while another source is held", want...)
	r.unhold("handler/shop")
	r.holdLane("handler/shop", time.Time{}, "")
	r.unhold("source/shop2")
	r.nothingDue()
}

// The hold of a source holds in all lanes: handlers, queues and workflows.
func sourceLanes(r *rig) {
	a := r.arrival("queue/mail", "handler/other", "handler/billing")
	r.accepted(a)
	r.holdLane(shop, time.Time{}, "")
	run := r.newRun().Run.ID
	quotas := []core.Quota{{Lane: "queue/mail", N: 5, Hold: leaseTime}, {Lane: "handler/other", N: 5, Hold: leaseTime}, r.quota(5),
		r.runQuota(5)}
	r.equal("Take of all lanes", len(r.takeQuotas(quotas...)), 0)
	r.unhold(shop)
	r.equal("Take in the ramp", len(r.takeQuotas(quotas...)), 1) // the message
	r.now = r.now.Add(core.RampTime)
	for _, j := range r.takeCount("after the ramp", 3, quotas...) {
		if j.Lane.Workflow() != "" {
			r.equal("the step's run", j.Situation.Run.ID, run)
		}
	}
}

// The hold does not change how jobs are listed and counted, also once a Take has met them.
func sourceKeeps(r *rig) {
	delayed := r.arrival(r.lane)
	delayed.Jobs[0].DueAt = r.now.Add(time.Second)
	failed := r.settled(core.Retryable)
	running := r.taken()
	r.now = r.now.Add(2 * leaseTime)
	jobs := []core.Job{r.put(), r.accepted(delayed)[0], failed}
	r.holdLane(shop, time.Time{}, "")
	before := r.jobs(core.JobFilter{Lane: r.lane}).Items
	pending := r.tallies(r.lane)[r.lane]
	r.nothingDue()
	r.equal("Jobs", r.jobs(core.JobFilter{Lane: r.lane}).Items, before)
	for _, j := range jobs {
		r.wantJob(r.job(j.ID))
	}
	pending.OldestDue = time.Time{} // none is due, as long as the hold lasts
	r.equal("Tally", r.tallies(r.lane)[r.lane], pending)
	r.equal("attempts", len(r.attempts(running.ID)), 0)
	r.equal("Depth", r.depth(), 4)
}

// Peek shows the jobs that a Take would get, whether or not a Take has met the jobs of the held
// source.
func sourcePeeked(r *rig) {
	r.putMany(3)
	r.now = r.now.Add(time.Second)
	first, second := r.putFrom("billing"), r.putFrom("billing")
	r.holdLane(shop, time.Time{}, "")
	for _, when := range []string{"before a Take", "after a Take"} {
		r.equal("Peek at one "+when, ids(r.peek(r.lane, 1)), []core.ID{first.ID})
		r.equal("Peek "+when, ids(r.peek(r.lane, 10)), []core.ID{first.ID, second.ID})
		r.release(r.now, r.takeOnly(first.ID, r.quota(1)).Job)
	}
	r.unhold(shop)
	r.nothingDue() // the ramp; the Take unparks the jobs that an earlier one parked
	r.equal("Peek without holds", len(r.peek(r.lane, 10)), 5)
	r.holdLane("source/billing", time.Time{}, "")
	r.equal("Peek after the hold of the one, beside that of the other", len(r.peek(r.lane, 10)), 3)
}

// A step that ends while its job is parked says until when its worker had the job.
func sourceHeldUntil(r *rig) {
	j := r.takeNewRun()
	r.holdLane(shop, time.Time{}, "")
	r.now = r.now.Add(leaseTime)
	r.equal("Take", len(r.takeQuotas(r.runQuota(1))), 0)
	end := r.finished(j.Situation.Run, core.RunFailed)
	end.Held = []core.ID{j.ID}
	end.Changed = []core.StepChange{{ID: j.ID, Status: core.StepFailed, Error: "late", FinishedAt: r.now}}
	end.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Dead, FinishedAt: r.now}}
	r.mustTransit(end)
	r.equal("HeldUntil", r.heldUntil(end.Run), map[core.ID]time.Time{j.ID: j.DueAt})
	r.equal("ScheduledAt", r.job(j.ID).ScheduledAt, j.ScheduledAt)
}

// An attempt under way ends as usual, also after its lease.
func sourceTaken(r *rig) {
	first, second := r.taken(), r.taken()
	r.holdLane(shop, time.Time{}, "")
	r.settle(r.ended(first.Job, core.Completed))
	r.now = r.now.Add(leaseTime)
	r.nothingDue()
	r.settle(r.ended(second.Job, core.Completed))
	r.equal("statuses", []core.Status{r.job(first.ID).Status, r.job(second.ID).Status}, []core.Status{core.Completed, core.Completed})
}

// Operators can cancel such jobs, and revive them.
func sourceCanceled(r *rig) {
	j := r.put()
	r.holdLane(shop, time.Time{}, "")
	r.nothingDue()
	r.equal("Cancel", r.cancel(j.EventID), core.Cancellation{Canceled: 1})
	r.wantJob(r.canceled(j))
	r.equal("Retry", r.retry(j.ID, ""), 1)
	r.nothingDue()
	r.equal("status", r.job(j.ID).Status, core.Available)
	r.equal("Drain", r.drainOf(r.lane, newestID, 10), 1)
	r.equal("Depth", r.depth(), 0)
}

// Released jobs come in their former order, before jobs that came in meanwhile.
func sourceBack(r *rig) {
	first := r.put()
	r.now = r.now.Add(time.Second)
	second := r.put()
	r.holdLane(shop, time.Time{}, "")
	r.nothingDue()
	r.now = r.now.Add(time.Hour)
	r.equal("Unhold", r.unhold(shop), []core.Lane{shop})
	third := r.putFrom("billing")
	r.now = r.now.Add(core.RampTime)
	r.nothingTakenTwice([]core.ID{first.ID, second.ID, third.ID})
}

// nothingTakenTwice takes jobs one by one and expects them in this order.
func (r *rig) nothingTakenTwice(want []core.ID) {
	r.Helper()
	for _, id := range want {
		r.takeOnly(id, r.quota(1))
	}
	r.nothingDue()
}

// A hold with an end ends by itself, to the millisecond.
func sourceEnds(r *rig) {
	r.lane = "queue/mail"
	j := r.put()
	end := r.now.Add(time.Minute)
	r.holdLane(shop, end, "")
	r.nothingDue()
	r.now = end.Add(-time.Millisecond)
	r.nothingDue()
	r.now = end
	r.takeOnly(j.ID, r.quota(1))
}

// A source may be held, released and held again, in any state of its jobs.
func sourceAgain(r *rig) {
	r.lane = "queue/mail"
	for range 3 {
		j := r.put()
		r.holdLane(shop, r.now.Add(time.Hour), "")
		r.nothingDue()
		r.holdLane(shop, time.Time{}, "")
		r.now = r.now.Add(2 * time.Hour)
		r.nothingDue()
		r.unhold(shop)
		r.holdLane(shop, time.Time{}, "")
		r.nothingDue()
		r.unhold(shop)
		r.takeOnly(j.ID, r.quota(2))
		r.now = r.now.Add(10 * time.Minute) // the source's number is forgotten
		got := r.take(1)
		r.settle(r.ended(got[0].Job, core.Completed))
	}
}

// The end of one hold is not that of another.
func sourceOfTwo(r *rig) {
	r.lane = "queue/mail"
	a, b := r.put(), r.putFrom("billing")
	r.holdLane(shop, time.Time{}, "")
	r.holdLane("source/billing", time.Time{}, "")
	r.nothingDue()
	r.unhold(shop)
	got := r.takeOnly(a.ID, r.quota(5))
	r.settle(r.ended(got.Job, core.Completed))
	r.now = r.now.Add(time.Hour)
	r.nothingDue()
	c := r.put()
	r.unhold("source/billing")
	r.wantTaken("after both holds", b.ID, c.ID)
}

// A purge keeps the jobs, and that they wait.
func sourcePurged(r *rig) {
	r.lane = "queue/mail"
	j := r.put()
	r.holdLane(shop, r.now.Add(time.Hour), "")
	r.nothingDue()
	r.now = r.now.Add(30 * time.Minute)
	r.purge(10)
	r.nothingDue()
	r.now = r.now.Add(1000 * time.Hour)
	r.purge(10) // the source's gate
	r.takeOnly(j.ID, r.quota(1))
}

// The ramp begins with the release, in the lanes in which jobs waited, except queues.
func sourceRamp(r *rig) {
	r.putMany(3)
	r.holdLane(shop, time.Time{}, "")
	r.nothingDue()
	r.now = r.now.Add(time.Hour)
	r.unhold(shop)
	ended := r.now
	r.now = r.now.Add(time.Second)
	r.nothingDue()
	r.wantGate("in the ramp", core.Gate{HeldUntil: ended})
	r.takeCount("in the ramp", 1, r.paced(1, time.Second, 0))
	r.lane = "handler/quiet"
	r.put()
	r.take(1)
}

// A worker that waits for the next due time comes back when the hold ends.
func sourceDue(r *rig) {
	r.put()
	end := r.now.Add(time.Minute)
	r.holdLane(shop, end, "")
	r.nothingDue()
	r.equal("Due", r.due(r.lane), map[core.Lane]time.Time{r.lane: end})
	r.holdLane(shop, time.Time{}, "")
	r.equal("Due without an end", r.due(r.lane), map[core.Lane]time.Time{})
	delayed := r.arrival(r.lane)
	delayed.Jobs[0].DueAt = r.now.Add(time.Hour)
	r.accepted(delayed)
	r.unhold(shop)
	r.equal("Due after the release", r.due(r.lane), map[core.Lane]time.Time{r.lane: r.now})
}
