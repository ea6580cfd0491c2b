package core

import "time"

// What moves a circuit breaker.
const (
	// BreakerThreshold is how many deliveries in a row must fail for a breaker to open,
	// unless its handler has a number of its own.
	BreakerThreshold = 5

	// BreakerCooldown is how long a breaker stays open before one probe is let through,
	// unless its handler has a time of its own.
	BreakerCooldown = time.Minute

	// RampTime is how long after it closed deliveries are let through slower than
	// they come: what piled up behind it must not fall on a handler that has only
	// just recovered.
	RampTime = 10 * time.Second

	// rampStart is how far apart deliveries are when it has just closed. The distance
	// is halved each second.
	rampStart = 200 * time.Millisecond
)

// GateHorizon is how far ahead of the present a gate's NextAt can come to be, and by how
// much the clock of whoever closed it may be ahead of one's own. A time that is further
// away was written before the clock was set back, and counts for nothing.
const GateHorizon = 10 * time.Second

// StrayTime is how long jobs wait in a lane that nobody knows before they are ended:
// long enough for a deployment in steps, or for a handler that was taken out by mistake.
const StrayTime = 24 * time.Hour

// A Gate is what stands between a lane and its takers: the circuit breaker and the
// rate limit of its handler. It is kept beside the jobs, so that it holds for every
// process and function of one database, and outlives them. The zero Gate is that of
// a lane that never had trouble: closed, which means that deliveries pass.
type Gate struct {
	Failures  int       // deliveries in a row that failed; as many as the [Breaker] says open it
	OpenUntil time.Time // while open: nothing is taken before, one probe after; zero while closed
	ClosedAt  time.Time // when the breaker last closed; zero if it never opened
	NextAt    time.Time // when the rate limit allows the next start; to the microsecond

	// MovedBy is the job whose outcome opened or closed the breaker last. It is empty if a
	// probe has failed since, or if the breaker was closed without an outcome.
	MovedBy ID
}

// Open reports whether the breaker is open, be it that a probe is due or under way. It asks
// for no number: a breaker that opened stays open when the numbers of its handler change.
func (g Gate) Open() bool { return !g.OpenUntil.IsZero() }

// A Breaker is the numbers of a handler's circuit breaker. An outcome carries those of the
// process that settles it, and the store applies them to the gate then. A zero field stands
// for the default.
type Breaker struct {
	Failures int           // deliveries in a row that must fail to open it; default [BreakerThreshold]
	Cooldown time.Duration // from opening, or a failed probe, to the next probe; default [BreakerCooldown]
}

// Numbers are those of b, with the defaults for the fields that b leaves out.
func (b Breaker) Numbers() Breaker {
	if b.Failures <= 0 {
		b.Failures = BreakerThreshold
	}
	if b.Cooldown <= 0 {
		b.Cooldown = BreakerCooldown
	}
	return b
}

// ProbeAt is when an open breaker lets the next probe through, of a handler whose
// probes take no longer than pause. A time that is further away than two pauses was
// written before the clock was set back: the probe is due now.
func (g Gate) ProbeAt(now time.Time, pause time.Duration) time.Time {
	if g.OpenUntil.After(now.Add(2 * pause)) {
		return now
	}
	return g.OpenUntil
}

// StartAt is when the rate limit allows the next start: not before now.
func (g Gate) StartAt(now time.Time) time.Time {
	if g.NextAt.Before(now) || g.NextAt.After(now.Add(GateHorizon)) {
		return now
	}
	return g.NextAt
}

// Ramp is how far apart starts must be for having closed a short while ago; zero if
// that is long past. A gate that closes in the future, though within [GateHorizon],
// has closed just now by a clock that is ahead.
func (g Gate) Ramp(now time.Time) time.Duration {
	since := now.Sub(g.ClosedAt)
	if g.ClosedAt.IsZero() || since < -GateHorizon || since >= RampTime {
		return 0
	}
	return rampStart >> int(max(since, 0)/time.Second)
}

// A Pass asks the gate of a lane to let jobs through that it would otherwise keep:
// one after the other, or one as a probe.
type Pass struct {
	// Interval is how far apart the jobs are to start: the rate limit, or the ramp of
	// a breaker that has closed; at least a microsecond unless it is for a probe.
	Interval time.Duration

	// Ahead is how far in the future the first of them may start.
	Ahead time.Duration

	// Probe asks for being the one that tries whether the handler has recovered, and
	// is how long no other caller may: at least the cooldown of the [Breaker], and longer than a
	// probe takes. Zero asks for no probe.
	Probe time.Duration

	// Closed is the gate's ClosedAt as the taker knows it. If the breaker has opened
	// and closed since, it knows too little to be let through.
	Closed time.Time
}

// A Verdict is what an attempt tells about its handler.
type Verdict int

// The verdicts.
const (
	NoVerdict Verdict = iota // the handler was not asked
	Success
	Failure
)

// An Outlook is what a lane promises a taker.
type Outlook struct {
	DueAt time.Time // of its next job, whatever its gate says; zero if nothing waits
	Gate  Gate
}
