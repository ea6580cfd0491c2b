package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The checks of probes and verdicts. gates.go lists them. A probe is the one delivery that
// tests a handler while its breaker is open.

// A probe is taken at the end of the cooldown and not a millisecond before. The quota asks for
// nine jobs, and gets one. The gate then waits for the outcome of the probe.
func probeTime(r *rig) {
	g := r.openBreaker()
	r.now = g.OpenUntil.Add(-time.Millisecond)
	r.takeCount("too early", 0, r.probe())
	r.wantGate("that no Take changed", g)
	r.now = g.OpenUntil
	got := r.takeCount("in time", 1, r.probe())
	r.equal("Probe", got[0].Probe, true)
	r.equal("StartAt", got[0].StartAt, time.Time{})
	g.OpenUntil = r.now.Add(core.BreakerCooldown)
	r.wantGate("under a probe", g)
	r.equal("Take without a Pass: Probe", r.takeOnly(r.accepted(r.arrival("handler/b"))[0].ID, core.Quota{Lane: "handler/b", N: 1, Hold: leaseTime}).Probe, false)
}

// A Take returns no probe while the breaker of the lane is closed: without failures, with one,
// and after the breaker has closed again.
func probeClosed(r *rig) {
	r.putMany(1)
	r.takeCount("of a lane without failures", 0, r.probe())
	r.settle(r.verdict(r.take(1)[0], core.Failure))
	r.takeCount("after one failure", 0, r.probe())
	r.closeBreaker()
	r.now = r.now.Add(core.RampTime)
	g := r.gate()
	r.takeCount("after it closed", 0, r.probe())
	r.wantGate("that no Take changed", g)
}

// The end of a cooldown that is more than two pauses away was set by a clock that has been set
// back. The probe must not wait for it.
func probeHorizon(r *rig) {
	g := r.openBreaker()
	q := r.probe()
	q.Pass.Probe = 40 * time.Second
	r.now = g.OpenUntil.Add(-80 * time.Second)
	old := r.arrival(r.lane)
	old.Event.CreatedAt = r.now.Add(-time.Minute)
	r.accepted(old)
	r.takeCount("two pauses away", 0, q)
	r.now = r.now.Add(-time.Millisecond)
	r.takeOnly(old.Jobs[0].ID, q)
	g.OpenUntil = r.now.Add(40 * time.Second)
	r.wantGate("under a probe", g)
}

// probeNothing asks for a probe while no job is due. That must change nothing, and the newest
// probe must remain the probe.
func probeNothing(r *rig) {
	r.putMany(core.BreakerThreshold)
	failed := r.verdicts(r.take(core.BreakerThreshold), failures(core.BreakerThreshold)...)
	for i := range failed[1:] {
		failed[1+i].Status, failed[1+i].DueAt = core.Dead, time.Time{}
	}
	r.settle(failed...)
	r.now = r.gate().OpenUntil
	q := r.probe()
	q.Hold = time.Hour
	j := r.takeCount("for a probe", 1, q)[0]
	g := r.gate()
	r.now = g.OpenUntil
	r.takeCount("with nothing due", 0, r.probe())
	r.wantGate("with nothing to take", g)
	r.settle(r.verdict(j, core.Success))
	r.equal("Open after the success of the newest probe", r.gate().Open(), false)
}

// While a probe is running, no other one is taken, until the probe's time is over.
func probeInTurn(r *rig) {
	r.takeProbe()
	next := r.gate().OpenUntil
	for _, at := range []time.Time{r.now, next.Add(-time.Millisecond)} {
		r.now = at
		r.takeCount("while a probe is running", 0, r.probe())
	}
	r.now = next
	r.takeCount("after the probe's time", 1, r.probe())
	r.takeCount("again", 0, r.probe())
}

// 50 callers ask for the probe at once. A handler that is down must get one delivery and not 50.
func raceProbes(r *rig) {
	const callers = 50
	r.now = r.openBreaker().OpenUntil
	q := r.probe()
	for range r.scaled(4) {
		var taken atomic.Int64
		r.concurrently(callers, func(int) error {
			got, err := r.store.Take(context.Background(), r.now, []core.Quota{q})
			taken.Add(int64(len(got)))
			return err
		})
		r.equal("probes", taken.Load(), int64(1))
		r.now = r.gate().OpenUntil
	}
}

// riseOf returns an outcome that gives rise to an event with jobs in two lanes, and that arrival.
func (r *rig) riseOf(j core.TakenJob) (core.Outcome, core.Arrival) {
	a := r.arrival("alert/x", "alert/y")
	o := r.verdict(j, core.Failure)
	o.Status, o.DueAt, o.GivesRise = core.Dead, time.Time{}, &a
	return o, a
}

// The alert of an outcome is stored with its jobs, once, also if it has no jobs.
func rise(r *rig) {
	o, a := r.riseOf(r.taken())
	r.settle(o, o) // a call may have an outcome twice
	r.equal("Event", r.storedEvent(a.Event.ID), a.Event)
	for _, n := range a.Jobs {
		r.wantJob(core.Job{ID: n.ID, EventID: a.Event.ID, Lane: n.Lane, Status: core.Available,
			MaxAttempts: n.MaxAttempts, DueAt: a.Event.CreatedAt, CreatedAt: a.Event.CreatedAt})
	}
	bare := r.verdict(r.taken(), core.NoVerdict)
	bare.GivesRise = &core.Arrival{Event: r.event()}
	r.settle(bare, bare)
	r.equal("Event without jobs", r.storedEvent(bare.GivesRise.Event.ID), bare.GivesRise.Event)
}

// A lost outcome, or one of an unknown job, must not raise an alert.
func riseLost(r *rig) {
	late := r.taken()
	r.now = late.DueAt
	r.take(1)
	o, a := r.riseOf(late)
	r.equal("Settle: lost", r.lost(o), []core.ID{late.ID})
	r.wantAbsent(a)
	made, b := r.riseOf(core.TakenJob{Job: core.Job{ID: r.ids.Next(), Lease: late.Lease, Lane: r.lane, Attempt: 1}})
	r.equal("Settle of an unknown job: lost", r.lost(made), []core.ID{made.JobID})
	r.wantAbsent(b)
}

// A repeated outcome must not raise its alert again, even after the alert was delivered, nor a
// different alert.
func riseAgain(r *rig) {
	o, a := r.riseOf(r.taken())
	r.settle(o)
	b := r.takeOnly(a.Jobs[0].ID, core.Quota{Lane: "alert/x", N: 9, Hold: leaseTime})
	r.settle(r.verdict(b, core.Success))
	r.wantIdempotent("Settle", func() { r.settle(o) })
	other := o
	another := r.arrival("alert/x")
	other.GivesRise = &another
	r.settle(other) // a repetition with another event: the attempt is recorded already
	r.wantAbsent(another)
}

// One call settles 60 outcomes with alerts, more than one statement takes on D1.
func riseMany(r *rig) {
	const n = 60
	r.putMany(n)
	var outcomes []core.Outcome
	var all []core.Arrival
	for _, j := range r.take(n) {
		o, a := r.riseOf(j)
		outcomes, all = append(outcomes, o), append(all, a)
	}
	r.settle(outcomes...)
	for _, a := range all {
		r.equal("Jobs of an event", len(r.jobs(core.JobFilter{EventID: a.Event.ID}).Items), len(a.Jobs))
	}
}

// verdictsByLetter returns outcomes with one verdict for each letter of word: f for a failure, s for a
// success, and a dot for no verdict.
func (r *rig) verdictsByLetter(jobs []core.TakenJob, word string) (outcomes []core.Outcome) {
	of := map[rune]core.Verdict{'f': core.Failure, 's': core.Success, '.': core.NoVerdict}
	for i, c := range word {
		outcomes = append(outcomes, r.verdict(jobs[i], of[c]))
	}
	return outcomes
}

// Each word is a sequence of outcomes in one call. Failures must be counted as if they had come
// one after the other, also when the breaker opens in the middle. Repeating the call counts
// nothing.
func verdictsInTurn(r *rig) {
	for word, want := range map[string]int{
		"f": 1, "ff": 2, "s": 0, ".": 0, "fs": 0, "sf": 1, "ffsf": 1, "f.f": 2, ".f.": 1, "fsssff": 2, "sfsf": 1,
		"ffff": 4, "ffffs": 0, "ffff.": 4, "fffff": 5, "ffffff": 5, "fffffs": 5, "ffffsf": 1, "fffff.": 5, "ffffsfffff": 5,
	} {
		r.lane = core.HandlerLane(word)
		r.putMany(len(word))
		outcomes := r.verdictsByLetter(r.take(len(word)), word)
		got := r.settlement(outcomes...)
		r.equal("Failures after "+word, r.gate().Failures, want)
		if _, reported := got.Gates[r.lane]; reported != (word != "s" && word != ".") {
			r.Errorf("Settle(%s): gates = %v", word, got.Gates)
		}
		if g, reported := got.Gates[r.lane]; reported {
			r.equal("Settlement.Gates after "+word, g, r.gate())
		}
		r.settle(outcomes...)
		r.equal("Failures after "+word+" again", r.gate().Failures, want)
	}
}

// Outcomes of three lanes in one call move three gates, each by its own outcomes.
func verdictsLanes(r *rig) {
	all := []core.Lane{"handler/a", "handler/b", "handler/c"}
	var outcomes []core.Outcome
	for _, l := range all {
		r.lane = l
		r.putMany(4)
		r.settle(r.verdictsByLetter(r.take(4), "ff")...)
		r.now = r.now.Add(time.Millisecond)
	}
	r.now = r.now.Add(leaseTime)
	for i, word := range []string{"s", "f", "sf"} {
		r.lane = all[i]
		outcomes = append(outcomes, r.verdictsByLetter(r.take(4), word)...)
	}
	got := r.settlement(outcomes...)
	r.equal("Settlement.Gates", got.Gates, map[core.Lane]core.Gate{"handler/b": {Failures: 3}, "handler/c": {Failures: 1}})
	for i, want := range []int{0, 3, 1} {
		r.lane = all[i]
		r.equal("Failures of "+string(all[i]), r.gate().Failures, want)
	}
}

// Outcomes under stale leases do not count, alone or beside valid ones, in any order.
func verdictsLost(r *rig) {
	r.putMany(3)
	late := r.take(3)
	r.now = late[0].DueAt
	again := r.take(3)
	r.settlement(r.verdictsByLetter(late, "fff")...)
	r.equal("Failures", r.gate().Failures, 0)
	r.settle(r.verdict(again[0], core.Failure))
	r.settlement(append(r.verdictsByLetter(late, "fs"), r.verdict(again[1], core.Failure))...)
	r.equal("Failures", r.gate().Failures, 2)
	r.settlement(r.verdict(late[2], core.Success))
	r.equal("Failures after a lost success", r.gate().Failures, 2)
	r.settlement(r.verdict(late[0], core.Success), r.verdict(again[2], core.Success), r.verdict(late[1], core.Success))
	r.equal("Failures after a success that counts", r.gate().Failures, 0)
}

// The same failure sent again, also with another verdict, counts once.
func verdictsOnce(r *rig) {
	o := r.verdict(r.taken(), core.Failure)
	r.settle(o, o)
	r.settle(o)
	r.equal("Failures", r.gate().Failures, 1)
	other := o
	other.Verdict = core.Success
	r.settle(other)
	r.equal("Failures after a success of the same attempt", r.gate().Failures, 1)
}

// An outcome without a lane, as of a queue's message, touches no gate.
func verdictsNoLane(r *rig) {
	o := r.verdict(r.taken(), core.Failure)
	o.Lane = ""
	r.equal("Settlement", r.settlement(o), core.Settlement{})
	r.equal("Outlooks", r.outlooks(r.lane, ""), map[core.Lane]core.Outlook{r.lane: {DueAt: r.now}})
}

// Each outcome in a call of its own. Only a failure returns the gate.
func counts(r *rig) {
	r.putMany(6)
	jobs := r.take(6)
	for i, want := range []int{1, 2, 3, 0, 0, 1} {
		v := core.Failure
		if want == 0 {
			v = core.Success
		}
		got := r.settlement(r.verdict(jobs[i], v))
		r.wantGate(nth(i), core.Gate{Failures: want})
		if v == core.Failure {
			r.equal("Settlement", got, core.Settlement{Gates: map[core.Lane]core.Gate{r.lane: {Failures: want}}})
		} else {
			r.equal("Settlement", got, core.Settlement{})
		}
	}
}

// Twenty deliveries fail at once, as in several processes. The breaker opens once, at the
// threshold. Exactly one answer of Settle may say that its outcome opened the breaker, so that
// operators get one alert.
func raceFailures(r *rig) {
	n := 4 * core.BreakerThreshold
	r.putMany(n)
	jobs := r.take(n)
	var opened atomic.Int64
	r.concurrently(n, func(i int) error {
		o := r.verdict(jobs[i], core.Failure)
		got, err := r.store.Settle(context.Background(), o)
		if got.Gates[r.lane].MovedBy == o.JobID {
			opened.Add(1)
		}
		return err
	})
	r.equal("Failures", r.gate().Failures, core.BreakerThreshold)
	r.equal("outcomes that opened it", opened.Load(), int64(1))
}

// The failure that reaches the threshold opens the breaker, from its own time on.
func opens(r *rig) {
	r.putMany(core.BreakerThreshold)
	jobs := r.take(core.BreakerThreshold)
	for i, o := range r.verdicts(jobs, failures(core.BreakerThreshold)...) {
		r.equal("Open", r.gate().Open(), false)
		r.now = r.now.Add(time.Second)
		o.At = r.now
		want := core.Gate{Failures: i + 1}
		if i == core.BreakerThreshold-1 {
			want.OpenUntil, want.MovedBy = r.now.Add(core.BreakerCooldown), o.JobID
			want.OpenedAt, want.Openings = r.now, 1
		}
		r.equal("Settlement", r.settlement(o).Gates[r.lane], want)
		r.wantGate("after the "+nth(i)+" failure", want)
	}
}

// A failed probe keeps the breaker open for another cooldown, then the next probe may start.
func newestFails(r *rig) {
	j := r.takeProbe()
	want := r.gate()
	r.now = r.now.Add(time.Second)
	want.Failures, want.OpenUntil, want.MovedBy = core.BreakerThreshold+1, r.now.Add(core.BreakerCooldown), ""
	got := r.settlement(r.verdict(j, core.Failure))
	r.equal("Settlement", got.Gates, map[core.Lane]core.Gate{r.lane: want})
	r.wantGate("after the probe failed", want)
	r.takeCount("right afterwards", 0, r.probe())
	r.now = want.OpenUntil
	r.takeCount("after the cooldown", 1, r.probe())
}

// A successful probe closes the breaker and resets its failures.
func newestSucceeds(r *rig) {
	j := r.takeProbe()
	opened := r.gate().OpenedAt
	r.now = r.now.Add(time.Second)
	want := core.Gate{ClosedAt: r.now, MovedBy: j.ID, OpenedAt: opened, Openings: 1}
	got := r.settlement(r.verdict(j, core.Success))
	r.equal("Settlement", got.Gates, map[core.Lane]core.Gate{r.lane: want})
	r.wantGate("after the probe succeeded", want)
}

// A probe without a verdict, as after a shutdown, makes place for the next one immediately.
func newestSilent(r *rig) {
	j := r.takeProbe()
	want := r.gate()
	r.now = r.now.Add(time.Second)
	want.OpenUntil = r.now
	got := r.settlement(r.verdict(j, core.NoVerdict))
	r.equal("Settlement", got.Gates, map[core.Lane]core.Gate{r.lane: want})
	r.takeCount("right afterwards", 1, r.probe())
}

// Deliveries that were taken before the breaker opened must neither close it nor prolong it.
func newestOthers(r *rig) {
	r.putMany(3)
	others := r.takeQuotas(r.paced(3, time.Millisecond, 0))
	others[0].Probe = true
	r.takeProbe()
	want := r.gate()
	r.settlement(r.verdictsByLetter(others, ".fs")...)
	r.wantGate("after outcomes of other deliveries", want)
}

// An older probe ends after a newer one started, with each verdict. Only the outcome of the newer
// probe counts.
func newestOlder(r *rig) {
	for _, word := range []string{"f", "s", "."} {
		r.lane = core.HandlerLane(word)
		older := r.takeProbe()
		r.now = r.gate().OpenUntil
		newer := r.takeCount("after the probe's time", 1, core.Quota{Lane: r.lane, N: 1, Hold: leaseTime, Pass: r.probe().Pass})[0]
		want := r.gate()
		if older.ID == newer.ID { // the older lease was over as well
			r.equal("Settle: lost", r.lost(r.verdictsByLetter([]core.TakenJob{older}, word)...), []core.ID{older.ID})
		} else {
			r.settlement(r.verdictsByLetter([]core.TakenJob{older}, word)...)
		}
		r.wantGate("after the outcome of an older probe", want)
		r.settle(r.verdict(newer, core.Success))
		r.equal("Open", r.gate().Open(), false)
	}
}

// A worker that stops releases its probe. The next one starts at the given time and not a
// millisecond before.
func probeBack(r *rig) {
	j := r.takeProbe()
	want := r.gate()
	due := r.now.Add(3 * time.Second)
	r.release(due, j.Job)
	want.OpenUntil = due
	r.wantGate("after the release", want)
	r.now = due.Add(-time.Millisecond)
	r.takeCount("too early", 0, r.probe())
	r.now = due
	r.takeCount("in time", 1, r.probe())
}

// The next probe need not wait for one whose job an operator deleted.
func probeBackDrained(r *rig) {
	j := r.takeProbe()
	want := r.gate()
	r.drainOf(r.lane, newestID, 10)
	want.OpenUntil = r.now.Add(time.Second)
	r.release(want.OpenUntil, j.Job)
	r.wantGate("after the release", want)
}

// Releasing jobs that are no probe, or no longer the newest one, must not move the gate.
func probeBackOthers(r *rig) {
	r.putMany(2)
	passed := r.takeQuotas(r.paced(2, time.Millisecond, 0))
	want := r.gate()
	r.release(r.now, passed[0].Job)
	r.wantGate("after a release while it is closed", want)
	older := r.takeProbe()
	r.release(r.now, passed[1].Job)
	next := r.gate().OpenUntil
	r.now = next
	newer := r.takeCount("after the probe's time", 1, r.probe())[0]
	want = r.gate()
	r.release(r.now.Add(time.Second), older.Job, passed[1].Job)
	r.wantGate("after the release of other jobs", want)
	r.settle(r.verdict(newer, core.Failure))
	want = r.gate()
	r.release(r.now, newer.Job)
	r.wantGate("after the release of a settled job", want)
}
