package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A gateView is a tick's view of the gates of its lanes. It has the gates as the store last
// reported them, plus the outcomes that wait for the settler. Other processes move gates too,
// so the view may be stale. It may only close a lane. The store alone decides that a job may
// start.
//
// The feeder, the slots and the settler all read it, and mu guards the maps.
type gateView struct {
	roster     *roster
	claimAhead time.Duration // for how long ahead jobs are claimed from a lane with an interval
	batch      int           // the most jobs of one claim

	mu      sync.Mutex
	gates   map[core.Lane]core.Gate
	version int               // how often learn was called
	learned map[core.Lane]int // the version in which a gate was learned; 0 if it was not
	failing map[core.Lane]int // deliveries in a row that failed and are not stored
}

// newGateView makes a view that knows no gate yet. A lane whose gate is not known lets jobs
// through.
func newGateView(r *roster, claimAhead time.Duration, batch int) *gateView {
	return &gateView{roster: r, claimAhead: claimAhead, batch: batch,
		gates: map[core.Lane]core.Gate{}, learned: map[core.Lane]int{}, failing: map[core.Lane]int{}}
}

// Bounds of claimAhead.
const (
	minClaimAhead = 100 * time.Millisecond
	maxClaimAhead = 2 * time.Second
)

// claimAhead returns for how long ahead jobs are claimed from a lane whose starts are kept
// apart. The feeder claims again after this long, however high the rate.
func claimAhead(b core.Budget) time.Duration {
	if b.Rest == 0 {
		return minClaimAhead
	}
	return min(max(b.Rest/5, minClaimAhead), maxClaimAhead)
}

// ahead returns how far from now the first of the claimed jobs may start. A claim at half
// time leaves no gap.
func (v *gateView) ahead() time.Duration { return v.claimAhead / 2 }

// learn notes gates as the store left them when it wrote.
func (v *gateView) learn(gates map[core.Lane]core.Gate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version++
	for l, g := range gates {
		v.gates[l], v.learned[l] = g, v.version
	}
}

// now returns the number of the newest call of learn.
func (v *gateView) now() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.version
}

// looked notes the gates that a look read. The look began at the given version, and asked about the
// given lanes, which are sorted. A lane without an outlook has no gate. Gates that were learned since
// stay: the look may have read them before the write, and would then take back failures that are
// counted nowhere else.
func (v *gateView) looked(asked []core.Lane, outlooks map[core.Lane]core.Outlook, version int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for l := range v.gates {
		_, found := outlooks[l]
		if _, wasAsked := slices.BinarySearch(asked, l); wasAsked && !found && v.learned[l] <= version {
			delete(v.gates, l)
		}
	}
	for l, o := range outlooks {
		if v.learned[l] <= version {
			v.gates[l] = o.Gate
		}
	}
}

// gate returns the last known gate of a lane, or the zero Gate, which lets jobs through.
func (v *gateView) gate(l core.Lane) core.Gate {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gates[l]
}

// breakerOpen reports whether the breaker of a lane is open, or will be once the outcomes
// that wait are stored.
func (v *gateView) breakerOpen(l core.Lane) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	g, b := v.gates[l], v.roster.target(l).Breaker
	return g.Open() || b != nil && g.Failures+v.failing[l] >= b.Numbers().Failures
}

// countPending counts the effect of an outcome on its gate until the outcome is stored.
func (v *gateView) countPending(o core.Outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o.Verdict {
	case core.Success:
		// A success ends the row of failures, including failures that are not stored yet. An open
		// breaker closes only when the store has the outcome of its probe.
		delete(v.failing, o.Lane)
		if g := v.gates[o.Lane]; !g.Open() {
			g.Failures = 0
			v.gates[o.Lane] = g
		}
	case core.Failure:
		v.failing[o.Lane]++
	}
}

// stored drops counts of countPending: the store has the outcomes.
func (v *gateView) stored(batch []settlement) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range batch {
		if l := s.job.Lane; s.outcome.Verdict == core.Failure && v.failing[l] > 0 {
			v.failing[l]--
		}
	}
}

// interval returns how far apart the starts of a lane must be; zero if they need not be.
func (v *gateView) interval(l core.Lane, now time.Time) time.Duration {
	return max(v.roster.target(l).Interval, v.gate(l).Ramp(now))
}

// opensAt returns when the gate of a lane may let a job through: now, or later.
func (v *gateView) opensAt(l core.Lane, now time.Time) time.Time {
	g := v.gate(l)
	switch {
	case g.Held(now):
		return g.HeldUntil
	case g.Open():
		// An open breaker lets one probe of all processes through when its cooldown is over.
		return g.ProbeAt(now, v.roster.target(l).pause())
	case v.breakerOpen(l):
		return now.Add(doubt) // the settler learns how the store decides
	case v.interval(l, now) > 0:
		return g.StartAt(now).Add(-v.ahead())
	}
	return now
}

// opensAt returns when a gate in this state may let a job through. The zero time is now.
func (to Target) opensAt(g core.Gate, now time.Time) time.Time {
	switch {
	case g.Held(now):
		return g.HeldUntil
	case g.Open():
		return g.ProbeAt(now, to.pause())
	case max(to.Interval, g.Ramp(now)) > 0:
		return g.StartAt(now)
	}
	return time.Time{}
}

// pass returns the pass with which to claim from a lane, and how many jobs to claim with it:
// as many as start within claimAhead. Without a pass a whole batch may be claimed.
func (v *gateView) pass(l core.Lane, now time.Time) (p *core.Pass, most int) {
	g, interval := v.gate(l), v.interval(l, now)
	switch {
	case g.Open():
		return &core.Pass{Probe: v.roster.target(l).pause(), Closed: g.ClosedAt}, 1
	case interval > 0:
		return &core.Pass{Interval: interval, Ahead: v.ahead(), Closed: g.ClosedAt}, max(1, int(v.claimAhead/interval))
	}
	return nil, v.batch
}

// passed notes how a claim with a pass has moved a gate. last is the last job of the claim. The
// store wrote the same, so the view needs no look to know it.
func (v *gateView) passed(q core.Quota, last core.TakenJob, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := v.gates[q.Lane]
	// The claim was for a probe: other probes wait for its outcome. Otherwise the gate has given
	// out starts, the last of them to this job.
	if q.Pass.Probe > 0 {
		g.OpenUntil = now.Add(q.Pass.Probe)
	} else {
		g.NextAt = last.StartAt.Add(q.Pass.Interval)
	}
	v.gates[q.Lane] = g
}

// pause returns how long a probe may take.
func (t Target) pause() time.Duration {
	cooldown := core.BreakerCooldown
	if t.Breaker != nil {
		cooldown = t.Breaker.Numbers().Cooldown
	}
	return max(cooldown, t.Timeout+probeGrace)
}

// probeGrace is how much longer than its attempt a probe has until its outcome must be
// stored.
const probeGrace = 15 * time.Second
