package worker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A tick knows the gates of its lanes as the store told them last. What it knows may
// be out of date, as other processes move them: then the store lets it take nothing,
// and it looks again. It never decides by what it knows that something may pass.

// Bounds of the grain.
const (
	minGrain = 100 * time.Millisecond
	maxGrain = 2 * time.Second
)

// grainOf is for how long ahead jobs are taken from a lane whose starts are kept apart:
// so often must a taker come back, however many may pass.
func grainOf(b core.Budget) time.Duration {
	if b.Rest == 0 {
		return minGrain
	}
	return min(max(b.Rest/5, minGrain), maxGrain)
}

// ahead is how far from now the first of them may start. Coming back at half time
// leaves no gap.
func (t *tick) ahead() time.Duration { return t.grain / 2 }

// learn notes gates as the store left them when it wrote.
func (t *tick) learn(gates map[core.Lane]core.Gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lessons++
	for l, g := range gates {
		t.gates[l], t.learned[l] = g, t.lessons
	}
}

// lesson is the number of the newest call of learn.
func (t *tick) lesson() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lessons
}

// sight notes gates as a look read them that began after the lesson with the given number.
// It leaves out gates that were learned since: the look may have read them before the
// write, and then would take back failures that are counted nowhere else.
func (t *tick) sight(gates map[core.Lane]core.Gate, lesson int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l, g := range gates {
		if t.learned[l] <= lesson {
			t.gates[l] = g
		}
	}
}

func (t *tick) gate(l core.Lane) core.Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gates[l]
}

// suspended reports whether the breaker of a lane is open, or will be once the
// outcomes that wait are stored.
func (t *tick) suspended(l core.Lane) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, b := t.gates[l], t.target(l).Breaker
	return g.Open() || b != nil && g.Failures+t.failing[l] >= b.Numbers().Failures
}

// verdict is what a reply tells of its handler.
func (b *Breaker) verdict(r Reply, probe bool) core.Verdict {
	class := classOf(r)
	answered := class == core.Class4xx || class == core.Class5xx
	switch {
	case r.Unsent:
		return core.NoVerdict
	case r.OK:
		return core.Success
	case len(b.Counts) == 0 || slices.Contains(b.Counts, class):
		return core.Failure
	case answered:
		return core.Success
	case probe:
		return core.Failure
	}
	return core.NoVerdict
}

// classOf is the class of a failure. Over gRPC there is no status code of HTTP: the codes
// that tell of the receiver's own trouble are 5xx.
func classOf(r Reply) core.ErrorClass {
	word, detail, _ := strings.Cut(r.Error, ": ")
	code, _, _ := strings.Cut(detail, ":")
	switch {
	case word == "timeout":
		return core.ClassTimeout
	case word != "status":
		return core.ClassNetwork
	case r.StatusCode >= 500 && r.StatusCode <= 599, r.StatusCode == 0 && slices.Contains(ownTrouble, code):
		return core.Class5xx
	}
	return core.Class4xx
}

// ownTrouble are the codes of gRPC that stand for 5xx of HTTP (google/rpc/code.proto).
var ownTrouble = []string{"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}

// closeUnused closes the breakers that stand before lanes without one, and learns how their
// gates stand then. The failures of such a lane are set back too: should it have a breaker
// again, that counts from zero.
func (t *tick) closeUnused(ctx context.Context, gates map[core.Lane]core.Gate) {
	var unused []core.Lane
	for l, g := range gates {
		if g.Failures > 0 && t.target(l).Breaker == nil {
			unused = append(unused, l)
		}
	}
	if len(unused) == 0 {
		return
	}
	now := t.Clock()
	closed, err := t.Worklist.CloseBreakers(ctx, now, unused...)
	if err != nil {
		t.Observe(core.Troubled{Doing: "close breakers", Err: err})
		return
	}
	closedGates := make(map[core.Lane]core.Gate, len(unused))
	for _, l := range unused {
		g := core.Gate{ClosedAt: gates[l].ClosedAt, NextAt: gates[l].NextAt}
		if slices.Contains(closed, l) {
			g.ClosedAt = time.UnixMilli(now.UnixMilli()).UTC()
			t.Observe(core.BreakerMoved{Lane: l, Gate: g})
		}
		closedGates[l] = g
	}
	t.learn(closedGates)
}

// tally counts what an outcome will do to a gate, until it is stored.
func (t *tick) tally(o core.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o.Verdict {
	case core.Success:
		delete(t.failing, o.Lane)
		if g := t.gates[o.Lane]; !g.Open() {
			g.Failures = 0
			t.gates[o.Lane] = g
		}
	case core.Failure:
		t.failing[o.Lane]++
	}
}

// counted forgets outcomes that were tallied: the store has them.
func (t *tick) counted(batch []settlement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range batch {
		if l := s.job.Lane; s.outcome.Verdict == core.Failure && t.failing[l] > 0 {
			t.failing[l]--
		}
	}
}

// interval is how far apart the starts of a lane must be; zero if they need not be.
func (t *tick) interval(l core.Lane, now time.Time) time.Duration {
	return max(t.target(l).Interval, t.gate(l).Ramp(now))
}

// passable is when the gate of a lane may let something through: now, or later.
func (t *tick) passable(l core.Lane, now time.Time) time.Time {
	g := t.gate(l)
	switch {
	case g.Open():
		return g.ProbeAt(now, t.target(l).pause())
	case t.suspended(l):
		return now.Add(doubt) // the settler will tell
	case t.interval(l, now) > 0:
		return g.StartAt(now).Add(-t.ahead())
	}
	return now
}

// opensAt is when a gate may let something through that stands so: now or before, or later.
func (to Target) opensAt(g core.Gate, now time.Time) time.Time {
	switch {
	case g.Open():
		return g.ProbeAt(now, to.pause())
	case max(to.Interval, g.Ramp(now)) > 0:
		return g.StartAt(now)
	}
	return time.Time{}
}

// pass is what to show at the gate of a lane, and how many jobs to ask for with it:
// as many as start within a grain. Without a pass there is no such bound.
func (t *tick) pass(l core.Lane, now time.Time) (p *core.Pass, most int) {
	g, interval := t.gate(l), t.interval(l, now)
	switch {
	case g.Open():
		return &core.Pass{Probe: t.target(l).pause(), Closed: g.ClosedAt}, 1
	case interval > 0:
		return &core.Pass{Interval: interval, Ahead: t.ahead(), Closed: g.ClosedAt}, max(1, int(t.grain/interval))
	}
	return nil, t.limits.Batch
}

// passed notes what became of a gate by a quota with a pass.
func (t *tick) passed(q core.Quota, last core.TakenJob, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gates[q.Lane]
	if q.Pass.Probe > 0 {
		g.OpenUntil = now.Add(q.Pass.Probe)
	} else {
		g.NextAt = last.StartAt.Add(q.Pass.Interval)
	}
	t.gates[q.Lane] = g
}

// pause is how long a probe may take.
func (t Target) pause() time.Duration {
	cooldown := core.BreakerCooldown
	if t.Breaker != nil {
		cooldown = t.Breaker.Numbers().Cooldown
	}
	return max(cooldown, t.Timeout+probeGrace)
}

// probeGrace is how much longer than the attempt a probe has until its outcome must
// be stored.
const probeGrace = 15 * time.Second
