package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of other callers that change holds of sources and lines between two statements of a
// call. A failure means that a stopped job is delivered, or that a job is counted twice.

// besideHoldTwice sends the claims of Takes twice. The second sending finds the jobs of the first
// under the lease of the Take.
func besideHoldTwice(r *rig, f *Fault) {
	r.holdLane("source/elsewhere", time.Time{}, "")
	for _, q := range []core.Quota{r.quota(2), r.paced(2, time.Millisecond, time.Second)} {
		r.putMany(4)
		f.twice = true
		first := r.takeQuotas(q)
		f.twice = false
		r.equal("jobs taken", len(first), 2)
		r.settle(r.completed(append(first, r.take(2)...))...)
	}
}

// holdBetweenBeside is [holdBetween] while a source is held, which other claims are for.
func holdBetweenBeside(r *rig, f *Fault) {
	r.holdLane("source/elsewhere", time.Time{}, "")
	for claim, q := range map[string]core.Quota{"claim_sifted": r.quota(3), "claim_sifted_passed": r.paced(3, time.Millisecond, time.Second)} {
		for before := range 2 {
			r.putMany(before)
			f.justBefore(claim, func() {
				f.twice, f.between = true, func() {
					r.putMany(1)
					r.hold(time.Time{}, "")
				}
			})
			jobs := r.takeQuotas(q)
			f.twice = false
			r.equal("jobs taken", len(jobs), before)
			r.unhold(r.lane)
			r.now = r.now.Add(core.RampTime)
			r.settle(r.completed(append(jobs, r.take(1)...))...)
		}
	}
}

// forgetNumberMeanwhile holds a source again just before its number is forgotten, which happens a
// while after the hold before.
func forgetNumberMeanwhile(r *rig, f *Fault) {
	r.lane = "queue/mail"
	r.put()
	r.holdLane(shop, time.Time{}, "")
	r.unhold(shop)
	r.now = r.now.Add(time.Hour)
	f.justBefore("forget_number", func() { r.holdLane(shop, time.Time{}, "") })
	r.nothingDue()
	r.put()
	r.nothingDue()
	r.unhold(shop)
	r.take(2)
}

// reviveMeanwhile retries a job that stops its line just before another Retry changes it.
func reviveMeanwhile(r *rig, f *Fault) {
	some := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	f.justBefore("revive_holders", func() {
		r.equal("the first Retry", r.retry(some[0], ""), 1)
		r.endLined(r.takeLined(1, some[0])[0], core.Retryable, 1)
	})
	r.equal("the second Retry", r.retry(some[0], ""), 0)
	r.takeLined(1) // its backoff goes on
	r.wantStatus(core.Retryable, some[0])
}

// heldElsewhere checks that a Take of one process finds a source held that another process holds,
// with and without a Pass.
func heldElsewhere(r *rig) {
	const processes = 4 // at most
	r.put()
	r.settle(r.verdict(r.take(1)[0], core.Failure)) // so that the lane has a gate
	for _, quota := range []func() core.Quota{
		func() core.Quota { return r.quota(5) },
		func() core.Quota { return r.paced(5, time.Millisecond, time.Second) },
	} {
		r.now = r.now.Add(time.Hour)
		r.holdLane(shop, time.Time{}, "")
		for range processes {
			r.put()
			r.equal("Take of a process that did not see the hold", len(r.takeQuotas(quota())), 0)
		}
		r.unhold(shop)
		r.now = r.now.Add(time.Hour)
		for range processes {
			r.settle(r.completed(r.takeQuotas(quota()))...) // it sees that no source is held any more
		}
		r.nothingDue()
	}
}
