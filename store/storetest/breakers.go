package storetest

import (
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of breakers with their handlers' own thresholds and cooldowns, and of breakers that an
// operator closes. gates.go lists them. A failure means that a handler gets more or fewer attempts
// than its configuration says, or that an operator cannot bring it back.

// closeBreakers closes breakers now, and returns the lanes whose breakers were open.
func (r *rig) closeBreakers(lanes ...core.Lane) []core.Lane {
	r.Helper()
	closed, err := r.store.CloseBreakers(r.asked(), r.now, lanes...)
	if err != nil {
		r.Fatalf("CloseBreakers(%v) = %v, want no error", lanes, err)
	}
	return closed
}

// settleFailure takes a new job of the rig's lane and settles it as a failure, under the breaker
// settings b.
func (r *rig) settleFailure(b core.Breaker) core.Outcome {
	r.Helper()
	o := r.verdict(r.taken(), core.Failure)
	o.Status, o.DueAt, o.Breaker = core.Dead, time.Time{}, b
	r.settle(o)
	return o
}

// A handler with its own threshold and cooldown: the breaker opens at exactly that number of
// failures, and stays open for exactly that time.
func opensOther(r *rig) {
	for _, c := range []struct {
		lane     core.Lane
		b        core.Breaker
		failures int
		cooldown time.Duration
	}{
		{"handler/once", core.Breaker{Failures: 1, Cooldown: time.Second}, 1, time.Second},
		{"handler/patient", core.Breaker{Failures: 2 * core.BreakerThreshold}, 2 * core.BreakerThreshold, core.BreakerCooldown},
		{"handler/slow", core.Breaker{Cooldown: time.Hour}, core.BreakerThreshold, time.Hour},
	} {
		r.lane = c.lane
		var last core.Outcome
		for range c.failures {
			r.equal("Open", r.gate().Open(), false)
			last = r.settleFailure(c.b)
		}
		r.wantGate("of "+string(c.lane), core.Gate{Failures: c.failures, OpenUntil: r.now.Add(c.cooldown), MovedBy: last.JobID})
		r.putMany(1)
		r.nothingDue()
	}
}

// opensChanged changes the breaker settings while failures are counted, and while the breaker is
// open. Only the numbers that come with a failure count. A breaker that is open stays open when
// its threshold is raised, and the next probe decides.
func opensChanged(r *rig) {
	many := core.Breaker{Failures: 2 * core.BreakerThreshold}
	for range core.BreakerThreshold + 2 {
		r.settleFailure(many)
	}
	r.wantGate("below its number", core.Gate{Failures: core.BreakerThreshold + 2})
	last := r.settleFailure(core.Breaker{})
	want := core.Gate{Failures: core.BreakerThreshold + 3, OpenUntil: r.now.Add(core.BreakerCooldown), MovedBy: last.JobID}
	r.wantGate("above a number that was lowered", want)
	r.putMany(1)
	r.now = want.OpenUntil
	silent := r.verdict(r.takeCount("for a probe", 1, r.probe())[0], core.NoVerdict)
	silent.Breaker = core.Breaker{Failures: 1000}
	r.settle(silent)
	r.equal("Open after its number was raised", r.gate().Open(), true)
	r.nothingDue()
	r.takeCount("for a probe after its number was raised", 1, r.probe())
}

// The cooldown after a failed probe has the length that the breaker settings of its outcome give.
func newestFailsOther(r *rig) {
	o := r.verdict(r.takeProbe(), core.Failure)
	o.Breaker = core.Breaker{Failures: 1000, Cooldown: 7 * time.Second}
	r.settle(o)
	r.wantGate("after the probe failed", core.Gate{Failures: core.BreakerThreshold + 1, OpenUntil: r.now.Add(7 * time.Second)})
}

// After an operator closed a breaker, deliveries resume at the pace of the ramp and not all at
// once.
func closes(r *rig) {
	r.openBreaker()
	r.now = r.now.Add(time.Second)
	r.equal("CloseBreakers", r.closeBreakers(r.lane), []core.Lane{r.lane})
	r.wantGate("that was closed", core.Gate{ClosedAt: r.now})
	r.nothingDue()
	r.takeCount("in the ramp", 1, r.paced(1, time.Second, 0))
	r.now = r.now.Add(core.RampTime)
	r.take(core.BreakerThreshold - 1)
}

// Lanes that are closed, unknown or named twice must not appear in the answer, which operators
// read.
func closesSome(r *rig) {
	r.settleFailure(core.Breaker{})
	r.lane = "handler/well"
	r.settle(r.verdict(r.taken(), core.Success))
	for _, l := range []core.Lane{"handler/z", "handler/a"} {
		r.lane = l
		r.openBreaker()
	}
	all := []core.Lane{"handler/z", "handler/well", "handler/nobody", "handler/a", "handler/z"}
	r.equal("CloseBreakers", r.closeBreakers(all...), []core.Lane{"handler/a", "handler/z"})
	r.equal("CloseBreakers of none", len(r.closeBreakers()), 0)
	r.equal("gates afterwards", len(r.outlooks("handler/well", "handler/nobody")), 0)
}

// A caller that got no answer calls again with the same time, and must get the same answer. A
// later call must not extend the ramp.
func closesAgain(r *rig) {
	r.openBreaker()
	r.equal("CloseBreakers", r.closeBreakers(r.lane), []core.Lane{r.lane})
	r.equal("CloseBreakers at the same time", r.closeBreakers(r.lane), []core.Lane{r.lane})
	r.now = r.now.Add(time.Second)
	r.equal("CloseBreakers a second later", slices.Contains(r.closeBreakers(r.lane), r.lane), false)
	r.wantGate("that was closed", core.Gate{ClosedAt: r.now.Add(-time.Second)})
}

// A breaker that a probe closed in the same millisecond was not closed by the operator.
func closesNone(r *rig) {
	j := r.takeProbe()
	r.settle(r.verdict(j, core.Success))
	want := core.Gate{ClosedAt: r.now, MovedBy: j.ID}
	r.wantGate("that a probe closed", want)
	r.equal("breakers that CloseBreakers closed at the same time", len(r.closeBreakers(r.lane)), 0)
	r.wantGate("that was closed before", want)
}

// The outcome of a probe that was sent before an operator closed the breaker must not open it
// again by itself.
func closesUnderProbe(r *rig) {
	j := r.takeProbe()
	r.closeBreakers(r.lane)
	want := core.Gate{ClosedAt: r.now}
	r.wantGate("that was closed", want)
	r.settle(r.verdict(j, core.Failure))
	want.Failures = 1
	r.wantGate("after the probe failed", want)
	r.closeBreakers(r.lane)
	want.Failures = 0
	r.wantGate("whose failures were set back", want)
}

// The time and the number of openings are facts for alerts. They must outlive everything but
// the next opening.
func openings(r *rig) {
	r.settleFailure(core.Breaker{})
	r.wantOpenings("below the threshold", time.Time{}, 0)
	for range core.BreakerThreshold - 1 {
		r.settleFailure(core.Breaker{})
	}
	first := r.now
	r.wantOpenings("that opened", first, 1)
	r.putMany(1)
	r.now = first.Add(core.BreakerCooldown)
	r.settle(r.verdict(r.takeCount("for a probe", 1, r.probe())[0], core.Failure))
	r.wantOpenings("after a failed probe", first, 1)
	r.now = r.now.Add(core.BreakerCooldown)
	r.settle(r.verdict(r.takeCount("for a second probe", 1, r.probe())[0], core.Success))
	r.wantOpenings("that closed", first, 1)
	r.now = r.now.Add(core.RampTime)
	for range core.BreakerThreshold {
		r.settleFailure(core.Breaker{})
	}
	second := r.now
	r.wantOpenings("that opened again", second, 2)
	r.now = r.now.Add(time.Second)
	r.closeBreakers(r.lane)
	r.wantOpenings("that an operator closed", second, 2)
}

// Failures of one call beyond the threshold must not count as openings of their own.
func openingsOnce(r *rig) {
	n := core.BreakerThreshold + 3
	r.putMany(n)
	r.settle(r.verdicts(r.take(n), failures(n)...)...)
	r.wantOpenings("that opened in the middle of a call", r.now, 1)
}

// wantOpenings fails unless the breaker of the rig's lane opened so often, and last at this time.
func (r *rig) wantOpenings(what string, last time.Time, n int) {
	r.Helper()
	g := r.gate()
	r.equal("OpenedAt of a breaker "+what, g.OpenedAt, last)
	r.equal("Openings of a breaker "+what, g.Openings, n)
}

// unopened returns a gate without the openings of its breaker.
func unopened(g core.Gate) core.Gate {
	g.OpenedAt, g.Openings = time.Time{}, 0
	return g
}
