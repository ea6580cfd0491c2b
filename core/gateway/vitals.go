package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Bounds of the checks of writes by /health. With them /health follows real work within
// five seconds, although the answer of a check is used for up to one second.
const (
	// stuckAfter is how long calls of a kind may be under way without a success. After that
	// a rehearsal decides whether the database still does that work.
	stuckAfter = 1500 * time.Millisecond

	// rehearseTime is how long a rehearsal may take.
	rehearseTime = 1500 * time.Millisecond

	// strikes is how many different requests must fail in a row for the kind to be failing,
	// even if a rehearsal succeeds: a rehearsal is small, and may succeed where real work
	// fails. Requests are different if they have no event, job or run in common: the database
	// may refuse a whole batch for one of its parts.
	strikes = 3

	// strikeTime is for how long strikes count without a further failure. Then a rehearsal
	// decides. So a gateway that gets no requests, because it is unhealthy, recovers.
	strikeTime = 3 * time.Second

	// evidenceRests is for how many rests a success proves that events are stored. A
	// gateway without events rehearses this often, if its health is requested.
	evidenceRests = 30
)

// vitals is a store that records whether the gateway's work on it succeeds. Each kind of
// work is judged by itself. Real failures raise a doubt, and a real success of the same
// kind, or a rehearsal of that kind, ends it. So one request that the database refuses for
// its own content does not make the gateway unhealthy, and a gateway without requests
// recovers.
//
// A success of another kind proves nothing. A probe that wrote one row of its own did not
// notice a full disk: the row had its page already.
type vitals struct {
	core.Store
	*pulses
	rest time.Duration // Deps.Rest
}

// pulses are the results of each kind of work, in all gateways of a process.
//
// They outlive a reload: a gateway that was unhealthy must not look healthy for a moment because
// its configuration changed.
type pulses struct {
	began                                  time.Time // the zero of the pulses' times
	intake, deliveries, transitions, turns pulse
	takes                                  pulse // a part of deliveries with failures of its own

	// rests is for how many rests of the worker a success proves that events are stored. It
	// is 1 for a function, whose other environments may have met failures meanwhile.
	rests int
}

// newPulses returns pulses without successes, so the first check of intake rehearses.
func newPulses() *pulses {
	p := &pulses{began: time.Now(), rests: evidenceRests}
	for _, each := range p.all() {
		each.good.Store(int64(never))
	}
	return p
}

// never is a time before every pulse.
const never = -time.Duration(1 << 62)

// all returns every pulse.
func (p *pulses) all() []*pulse {
	return []*pulse{&p.intake, &p.takes, &p.deliveries, &p.transitions, &p.turns}
}

// now returns the time since the process began.
func (p *pulses) now() time.Duration { return time.Since(p.began) }

// A pulse is the state of one kind of work. A success costs a reading of the clock and some
// atomic operations.
// So it costs little even at full load, where every commit passes through it.
type pulse struct {
	under   atomic.Int64 // calls under way
	entered atomic.Int64 // start of the first call under way
	good    atomic.Int64 // time of the last success, or of the last successful rehearsal
	doubt   atomic.Bool  // there were failures since

	mu       sync.Mutex // of the fields below, which a failure writes
	failed   time.Duration
	err      error
	culprits [][]string // different requests that failed since the last real success, up to strikes: the parts of each
}

// begin records the start of a call.
func (p *pulse) begin(now time.Duration) {
	if p.under.Add(1) == 1 {
		// Only the first of several calls sets the time: stuck asks for how long there was no
		// success while calls were under way.
		p.entered.Store(int64(now))
	}
}

// end records the result of a call. If the call failed, parts names its events, jobs or runs.
func (p *pulse) end(now time.Duration, err error, parts func() []string) {
	p.under.Add(-1)
	switch {
	// The common case writes one number, and takes the lock only after a failure.
	case err == nil:
		p.good.Store(int64(now))
		if p.doubt.Load() {
			p.clear()
		}
	case isFailure(err):
		p.fail(now, err, parts())
	}
}

// isFailure reports whether an error may be caused by the database. An event that is too
// large is refused for its size, and a canceled caller gets no answer.
func isFailure(err error) bool {
	var r *core.Refusal
	// A refusal is an answer of the store, except Unavailable, which is its word for trouble.
	return !errors.Is(err, context.Canceled) && (!errors.As(err, &r) || r.Kind == core.Unavailable)
}

// clear forgets failures after a request succeeded.
func (p *pulse) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.culprits, p.err = nil, nil
	p.doubt.Store(false)
}

// fail counts a failed request with these parts, unless the error is about that request alone,
// or the same part may be the cause of an earlier failure too.
func (p *pulse) fail(now time.Duration, err error, parts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed, p.err = now, err
	// One bad event, job or run may be in all the batches that failed. Then it is one strike.
	failedBefore := func(earlier []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(earlier, part) })
	}
	if core.IsKind(err, core.Unavailable) && len(p.culprits) < strikes && !slices.ContainsFunc(p.culprits, failedBefore) {
		p.culprits = append(p.culprits, parts)
	}
	p.doubt.Store(true)
}

// stuck reports whether calls are under way and none has succeeded for some time.
func (p *pulse) stuck(now time.Duration) bool {
	return p.under.Load() > 0 && now-time.Duration(max(p.entered.Load(), p.good.Load())) > stuckAfter
}

// doubtful reports whether there is a reason to rehearse.
func (p *pulse) doubtful(now time.Duration) bool { return p.doubt.Load() || p.stuck(now) }

// failing returns why real work fails now, even if a rehearsal would succeed; nil if a
// rehearsal may decide.
func (p *pulse) failing(now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Too few failures, or too old ones: a rehearsal may decide.
	if len(p.culprits) < strikes || now-p.failed > strikeTime {
		return nil
	}
	return fmt.Errorf("%d requests in a row failed: %w", strikes, p.err)
}

// proven records a successful rehearsal. Failures after its beginning still count.
func (p *pulse) proven(began, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A real failure during the rehearsal is newer evidence than its success.
	if p.failed < began || p.err == nil {
		p.doubt.Store(false)
	}
	p.good.Store(int64(now))
}

// check returns why work on the database fails; nil if it does not. While work succeeds it
// sends no queries.
// The first kind of work that fails decides, so /health makes at most one failing rehearsal.
func (v *vitals) check(ctx context.Context) error {
	for _, k := range v.kinds() {
		if err := v.checkKind(ctx, k.pulse, k.work); err != nil {
			return err
		}
	}
	return nil
}

// A kind is a pulse with the work that stands for it in a rehearsal.
type kind struct {
	*pulse
	work core.Work
}

// kinds returns each pulse with the work that its rehearsal tries. Takes have a pulse of their
// own and share the rehearsal of deliveries.
func (v *vitals) kinds() []kind {
	return []kind{{&v.intake, core.Intake}, {&v.takes, core.Deliveries}, {&v.deliveries, core.Deliveries},
		{&v.transitions, core.Transitions}, {&v.turns, core.Turns}}
}

// checkKind returns why one kind of work fails, or nil. It rehearses if there is a doubt, or,
// for intake, if no event was stored for too long.
func (v *vitals) checkKind(ctx context.Context, p *pulse, w core.Work) error {
	now := v.now()
	// Only intake is rehearsed without a doubt: takes happen all the time, but a gateway may get no
	// event for hours.
	idle := p == &v.intake && now-time.Duration(p.good.Load()) > time.Duration(v.rests)*v.rest
	// The usual way: no lock and no query.
	if !idle && !p.doubtful(now) {
		return nil
	}
	if err := p.failing(now); err != nil {
		return err
	}
	// A rehearsal writes rows of its own, and deletes them in the same commit.
	ctx, cancel := context.WithTimeout(ctx, rehearseTime)
	defer cancel()
	if err := v.Store.Rehearse(ctx, w); err != nil {
		return err
	}
	p.proven(now, v.now())
	return nil
}

// doubtful reports whether an earlier answer of check may be wrong by now.
func (v *vitals) doubtful() bool {
	now := v.now()
	return slices.ContainsFunc(v.all(), func(p *pulse) bool { return p.doubtful(now) })
}

// Accept stores an event and records the result for the health of intake.
func (v *vitals) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	v.intake.begin(v.now())
	r, err := v.Store.Accept(ctx, a)
	v.intake.end(v.now(), err, func() []string { return []string{nameOf(a)} })
	return r, err
}

// AcceptAndTake stores an event, takes jobs of it, and records the result for the health of intake.
func (v *vitals) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	v.intake.begin(v.now())
	r, taken, err := v.Store.AcceptAndTake(ctx, now, a, holds)
	v.intake.end(v.now(), err, func() []string { return []string{nameOf(a)} })
	return r, taken, err
}

// AcceptAll stores events and records the result for the health of intake.
func (v *vitals) AcceptAll(ctx context.Context, all []core.Arrival) ([]core.Receipt, error) {
	v.intake.begin(v.now())
	r, err := v.Store.AcceptAll(ctx, all)
	v.intake.end(v.now(), err, func() []string { return namesOf(all, nameOf) })
	return r, err
}

// namesOf returns the names of the parts of a request, each by name.
func namesOf[T any](parts []T, name func(T) string) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = name(p)
	}
	return names
}

// nameOf returns the same name for an event that is sent again.
func nameOf(a core.Arrival) string {
	// The event's id does not serve: each time a sender repeats an event, intake makes a new id.
	sum := sha256.Sum256(a.Event.Payload)
	return a.Event.Source + " " + a.Event.Type + " " + string(sum[:])
}

// Take takes jobs and records the result. Each failed Take counts as a different request.
func (v *vitals) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	v.takes.begin(v.now())
	jobs, err := v.Store.Take(ctx, now, quotas)
	v.takes.end(v.now(), err, func() []string { return nil }) // it has no parts that the database could refuse
	return jobs, err
}

// Settle stores outcomes and records the result.
func (v *vitals) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	v.deliveries.begin(v.now())
	s, err := v.Store.Settle(ctx, outcomes...)
	v.deliveries.end(v.now(), err, func() []string {
		return namesOf(outcomes, func(o core.Outcome) string { return string(o.JobID) })
	})
	return s, err
}

// Transit stores transitions and records the result.
func (v *vitals) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	v.transitions.begin(v.now())
	made, err := v.Store.Transit(ctx, ts...)
	v.transitions.end(v.now(), err, func() []string {
		return namesOf(ts, func(t core.Transition) string { return string(t.Run.ID) })
	})
	return made, err
}

// Turn asks for a turn and records the result.
func (v *vitals) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	v.turns.begin(v.now())
	won, err := v.Store.Turn(ctx, now, name, hold)
	v.turns.end(v.now(), err, func() []string { return []string{name} })
	return won, err
}
