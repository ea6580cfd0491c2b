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

// Bounds of the checks of writes by /health. With them /health follows real work within five seconds,
// though the answer of a check is good for up to one.
const (
	// stuckAfter is how long calls of a kind may be under way without a success before a
	// rehearsal has to tell whether the database still does that work.
	stuckAfter = 1500 * time.Millisecond

	// rehearseTime is how long a rehearsal may take.
	rehearseTime = 1500 * time.Millisecond

	// strikes is how many different requests have to fail in a row for the kind to be failing
	// whatever a rehearsal says: a rehearsal is small, and may succeed where they do not.
	strikes = 3

	// strikeTime is how long strikes count without a further failure. Then a rehearsal decides,
	// so that a gateway which is sent nothing, because it is unhealthy, recovers.
	strikeTime = 3 * time.Second

	// evidenceRests is for how many rests a success proves that events are stored. A gateway
	// that gets no event rehearses this often, if it is asked for its health.
	evidenceRests = 30
)

// vitals is a store that knows whether the gateway's work on it succeeds. Each kind of work
// is judged by itself: real failures raise a doubt, which a real success of the same kind
// ends, or a rehearsal of that kind. So one request that the database refuses for itself
// makes no gateway unhealthy, and a gateway without requests recovers.
//
// A success of another kind proves nothing. A probe that wrote one row of its own did not see
// a full disk: the row had its page already.
type vitals struct {
	core.Store
	*pulses
	rest time.Duration // Deps.Rest
}

// pulses are what is known of each kind of work, in all gateways of a process.
type pulses struct {
	began                                  time.Time // the zero of the pulses' times
	intake, deliveries, transitions, turns pulse
	takes                                  pulse // a part of deliveries with failures of its own

	// rests is for how many rests of the worker a success proves that events are stored. It
	// is 1 for a function, whose other environments may have met failures meanwhile.
	rests int
}

func newPulses() *pulses {
	p := &pulses{began: time.Now(), rests: evidenceRests}
	for _, each := range p.all() {
		each.good.Store(int64(never))
	}
	return p
}

// never is before every pulse.
const never = -time.Duration(1 << 62)

func (p *pulses) all() []*pulse {
	return []*pulse{&p.intake, &p.takes, &p.deliveries, &p.transitions, &p.turns}
}

// now is the time since the process began.
func (p *pulses) now() time.Duration { return time.Since(p.began) }

// A pulse is how one kind of work goes. A success costs a look at the clock and some atomic
// operations.
type pulse struct {
	under   atomic.Int64 // calls under way
	entered atomic.Int64 // when a call began that found no other one
	good    atomic.Int64 // when the last success was, or the last rehearsal that succeeded
	doubt   atomic.Bool  // there were failures since

	mu       sync.Mutex // of the fields below, which a failure writes
	failed   time.Duration
	err      error
	culprits []string // different requests that failed since the last real success, up to strikes
}

func (p *pulse) begin(now time.Duration) {
	if p.under.Add(1) == 1 {
		p.entered.Store(int64(now))
	}
}

// end notes how a call ended. Culprit is what it was about.
func (p *pulse) end(now time.Duration, err error, culprit func() string) {
	p.under.Add(-1)
	switch {
	case err == nil:
		p.good.Store(int64(now))
		if p.doubt.Load() {
			p.clear()
		}
	case isFailure(err):
		p.fail(now, err, culprit())
	}
}

// isFailure tells whether an error may be about the database. An event that is too large is
// refused for itself, and a caller that lost interest gets no answer.
func isFailure(err error) bool {
	var r *core.Refusal
	return !errors.Is(err, context.Canceled) && (!errors.As(err, &r) || r.Kind == core.Unavailable)
}

// clear forgets failures: a request succeeded.
func (p *pulse) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.culprits, p.err = nil, nil
	p.doubt.Store(false)
}

// fail counts a request that was refused, unless the refusal is about the request alone.
func (p *pulse) fail(now time.Duration, err error, culprit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed, p.err = now, err
	if core.IsKind(err, core.Unavailable) && len(p.culprits) < strikes && !slices.Contains(p.culprits, culprit) {
		p.culprits = append(p.culprits, culprit)
	}
	p.doubt.Store(true)
}

// stuck tells whether calls are under way and none has succeeded for some time.
func (p *pulse) stuck(now time.Duration) bool {
	return p.under.Load() > 0 && now-time.Duration(max(p.entered.Load(), p.good.Load())) > stuckAfter
}

// doubtful tells whether there is a reason to rehearse.
func (p *pulse) doubtful(now time.Duration) bool { return p.doubt.Load() || p.stuck(now) }

// failing is why real work fails now, whatever a rehearsal would say; nil if a rehearsal may
// decide.
func (p *pulse) failing(now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.culprits) < strikes || now-p.failed > strikeTime {
		return nil
	}
	return fmt.Errorf("%d requests in a row failed: %w", strikes, p.err)
}

// proven notes that a rehearsal succeeded that began at a time. Failures since then stand.
func (p *pulse) proven(began, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed < began || p.err == nil {
		p.doubt.Store(false)
	}
	p.good.Store(int64(now))
}

// check reports why work on the database fails; nil if it does not. As long as work succeeds
// it costs nothing.
func (v *vitals) check(ctx context.Context) error {
	for _, k := range v.kinds() {
		if err := v.checkKind(ctx, k.pulse, k.work); err != nil {
			return err
		}
	}
	return nil
}

type kind struct {
	*pulse
	work core.Work
}

func (v *vitals) kinds() []kind {
	return []kind{{&v.intake, core.Intake}, {&v.takes, core.Deliveries}, {&v.deliveries, core.Deliveries},
		{&v.transitions, core.Transitions}, {&v.turns, core.Turns}}
}

func (v *vitals) checkKind(ctx context.Context, p *pulse, w core.Work) error {
	now := v.now()
	idle := p == &v.intake && now-time.Duration(p.good.Load()) > time.Duration(v.rests)*v.rest
	if !idle && !p.doubtful(now) {
		return nil
	}
	if err := p.failing(now); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rehearseTime)
	defer cancel()
	if err := v.Store.Rehearse(ctx, w); err != nil {
		return err
	}
	p.proven(now, v.now())
	return nil
}

// doubtful tells whether an answer of check from before may be wrong by now.
func (v *vitals) doubtful() bool {
	now := v.now()
	return slices.ContainsFunc(v.all(), func(p *pulse) bool { return p.doubtful(now) })
}

func (v *vitals) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	v.intake.begin(v.now())
	r, err := v.Store.Accept(ctx, a)
	v.intake.end(v.now(), err, func() string { return nameOf(a) })
	return r, err
}

func (v *vitals) AcceptAll(ctx context.Context, all []core.Arrival) ([]core.Receipt, error) {
	v.intake.begin(v.now())
	r, err := v.Store.AcceptAll(ctx, all)
	v.intake.end(v.now(), err, func() string {
		if len(all) == 0 {
			return ""
		}
		return nameOf(all[0])
	})
	return r, err
}

// nameOf is the same for an event that is sent again.
func nameOf(a core.Arrival) string {
	sum := sha256.Sum256(a.Event.Payload)
	return a.Event.Source + " " + a.Event.Type + " " + string(sum[:])
}

func (v *vitals) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	v.takes.begin(v.now())
	jobs, err := v.Store.Take(ctx, now, quotas)
	v.takes.end(v.now(), err, func() string { return fmt.Sprint(v.now()) }) // it is about no request
	return jobs, err
}

func (v *vitals) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	v.deliveries.begin(v.now())
	s, err := v.Store.Settle(ctx, outcomes...)
	v.deliveries.end(v.now(), err, func() string {
		if len(outcomes) == 0 {
			return ""
		}
		return string(outcomes[0].JobID)
	})
	return s, err
}

func (v *vitals) Transit(ctx context.Context, ts ...core.Transition) ([]bool, error) {
	v.transitions.begin(v.now())
	made, err := v.Store.Transit(ctx, ts...)
	v.transitions.end(v.now(), err, func() string {
		if len(ts) == 0 {
			return ""
		}
		return string(ts[0].Run.ID)
	})
	return made, err
}

func (v *vitals) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	v.turns.begin(v.now())
	mine, err := v.Store.Turn(ctx, now, name, hold)
	v.turns.end(v.now(), err, func() string { return name })
	return mine, err
}
