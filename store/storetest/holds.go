package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of holds. A person holds a lane, and jobs wait without loss until the hold ends. A failure
// means that a handler gets deliveries that a person has stopped, that a lane stays stopped for
// ever, or that a released lane floods its handler.

const (
	saysNotHeld    = "Nothing is taken from a lane that is held"
	saysHold       = "Hold holds a lane from now on, until the given time or, if that is zero, until a person ends it"
	saysHoldTaken  = "Jobs that were taken before stay taken, and their outcomes count"
	saysHoldKeeps  = "A lane that is held already keeps the time since which it is held, and gets the new end and reason"
	saysHoldAgain  = "Holding again with the same arguments changes nothing"
	saysUnhold     = "Unhold ends the holds of lanes as if their breakers closed now, and returns the lanes that it released, sorted"
	saysUnholdSame = "Unholding again at the same time returns the same"
	saysHolding    = "Holding returns the holds that have not ended, by lane"
)

// holds are the checks of the role Holds.
var holds = role{name: "Holds", checks: []check{
	{saysHold, "without an end", holdsForEver},
	{saysHold, "until a time", holdsUntil},
	{saysHold, "other lanes go on", holdsOne},
	{saysHold, "an open breaker", holdsOpen},
	{saysHold, "a lane without a gate is purged around it", holdsPurge},
	{saysHoldTaken, "", holdsTaken},
	{saysHoldKeeps, "", holdsKeep},
	{saysHoldKeeps, "after the hold has ended", holdsAnew},
	{saysHoldAgain, "", holdsAgain},
	{saysUnhold, "", unholds},
	{saysUnhold, "some lanes", unholdsSome},
	{saysUnholdSame, "", unholdsAgain},
	{saysHolding, "", holding},
	{saysHolding, "none", holdingNone},
	{saysSourceHeld, "", sourceHeld},
	{saysSourceHeld, "with a Pass", sourceHeldPassed},
	{saysSourceHeld, "whose lease is over", sourceHeldRunning},
	{saysSourceBack, "into a held lane", sourceOfHeldLane},
	{saysSourceHeld, "before more than a claim looks at", sourceHeldMany},
	{saysSourceHeld, "sources that are held at the same time", raceSourceHolds},
	{saysSourceAlone, "", sourceAlone},
	{saysSourceAlone, "in a queue and a workflow", sourceLanes},
	{saysSourceKeeps, "", sourceKeeps},
	{saysSourceKeeps, "a job that runs", sourceTaken},
	{saysSourceKeeps, "cancel and retry", sourceCanceled},
	{saysSourceKeeps, "a step that ends", sourceHeldUntil},
	{saysSourceBack, "", sourceBack},
	{saysSourceBack, "at its end", sourceEnds},
	{saysSourceBack, "held again", sourceAgain},
	{saysSourceBack, "while another source is held", sourceOfTwo},
	{saysSourceBack, "after a purge", sourcePurged},
	{saysSourceRamp, "", sourceRamp},
	{saysSourceDue, "", sourceDue},
}}

// hold holds the rig's lane.
func (r *rig) hold(until time.Time, reason string) {
	r.Helper()
	r.holdLane(r.lane, until, reason)
}

// holdLane holds a lane.
func (r *rig) holdLane(l core.Lane, until time.Time, reason string) {
	r.Helper()
	if err := r.store.Hold(r.asked(), r.now, l, until, reason); err != nil {
		r.Fatalf("Hold(%q) = %v, want no error", l, err)
	}
}

// unhold ends holds now, and returns the lanes that were held.
func (r *rig) unhold(lanes ...core.Lane) []core.Lane {
	r.Helper()
	released, err := r.store.Unhold(r.asked(), r.now, lanes...)
	if err != nil {
		r.Fatalf("Unhold(%v) = %v, want no error", lanes, err)
	}
	return released
}

// holding returns the holds that have not ended.
func (r *rig) holding() []core.Hold {
	r.Helper()
	all, err := r.store.Holding(context.Background(), r.now)
	if err != nil {
		r.Fatalf("Holding = %v, want no error", err)
	}
	return all
}

// nothingTaken fails if a Take gets a job from the rig's lane, without a Pass, with an interval or
// as a probe.
func (r *rig) nothingTaken(when string) {
	r.Helper()
	r.takeCount(when+", without a Pass", 0, r.quota(10))
	r.takeCount(when+", with an interval", 0, r.paced(10, time.Millisecond, core.GateHorizon/2))
	r.takeCount(when+", as a probe", 0, r.probe())
}

// A hold without an end lasts however long it takes, also beyond the times at which other gates
// are set back.
func holdsForEver(r *rig) {
	r.putMany(3)
	r.hold(time.Time{}, "maintenance")
	r.wantGate("that is held", core.Gate{HeldSince: r.now, HeldUntil: core.NoEnd})
	for _, after := range []time.Duration{0, core.GateHorizon, core.StrayTime, 400 * 24 * time.Hour} {
		r.now = r.now.Add(after)
		r.nothingTaken("after " + after.String())
	}
	r.unhold(r.lane)
	r.now = r.now.Add(core.RampTime)
	r.take(3)
}

// A hold ends by itself at its end, to the millisecond, and the ramp follows.
func holdsUntil(r *rig) {
	r.putMany(3)
	end := r.now.Add(time.Minute)
	r.hold(end, "")
	r.wantGate("that is held", core.Gate{HeldSince: r.now, HeldUntil: end})
	r.now = end.Add(-time.Millisecond)
	r.nothingTaken("before the end")
	r.now = end
	r.nothingDue()
	r.takeCount("in the ramp", 1, r.paced(1, time.Second, 0))
	r.now = end.Add(core.RampTime - time.Millisecond)
	r.nothingDue()
	r.now = end.Add(core.RampTime)
	r.take(2)
}

// Only the lane that is named is held.
func holdsOne(r *rig) {
	held := r.lane
	r.hold(time.Time{}, "")
	r.lane = held + "-other"
	r.putMany(1)
	r.take(1)
}

// A hold and an open breaker do not change each other.
func holdsOpen(r *rig) {
	r.openBreaker()
	before := r.gate()
	r.hold(time.Time{}, "")
	held := r.now
	r.now = before.OpenUntil
	r.nothingTaken("when the probe would be due")
	want := before
	want.HeldSince, want.HeldUntil = held, core.NoEnd
	r.wantGate("that is open and held", want)
	r.unhold(r.lane)
	for _, probe := range r.takeCount("for a probe", 1, r.probe()) {
		r.settle(r.verdict(probe, core.Success))
		r.wantGate("after the probe", core.Gate{ClosedAt: r.now, HeldUntil: r.now, MovedBy: probe.ID})
	}
}

// A purge forgets the gate once the hold has ended, and not before.
func holdsPurge(r *rig) {
	r.hold(time.Time{}, "kept")
	began := r.now
	r.now = r.now.Add(1000 * time.Hour)
	r.purge(10)
	r.wantGate("that is held", core.Gate{HeldSince: began, HeldUntil: core.NoEnd})
	r.unhold(r.lane)
	ended := r.now
	r.now = ended.Add(time.Hour)
	if _, _, err := r.store.Purge(context.Background(), ended, 10); err != nil {
		r.Fatalf("Purge = %v, want no error", err)
	}
	r.wantGate("that was held until this time", core.Gate{HeldUntil: ended})
	if _, _, err := r.store.Purge(context.Background(), ended.Add(time.Millisecond), 10); err != nil {
		r.Fatalf("Purge = %v, want no error", err)
	}
	r.wantGate("that was held before", core.Gate{})
}

// An attempt under way when the lane is held ends as usual.
func holdsTaken(r *rig) {
	j := r.taken()
	r.hold(time.Time{}, "")
	done := r.ended(j.Job, core.Completed)
	r.settle(done)
	r.equal("status", r.job(j.ID).Status, core.Completed)
}

// A second hold of the same lane changes the end and the reason.
func holdsKeep(r *rig) {
	began := r.now
	r.hold(time.Time{}, "first")
	r.now = r.now.Add(time.Second)
	end := r.now.Add(time.Minute)
	r.hold(end, "second")
	r.equal("Holding", r.holding(), []core.Hold{{Lane: r.lane, Since: began, Until: end, Reason: "second"}})
	r.hold(time.Time{}, "")
	r.equal("Holding", r.holding(), []core.Hold{{Lane: r.lane, Since: began}})
}

// A hold that begins when the last one has ended is a new one.
func holdsAnew(r *rig) {
	end := r.now.Add(time.Second)
	r.hold(end, "first")
	r.now = end
	r.hold(time.Time{}, "second")
	r.equal("Holding", r.holding(), []core.Hold{{Lane: r.lane, Since: end, Reason: "second"}})
}

// A caller that got no answer holds again.
func holdsAgain(r *rig) {
	end := r.now.Add(time.Minute)
	r.hold(end, "reason")
	want := r.holding()
	r.hold(end, "reason")
	r.equal("Holding", r.holding(), want)
	r.wantGate("that is held", core.Gate{HeldSince: r.now, HeldUntil: end})
}

// After a person ended a hold, deliveries resume at the pace of the ramp and not all at once.
func unholds(r *rig) {
	r.putMany(3)
	r.hold(time.Time{}, "")
	r.now = r.now.Add(time.Hour)
	r.equal("Unhold", r.unhold(r.lane), []core.Lane{r.lane})
	r.wantGate("that was released", core.Gate{HeldUntil: r.now})
	r.equal("Holding", len(r.holding()), 0)
	r.nothingDue()
	r.takeCount("in the ramp", 1, r.paced(1, time.Second, 0))
	r.now = r.now.Add(core.RampTime)
	r.take(2)
}

// Lanes that are not held, unknown or named twice must not appear in the answer, and get no ramp.
func unholdsSome(r *rig) {
	for _, l := range []core.Lane{"handler/z", "handler/a"} {
		r.holdLane(l, time.Time{}, "")
	}
	r.holdLane("handler/over", r.now.Add(time.Second), "")
	r.now = r.now.Add(time.Second)
	all := []core.Lane{"handler/z", "handler/over", "handler/nobody", "handler/a", "handler/z"}
	r.equal("Unhold", r.unhold(all...), []core.Lane{"handler/a", "handler/z"})
	r.equal("Unhold of none", len(r.unhold()), 0)
	r.equal("gates afterwards", len(r.outlooks("handler/nobody")), 0)
}

// A caller that got no answer calls again with the same time, and must get the same answer. A later
// call must not extend the ramp.
func unholdsAgain(r *rig) {
	r.hold(time.Time{}, "")
	r.equal("Unhold", r.unhold(r.lane), []core.Lane{r.lane})
	r.equal("Unhold at the same time", r.unhold(r.lane), []core.Lane{r.lane})
	r.now = r.now.Add(time.Second)
	r.equal("Unhold a second later", len(r.unhold(r.lane)), 0)
	r.wantGate("that was released", core.Gate{HeldUntil: r.now.Add(-time.Second)})
}

// Operators see all holds, also those of lanes that no configuration has, and of sources.
func holding(r *rig) {
	began := r.now
	r.holdLane("source/their-shop", time.Time{}, "their deploy")
	r.holdLane("handler/b", began.Add(time.Minute), "")
	r.holdLane("handler/a", began.Add(time.Second), "short")
	r.settleFailure(core.Breaker{}) // a gate without a hold
	want := []core.Hold{
		{Lane: "handler/a", Since: began, Until: began.Add(time.Second), Reason: "short"},
		{Lane: "handler/b", Since: began, Until: began.Add(time.Minute)},
		{Lane: "source/their-shop", Since: began, Reason: "their deploy"},
	}
	r.equal("Holding", r.holding(), want)
	r.now = began.Add(time.Second)
	r.equal("Holding a second later", r.holding(), want[1:])
}

// Nothing is held at first.
func holdingNone(r *rig) { r.equal("Holding", len(r.holding()), 0) }

// A lane that has long been in no configuration stays held.
func straysHeld(r *rig) {
	r.putMany(1)
	r.hold(time.Time{}, "")
	began := r.now
	r.strays()
	r.now = r.now.Add(core.StrayTime)
	r.strays()
	r.wantGate("of a held stray", core.Gate{HeldSince: began, HeldUntil: core.NoEnd})
	r.nothingDue()
}

// The consumers of a queue take at their own pace, so a released queue gives all that they ask for.
func holdsQueue(r *rig) {
	r.lane = "queue/mail"
	r.putMany(6)
	r.hold(r.now.Add(time.Second), "")
	r.nothingDue()
	r.now = r.now.Add(time.Second)
	r.take(2)
	r.hold(time.Time{}, "")
	r.nothingDue()
	r.unhold(r.lane)
	r.take(4)
}
