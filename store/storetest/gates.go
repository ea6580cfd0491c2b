package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of gates: the circuit breaker and the rate limit of a lane. A gate is a row that Take
// reads and Settle moves, so all processes of a database agree on it. The checks set the rig's
// time to the moments before, at and after each limit. A failure means that workers call a
// failing handler without a pause, flood a recovered handler, or never call it again. The checks
// of probes and verdicts are in probes.go, those of strays in strays.go, those of breaker
// settings in breakers.go.

const (
	saysNoPass    = "Nothing is taken without a Pass from a lane whose breaker is open or has closed less than RampTime ago, nor from one whose hold has ended less than RampTime ago, unless it is a queue's"
	saysPaced     = "With a Pass that has an interval, jobs are taken only while the breaker is closed and the gate's next start (see [Gate.StartAt]) is at most Pass.Ahead away"
	saysStarts    = "The first of the jobs is to start then and each further one an interval later, and the gate's NextAt becomes an interval after the last start: so no two jobs that any callers take with a Pass start closer together"
	saysClosedAt  = "Nothing is taken if Pass.Closed is not the gate's ClosedAt"
	saysProbe     = "With a Pass for a probe one job is taken, if the breaker is open and [Gate.ProbeAt] has come"
	saysOneProbe  = "No other probe is taken until Pass.Probe later: of any number of simultaneous callers, one gets the job"
	saysRise      = "The event and jobs in GivesRise are stored in the same commit, if the outcome is stored"
	saysVerdicts  = "The outcomes' verdicts move the gates of their lanes, in the order given"
	saysCounts    = "A success resets Failures to 0, and a failure adds 1"
	saysOpens     = "The failure that makes them at least Breaker.Failures opens the breaker for Breaker.Cooldown"
	saysOpenings  = "Each opening sets OpenedAt and counts in Openings, and both stay when a probe fails and when the breaker closes, so that no opening is missed by a process that looks later"
	saysNewest    = "While the breaker is open, only the outcome of its newest probe counts: a failure keeps the breaker open for another Breaker.Cooldown, a success closes it, and an outcome without a verdict permits the next probe at once"
	saysCloses    = "CloseBreakers resets the failures of lanes to 0 and closes their open breakers, as the success of a probe would"
	saysClosed    = "It returns the lanes whose breakers it closed, sorted"
	saysCloseSame = "Closing again at the same time returns the same"
	saysProbeLeft = "The outcome of a probe that is under way then counts like the outcome of any other delivery"
	saysProbeBack = "After a probe is released, the next probe may be taken at the given time"
	saysStrays    = "Strays returns the lanes in which jobs wait and which are not among the known ones, each with the time at which Strays first found it so"
	saysSetBack   = "Strays resets the gates of lanes that have been strays for StrayTime, so that no gate delays the worker that ends their jobs, except that lanes stay held; before that the gates stay as they are, since another process may know the lanes"
	saysKnown     = "A lane is no stray any more once any process passes it as known, and its time begins anew if it becomes a stray again"
)

// worklistGates are the checks of the Worklist that involve gates. They are part of the role
// Worklist, in whose interface the sentences are.
var worklistGates = []check{
	// A Take without a Pass.
	{saysNoPass, "open", shutOpen},
	{saysNoPass, "after it closed", shutRamp},
	{saysNoPass, "closed by a fast clock", shutAhead},
	{saysNoPass, "closed after the clock was set back", shutFuture},
	{saysNoPass, "failures below the threshold", shutNot},
	{saysNoPass, "a hold that has ended", holdsUntil},
	{saysNoPass, "the hold of a queue", holdsQueue},
	{saysNotHeld, "", holdsForEver},
	// A Take with an interval.
	{saysPaced, "open", pacedOpen},
	{saysPaced, "ahead", pacedAhead},
	{saysPaced, "beyond the horizon", pacedHorizon},
	{saysStarts, "in sequence", startsInTurn},
	{saysStarts, "nothing is due", startsNothing},
	{saysStarts, "several lanes", startsLanes},
	{saysStarts, "in microseconds", startsMicro},
	{saysStarts, "no further ahead than the horizon", startsHorizon},
	{saysStarts, "concurrent takers", raceStarts},
	{saysClosedAt, "interval", closedInterval},
	{saysClosedAt, "probe", closedProbe},
	// A Take for a probe.
	{saysProbe, "at ProbeAt", probeTime},
	{saysProbe, "closed", probeClosed},
	{saysProbe, "after the clock was set back", probeHorizon},
	{saysProbe, "nothing is due", probeNothing},
	{saysOneProbe, "in sequence", probeInTurn},
	{saysOneProbe, "concurrently", raceProbes},
	// Settle: alerts, and verdicts that move gates.
	{saysRise, "", rise},
	{saysRise, "lost", riseLost},
	{saysRise, "settled again", riseAgain},
	{saysRise, "many in one call", riseMany},
	{saysVerdicts, "in one call", verdictsInTurn},
	{saysVerdicts, "several lanes", verdictsLanes},
	{saysVerdicts, "lost outcomes do not count", verdictsLost},
	{saysVerdicts, "once", verdictsOnce},
	{saysVerdicts, "without a lane", verdictsNoLane},
	{saysCounts, "", counts},
	{saysCounts, "concurrently", raceFailures},
	{saysOpens, "", opens},
	{saysOpens, "other breaker settings", opensOther},
	{saysOpens, "breaker settings change", opensChanged},
	{saysOpenings, "", openings},
	{saysOpenings, "twice in one call", openingsOnce},
	{saysNewest, "a failure", newestFails},
	{saysNewest, "a failure, other breaker settings", newestFailsOther},
	{saysNewest, "a success", newestSucceeds},
	{saysNewest, "no verdict", newestSilent},
	{saysNewest, "deliveries that are no probe", newestOthers},
	{saysNewest, "older probe", newestOlder},
	// Operators and workers that stop.
	{saysCloses, "", closes},
	{saysClosed, "", closesSome},
	{saysClosed, "closed by a probe at the same time", closesNone},
	{saysCloseSame, "", closesAgain},
	{saysProbeLeft, "", closesUnderProbe},
	{saysProbeBack, "", probeBack},
	{saysProbeBack, "released jobs that are no probe", probeBackOthers},
	{saysProbeBack, "released after its job was deleted", probeBackDrained},
	// Lanes that no configuration knows.
	{saysStrays, "", straysFound},
	{saysStrays, "each subset of known lanes", straysBetween},
	{saysStrays, "among many lanes", straysOfMany},
	{saysKnown, "", straysKnown},
	{saysSetBack, "", straysSetBack},
	{saysSetBack, "not before StrayTime", straysStay},
	{saysSetBack, "a hold", straysHeld},
}

// gate returns the gate of the rig's lane.
func (r *rig) gate() core.Gate {
	r.Helper()
	return r.outlooks(r.lane)[r.lane].Gate
}

// wantGate fails unless the gate of the rig's lane has exactly this state. The openings of its
// breaker are not compared: they have checks of their own.
func (r *rig) wantGate(what string, want core.Gate) {
	r.Helper()
	r.equal("Gate "+what, unopened(r.gate()), unopened(want))
}

// putMany puts n jobs in the rig's lane.
func (r *rig) putMany(n int) {
	r.Helper()
	r.accepted(r.arrival(lanes(r.lane, n)...))
}

// verdict returns an outcome with a verdict. A success completes the job. Any other verdict makes
// the job due again at once. The outcome names the lane of the job, since outcomes without a lane
// move no gate.
func (r *rig) verdict(j core.TakenJob, v core.Verdict) core.Outcome {
	status := core.Retryable
	if v == core.Success {
		status = core.Completed
	}
	o := r.ended(j.Job, status)
	if status == core.Retryable {
		o.DueAt = r.now
	}
	o.Lane, o.Verdict, o.Probe = j.Lane, v, j.Probe
	return o
}

// verdicts returns an outcome for each verdict, of the jobs in their order.
func (r *rig) verdicts(jobs []core.TakenJob, verdicts ...core.Verdict) (outcomes []core.Outcome) {
	for i, v := range verdicts {
		outcomes = append(outcomes, r.verdict(jobs[i], v))
	}
	return outcomes
}

// failures returns n verdicts of failure.
func failures(n int) (all []core.Verdict) {
	for range n {
		all = append(all, core.Failure)
	}
	return all
}

// openBreaker opens the breaker of the rig's lane, and leaves core.BreakerThreshold jobs waiting
// there. It returns the gate, and fails the test unless the breaker is open.
func (r *rig) openBreaker() core.Gate {
	r.Helper()
	r.putMany(core.BreakerThreshold)
	r.settle(r.verdicts(r.take(core.BreakerThreshold), failures(core.BreakerThreshold)...)...)
	g := r.gate()
	r.equal("Open", g.Open(), true)
	return g
}

// probe returns a quota for a probe of the rig's lane. It asks for 9 jobs, and a probe must get at
// most one.
func (r *rig) probe() core.Quota {
	q := r.quota(9)
	q.Pass = &core.Pass{Probe: core.BreakerCooldown, Closed: r.gate().ClosedAt}
	return q
}

// takeProbe opens the breaker, moves the time to the end of the cooldown, and takes the first
// probe. It ends the test if the taken job is not a probe.
func (r *rig) takeProbe() core.TakenJob {
	r.Helper()
	r.now = r.openBreaker().OpenUntil
	got := r.takeQuotas(r.probe())
	if len(got) != 1 || !got[0].Probe {
		r.Fatalf("Take for a probe = %+v, want one", got)
	}
	return got[0]
}

// closeBreaker opens the breaker and closes it again by a probe's success. The gate is then in its
// ramp.
func (r *rig) closeBreaker() core.Gate {
	r.Helper()
	r.settle(r.verdict(r.takeProbe(), core.Success))
	g := r.gate()
	r.equal("Open", g.Open(), false)
	return g
}

// paced returns a quota for n jobs of the rig's lane that start an interval apart. Ahead is how
// far in the future the first start may be.
func (r *rig) paced(n int, interval, ahead time.Duration) core.Quota {
	q := r.quota(n)
	q.Pass = &core.Pass{Interval: interval, Ahead: ahead, Closed: r.gate().ClosedAt}
	return q
}

// takeCount fails unless a take returns want jobs. It compares only their number, and the test
// continues.
func (r *rig) takeCount(what string, want int, quotas ...core.Quota) []core.TakenJob {
	r.Helper()
	got := r.takeQuotas(quotas...)
	r.equal("Take "+what+": jobs", len(got), want)
	return got
}

// A worker decides by the gate in the answer of Due whether to probe, to pace or to wait. All
// fields are checked while the breaker is open and after it closed.
func dueGates(r *rig) {
	r.now = r.openBreaker().OpenUntil
	j := r.takeQuotas(r.probe())
	r.equal("Due of an open one", r.outlooks(r.lane), map[core.Lane]core.Outlook{r.lane: {
		DueAt: r.now.Add(-core.BreakerCooldown),
		Gate: core.Gate{Failures: core.BreakerThreshold, OpenUntil: r.now.Add(core.BreakerCooldown), MovedBy: r.gate().MovedBy,
			OpenedAt: r.now.Add(-core.BreakerCooldown), Openings: 1},
	}})
	r.settle(r.verdict(j[0], core.Success))
	r.takeQuotas(r.paced(1, time.Second, 0))
	r.wantGate("that was passed after it closed", core.Gate{ClosedAt: r.now, NextAt: r.now.Add(time.Second), MovedBy: j[0].ID})
}

// A gate with a failure is returned also if no job waits: the next job depends on it.
func dueGateAlone(r *rig) {
	j := r.taken()
	o := r.verdict(j, core.Failure)
	o.Status, o.DueAt = core.Dead, time.Time{}
	r.settle(o)
	r.equal("Due", r.outlooks("handler/nobody", r.lane), map[core.Lane]core.Outlook{r.lane: {Gate: core.Gate{Failures: 1}}})
}

// Successes, lost outcomes and empty takes must not leave rows of gates behind: most lanes never
// fail.
func dueUnmoved(r *rig) {
	o := r.verdict(r.taken(), core.Success)
	r.strays()
	r.settle(o)
	r.equal("Due after a success", len(r.outlooks(r.lane)), 0)
	lost := r.verdict(core.TakenJob{Job: core.Job{ID: r.ids.Next(), Lane: r.lane, Lease: "none", Attempt: 1}}, core.Failure)
	r.settlement(lost)
	r.equal("Due after a lost outcome", len(r.outlooks(r.lane)), 0)
	r.takeQuotas(r.paced(1, time.Second, 0))
	r.equal("Due after a Pass with nothing to take", len(r.outlooks(r.lane)), 0)
}

// Neither the end of the cooldown nor an hour more lets a plain Take through. Another lane of the
// same Take is served.
func shutOpen(r *rig) {
	g := r.openBreaker()
	other := r.arrival("handler/other")
	r.accepted(other)
	for _, at := range []time.Time{r.now, g.OpenUntil, g.OpenUntil.Add(time.Hour)} {
		r.now = at
		r.nothingDue()
	}
	r.takeOnly(other.Jobs[0].ID, r.quota(1), core.Quota{Lane: "handler/other", N: 1, Hold: leaseTime})
}

// In the ramp, only a paced Take may start deliveries. The limits are tested to the nanosecond.
func shutRamp(r *rig) {
	g := r.closeBreaker()
	for _, since := range []time.Duration{0, time.Millisecond, core.RampTime - time.Millisecond, core.RampTime - time.Nanosecond} {
		r.now = g.ClosedAt.Add(since)
		r.nothingDue()
	}
	r.now = g.ClosedAt.Add(core.RampTime)
	r.take(core.BreakerThreshold - 1)
}

// The process that closed the breaker may have a clock that is ahead, by up to the horizon. The
// ramp holds for slower clocks as well.
func shutAhead(r *rig) {
	g := r.closeBreaker()
	for _, before := range []time.Duration{time.Millisecond, core.GateHorizon - time.Nanosecond, core.GateHorizon} {
		r.now = g.ClosedAt.Add(-before)
		r.nothingDue()
	}
}

// A gate that was closed further in the future than the horizon shows a clock that was set back.
// It must not block its lane until that time.
func shutFuture(r *rig) {
	g := r.closeBreaker()
	r.now = g.ClosedAt.Add(-core.GateHorizon - time.Millisecond)
	r.takeCount("before it closed", core.BreakerThreshold-1, r.quota(9))
}

// Below the threshold, jobs are taken as if nothing had failed.
func shutNot(r *rig) {
	r.putMany(core.BreakerThreshold)
	jobs := r.take(core.BreakerThreshold)
	for i, o := range r.verdicts(jobs, failures(core.BreakerThreshold-1)...) {
		r.settle(o)
		r.equal("Failures", r.gate().Failures, i+1)
		r.take(1)
	}
}

// A paced Take must not pass an open breaker, not even after the cooldown.
func pacedOpen(r *rig) {
	g := r.openBreaker()
	for _, at := range []time.Time{r.now, g.OpenUntil.Add(time.Hour)} {
		r.now = at
		r.takeCount("while it is open", 0, r.paced(9, time.Second, time.Second))
	}
	r.wantGate("that no Take changed", g)
}

// Starts are given away as far ahead as the Pass permits and not a microsecond further. A start
// long in the past counts as now.
func pacedAhead(r *rig) {
	const interval = 3 * time.Second
	r.putMany(9)
	r.takeCount("of one", 1, r.paced(1, interval, 0))
	r.takeCount("a little too far ahead", 0, r.paced(1, interval, interval-time.Microsecond))
	r.takeCount("as far ahead", 1, r.paced(1, interval, interval))
	r.now = r.now.Add(2 * interval)
	r.takeCount("at ProbeAt", 1, r.paced(1, interval, 0))
	r.now = r.now.Add(time.Hour)
	r.takeCount("long after", 1, r.paced(1, interval, 0))
	r.equal("NextAt", r.gate().NextAt, r.now.Add(interval))
	r.takeCount("in the past", 0, r.paced(1, interval, -time.Second))
}

// pacedHorizon sets the clock back: first exactly to core.GateHorizon before the gate's next
// start, then a microsecond further. A next start beyond the horizon is taken for a mistake of the
// clock, and starts begin anew.
func pacedHorizon(r *rig) {
	r.putMany(9)
	r.takeCount("of one", 1, r.paced(1, time.Second, 0))
	r.now = r.gate().NextAt.Add(-core.GateHorizon)
	old := r.arrival(r.lane)
	old.Event.CreatedAt = r.now.Add(-time.Minute)
	r.accepted(old)
	r.takeCount("at the horizon", 0, r.paced(1, time.Second, time.Second))
	r.now = r.now.Add(-time.Microsecond)
	got := r.takeQuotas(r.paced(1, time.Second, time.Second))
	if len(got) != 1 || !got[0].StartAt.Equal(r.now) {
		r.Errorf("Take beyond the horizon = %+v, want one that starts at %v", got, r.now)
	}
	r.equal("NextAt", r.gate().NextAt, r.now.Add(time.Second))
}

// starts returns how long after a time each job is to start.
func starts(jobs []core.TakenJob, after time.Time) (all []time.Duration) {
	for _, j := range jobs {
		all = append(all, j.StartAt.Sub(after))
	}
	return all
}

// Takes with different intervals follow each other without a gap and without an overlap. After a
// pause, starts do not accumulate.
func startsInTurn(r *rig) {
	const ms = time.Millisecond
	r.putMany(9)
	r.equal("Take of three: starts", starts(r.takeQuotas(r.paced(3, 20*ms, 0)), r.now), []time.Duration{0, 20 * ms, 40 * ms})
	r.equal("Take of two more: starts", starts(r.takeQuotas(r.paced(2, 50*ms, time.Second)), r.now), []time.Duration{60 * ms, 110 * ms})
	r.equal("NextAt", r.gate().NextAt.Sub(r.now), 160*ms)
	r.now = r.now.Add(100 * ms)
	r.equal("Take a little later: starts", starts(r.takeQuotas(r.paced(1, 20*ms, time.Second)), r.now), []time.Duration{60 * ms})
	r.now = r.now.Add(time.Second)
	r.equal("Take long after: starts", starts(r.takeQuotas(r.paced(9, 20*ms, 0)), r.now), []time.Duration{0, 20 * ms, 40 * ms})
	r.equal("NextAt", r.gate().NextAt.Sub(r.now), 60*ms)
}

// A Take that found no job must not use up a start, or an idle lane would be slowed down.
func startsNothing(r *rig) {
	r.putMany(1)
	r.takeQuotas(r.paced(1, time.Second, 0))
	want := r.gate()
	for _, d := range []time.Duration{0, time.Second, 30 * time.Second} {
		r.now = r.now.Add(d)
		r.takeCount("of an empty lane", 0, r.paced(5, time.Second, time.Second))
		r.wantGate("that no Take changed", want)
	}
}

// One Take serves three lanes, two of them paced, in an order that is not that of their names.
// Each lane has its own starts.
func startsLanes(r *rig) {
	a := r.arrival("handler/c", "handler/c", "handler/a", "handler/a", "handler/b")
	r.accepted(a)
	of := func(l core.Lane, interval time.Duration) core.Quota {
		q := core.Quota{Lane: l, N: 2, Hold: leaseTime}
		if interval > 0 {
			q.Pass = &core.Pass{Interval: interval}
		}
		return q
	}
	got := r.takeQuotas(of("handler/c", time.Second), of("handler/b", 0), of("handler/a", 2*time.Second))
	want := []core.ID{a.Jobs[0].ID, a.Jobs[1].ID, a.Jobs[4].ID, a.Jobs[2].ID, a.Jobs[3].ID}
	r.equal("Take(c, b, a)", ids(got), want)
	r.equal("StartAt without a Pass", got[2].StartAt, time.Time{})
	r.equal("StartAt of c, b and a", starts(append(got[:2:2], got[3:]...), r.now), []time.Duration{0, time.Second, 0, 2 * time.Second})
	r.equal("Gates", r.outlooks("handler/a", "handler/b", "handler/c"), map[core.Lane]core.Outlook{
		"handler/a": {DueAt: r.now.Add(leaseTime), Gate: core.Gate{NextAt: r.now.Add(4 * time.Second)}},
		"handler/b": {DueAt: r.now.Add(leaseTime)},
		"handler/c": {DueAt: r.now.Add(leaseTime), Gate: core.Gate{NextAt: r.now.Add(2 * time.Second)}},
	})
}

// Intervals below a millisecond must not be rounded, or a limit of 3,000 a second would be missed.
func startsMicro(r *rig) {
	r.putMany(4)
	r.now = r.now.Add(1500 * time.Nanosecond)
	from := r.now.Truncate(time.Microsecond)
	r.equal("Take: starts", starts(r.takeQuotas(r.paced(2, 333*time.Microsecond, 0)), from), []time.Duration{0, 333 * time.Microsecond})
	r.equal("Take: starts", starts(r.takeQuotas(r.paced(2, 333*time.Microsecond, time.Second)), from),
		[]time.Duration{666 * time.Microsecond, 999 * time.Microsecond})
	r.equal("NextAt", r.gate().NextAt, from.Add(1332*time.Microsecond))
}

// startsHorizon checks that a take gives away no starts beyond the horizon. Later starts would
// look like those of a clock that was set back.
func startsHorizon(r *rig) {
	r.putMany(30)
	r.takeCount("of many", 8, r.paced(30, time.Second, 2*time.Second))
	r.takeCount("too far ahead", 0, r.paced(30, time.Second, 2*time.Second))
	r.now = r.now.Add(6 * time.Second)
	r.equal("Take of one more: starts", starts(r.takeCount("of one more", 8, r.paced(30, time.Second, 2*time.Second))[:1], r.now), []time.Duration{2 * time.Second})
}

// 16 callers take from one lane at once. No two starts may be the same, none may be left out, and
// the gate must end an interval after the last.
func raceStarts(r *rig) {
	const interval, callers = 20 * time.Millisecond, 16
	each := r.scaled(8)
	r.putMany(2 * callers * each)
	q := r.paced(2, interval, core.GateHorizon/2)
	taken := make([][]core.TakenJob, callers)
	r.concurrently(callers, func(i int) error {
		for range each {
			got, err := r.store.Take(context.Background(), r.now, []core.Quota{q})
			if err != nil {
				return err
			}
			taken[i] = append(taken[i], got...)
		}
		return nil
	})
	at, last := map[time.Time]bool{}, r.now
	for _, jobs := range taken {
		for _, j := range jobs {
			if at[j.StartAt] || j.StartAt.Sub(r.now)%interval != 0 {
				r.Errorf("StartAt of %s is %v after now, want a multiple of %v that no other has", j.ID, j.StartAt.Sub(r.now), interval)
			}
			at[j.StartAt] = true
			if j.StartAt.After(last) {
				last = j.StartAt
			}
		}
	}
	if len(at) < callers {
		r.Errorf("%d jobs were taken, want more", len(at))
	}
	r.equal("NextAt", r.gate().NextAt, last.Add(interval))
	r.equal("the last start", last.Sub(r.now), time.Duration(len(at)-1)*interval)
}

// A worker that has not seen the newest closing does not know the ramp. Its Take must return no
// jobs.
func closedInterval(r *rig) {
	g := r.closeBreaker()
	for _, at := range []time.Time{{}, g.ClosedAt.Add(-time.Millisecond), g.ClosedAt.Add(time.Millisecond)} {
		q := r.paced(1, time.Second, 0)
		q.Pass.Closed = at
		r.takeCount("with another ClosedAt", 0, q)
	}
	r.takeCount("with that of the gate", 1, r.paced(1, time.Second, 0))
}

// A probe must name the newest closing as well, after the breaker closed and opened again.
func closedProbe(r *rig) {
	g := r.closeBreaker()
	r.now = r.now.Add(core.RampTime)
	r.settle(r.verdicts(r.take(4), failures(4)...)...)
	r.settle(r.verdict(r.take(1)[0], core.Failure))
	r.now = r.gate().OpenUntil
	for _, at := range []time.Time{{}, g.ClosedAt.Add(time.Millisecond)} {
		q := r.probe()
		q.Pass.Closed = at
		r.takeCount("with another ClosedAt", 0, q)
	}
	r.takeCount("with that of the gate", 1, r.probe())
}
