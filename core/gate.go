package core

import "time"

// The times and numbers of circuit breakers.
const (
	// BreakerThreshold is how many deliveries in a row must fail for a breaker to open,
	// unless its handler configures another number.
	BreakerThreshold = 5

	// BreakerCooldown is how long a breaker stays open before it lets one probe through,
	// unless its handler configures another time.
	BreakerCooldown = time.Minute

	// RampTime is for how long after a breaker closed deliveries start at a reduced rate.
	// The backlog of the breaker must not overload a handler that has only just recovered.
	RampTime = 10 * time.Second

	// rampStart is the distance between two starts right after a breaker closed. The
	// distance is halved each second.
	rampStart = 200 * time.Millisecond
)

// GateHorizon is the farthest that a gate's NextAt can be ahead of the present. It also
// bounds how far the clock of the process that closed a gate may be ahead of the reader's
// clock. A later time was written before the clock was set back, and is ignored.
const GateHorizon = 10 * time.Second

// StrayTime is how long jobs wait in a lane that no running configuration has, before the
// worker ends them. It is long enough for a deployment in steps, and for an operator to
// notice that a handler was removed by mistake.
const StrayTime = 24 * time.Hour

// A Gate stands between a lane and its workers: it is the circuit breaker and the rate
// limit of the lane's handler, and says whether a person holds the lane. It is stored beside
// the jobs. So it holds for every process and function of one database, and outlives them.
// The zero Gate is closed, which means that deliveries pass: its lane never had a failure.
type Gate struct {
	Failures  int       // deliveries in a row that failed; the breaker opens at [Breaker].Failures of them
	OpenUntil time.Time // while open: no job is taken before, one probe after; zero while closed
	ClosedAt  time.Time // when the breaker last closed; zero if it never opened
	OpenedAt  time.Time // when the breaker last opened, also after it closed; zero if it never did
	Openings  int       // how often the breaker opened; failed probes do not count
	NextAt    time.Time // when the rate limit allows the next start; to the microsecond

	// MovedBy is the job whose outcome opened or closed the breaker last. It is empty if a
	// probe has failed since, or if the breaker was closed without an outcome.
	MovedBy ID

	// HeldSince is when the lane's last hold began, zero once a person has ended it. HeldUntil
	// is when the hold ends, or ended; [NoEnd] if only a person can end it, and zero if the
	// lane was never held.
	HeldSince, HeldUntil time.Time
}

// NoEnd is the end of a hold that does not end by itself. It is the largest number of
// milliseconds that every database and JSON keep exactly.
var NoEnd = time.UnixMilli(1<<53 - 1).UTC()

// Held reports whether the lane is held at a time. No job is taken from it then.
func (g Gate) Held(now time.Time) bool { return g.HeldUntil.After(now) }

// Stopped reports whether the lane is held until a person ends it.
func (g Gate) Stopped() bool { return g.HeldUntil.Equal(NoEnd) }

// HoldEnd returns when the lane's hold ends by itself; zero if only a person can end it.
func (g Gate) HoldEnd() time.Time {
	if g.Stopped() {
		return time.Time{}
	}
	return g.HeldUntil
}

// Open reports whether the breaker is open. It is open also while a probe is due or under
// way. The present [Breaker] of the handler does not count: a breaker that opened stays
// open when its configured numbers change.
func (g Gate) Open() bool { return !g.OpenUntil.IsZero() }

// A Breaker is the configuration of a handler's circuit breaker. Each outcome carries the
// Breaker of the process that settles the outcome, and the store applies it to the gate
// then. A zero field means the default.
type Breaker struct {
	Failures int           // deliveries in a row that must fail to open it; default [BreakerThreshold]
	Cooldown time.Duration // from opening, or a failed probe, to the next probe; default [BreakerCooldown]
}

// Numbers returns b with the defaults in place of its zero fields.
func (b Breaker) Numbers() Breaker {
	if b.Failures <= 0 {
		b.Failures = BreakerThreshold
	}
	if b.Cooldown <= 0 {
		b.Cooldown = BreakerCooldown
	}
	return b
}

// ProbeAt returns when an open breaker lets the next probe through. No probe of the handler
// takes longer than pause. A stored time more than two pauses ahead was written before the
// clock was set back: the probe is due now.
func (g Gate) ProbeAt(now time.Time, pause time.Duration) time.Time {
	if g.OpenUntil.After(now.Add(2 * pause)) {
		return now
	}
	return g.OpenUntil
}

// StartAt returns when the rate limit allows the next start. It is never before now.
func (g Gate) StartAt(now time.Time) time.Time {
	if g.NextAt.Before(now) || g.NextAt.After(now.Add(GateHorizon)) {
		return now
	}
	return g.NextAt
}

// Ramp returns the distance between two starts in the [RampTime] after the breaker closed or
// a hold ended, and zero otherwise. A breaker that closed up to [GateHorizon] in the future
// has closed just now, by a clock that is ahead.
func (g Gate) Ramp(now time.Time) time.Duration {
	began := g.ClosedAt
	if !g.Held(now) && g.HeldUntil.After(began) {
		began = g.HeldUntil
	}
	since := now.Sub(began)
	if began.IsZero() || since < -GateHorizon || since >= RampTime {
		return 0
	}
	return rampStart >> int(max(since, 0)/time.Second)
}

// A Pass asks the gate of a lane to let through jobs that it would otherwise keep: jobs at
// a distance from each other, or one job as a probe.
type Pass struct {
	// Interval is the distance between the starts of the jobs: the rate limit, or the ramp
	// of a breaker that has closed. It is at least a microsecond, except for a probe.
	Interval time.Duration

	// Ahead is how far in the future the first of the jobs may start.
	Ahead time.Duration

	// Probe asks for the next probe of the handler, and is for how long no other caller
	// gets one. It is at least the cooldown of the [Breaker], and longer than a probe
	// takes. Zero asks for no probe.
	Probe time.Duration

	// Closed is the gate's ClosedAt as the worker knows it. If the breaker has opened and
	// closed since, the worker's knowledge is stale, and the gate lets nothing through.
	Closed time.Time
}

// A Verdict is the result of an attempt as its gate counts it.
type Verdict int

// The verdicts.
const (
	NoVerdict Verdict = iota // the handler was not called
	Success
	Failure
)

// An Outlook is the next due time of a lane and its gate.
type Outlook struct {
	DueAt time.Time // of its next job, regardless of its gate; zero if no job waits
	Gate  Gate
}

// A Hold is a lane that a person stopped: its jobs wait, also if they are due. If it is the
// lane of a source, the jobs of the source's events wait, in the lanes of all consumers.
type Hold struct {
	Lane   Lane
	Since  time.Time
	Until  time.Time // zero if it does not end by itself
	Reason string    // as the person gave it; may be empty
}
