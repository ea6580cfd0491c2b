package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// The checks of strays: lanes with jobs whose consumer is in no running configuration. gates.go
// lists them. If a stray were not found, its jobs would wait for ever. If its gate were reset too
// early, a process with an older configuration would close a breaker that others need.

// Strays returns the lanes that have unfinished jobs and are not among the known lanes, with the
// time of the call that first found them. A running job makes its lane a stray, a finished job
// does not.
func straysFound(r *rig) {
	r.equal("Strays of an empty store", len(r.strays()), 0)
	r.accepted(r.arrival("handler/a", "handler/b", "alert/c", "handler/b"))
	r.settled(core.Completed)
	r.settled(core.Dead)
	since := r.now
	for range 3 {
		r.equal("Strays", r.strays("handler/a", "handler/none"), map[core.Lane]time.Time{"handler/b": since, "alert/c": since})
		r.now = r.now.Add(time.Minute)
	}
	r.accepted(r.arrival("handler/z"))
	r.equal("Strays once more", r.strays("handler/a"), map[core.Lane]time.Time{"handler/b": since, "alert/c": since, "handler/z": r.now})
	r.takeQuotas(core.Quota{Lane: "handler/b", N: 9, Hold: leaseTime})
	r.equal("Strays with a running one", r.strays("handler/a", "handler/z", "alert/c"), map[core.Lane]time.Time{"handler/b": since})
}

// The search skips known lanes in the order of their names. Each subset of eight lanes is tried,
// with names that begin with one another and names that are not ASCII.
func straysBetween(r *rig) {
	all := []core.Lane{"", "alert/a", "handler/a", "handler/aa", "handler/b", "handler/ä", "handler/😀", "x"}
	r.accepted(r.arrival(all[1:]...))
	for n := range 1 << len(all) {
		if r.slow && n%37 != 0 {
			continue
		}
		var known []core.Lane
		want := map[core.Lane]time.Time{}
		for i, l := range all {
			if n&(1<<i) != 0 {
				known = append([]core.Lane{l, l}, known...)
			} else if l != "" {
				want[l] = r.now
			}
		}
		r.equal("Strays", r.strays(known...), want)
		r.strays(all...)
	}
}

// straysSetBack checks that jobs behind an open breaker may be taken once their lane has been a
// stray for core.StrayTime.
func straysSetBack(r *rig) {
	r.accepted(r.arrival("handler/known"))
	r.openBreaker()
	since := r.now
	r.strays("handler/known")
	open := r.gate()
	for r.now = since.Add(core.StrayTime - time.Millisecond); !r.now.After(since.Add(core.StrayTime + time.Millisecond)); r.now = r.now.Add(time.Millisecond) {
		r.equal("Strays", r.strays("handler/known"), map[core.Lane]time.Time{r.lane: since})
		if r.now.Before(since.Add(core.StrayTime)) {
			r.wantGate("of a stray for less than StrayTime", open)
		} else {
			r.wantGate("of a stray for StrayTime", core.Gate{})
		}
	}
	r.take(core.BreakerThreshold)
}

// straysStay checks that a process with an older configuration does not close a breaker.
func straysStay(r *rig) {
	r.accepted(r.arrival("handler/known"))
	r.openBreaker()
	open := r.gate()
	r.strays(r.lane, "handler/known")
	r.wantGate("of a lane that is known", open)
	for range 2 {
		r.strays("handler/known")
		r.wantGate("of a stray", open)
		r.now = r.now.Add(time.Minute)
	}
	r.strays(r.lane, "handler/known")
	r.now = r.now.Add(core.StrayTime)
	r.strays("handler/known")
	r.wantGate("of a lane that was known in between", open)
}

// A lane that is known for a moment is new when it becomes a stray again.
func straysKnown(r *rig) {
	r.put()
	r.equal("Strays", r.strays(), map[core.Lane]time.Time{r.lane: r.now})
	r.now = r.now.Add(time.Minute)
	r.equal("Strays of none", len(r.strays(r.lane)), 0)
	r.now = r.now.Add(time.Minute)
	r.equal("Strays when it is unknown again", r.strays(), map[core.Lane]time.Time{r.lane: r.now})
}
