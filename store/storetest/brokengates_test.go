package storetest

import (
	"context"
	"maps"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Stores that break one sentence about gates each. broken_test.go lists them.

// takesShut ignores gates in a Take without a probe.
type takesShut struct{ *Model }

func (s takesShut) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for i, q := range quotas {
		if q.Pass != nil && q.Pass.Probe > 0 {
			return s.Model.Take(ctx, now, quotas)
		}
		quotas[i].Pass = nil
	}
	gates := s.gates
	s.gates = map[core.Lane]*gate{}
	defer func() { s.gates = gates }()
	return s.Model.Take(ctx, now, quotas)
}

// startsAll lets all taken jobs start now.
type startsAll struct{ *Model }

func (s startsAll) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	got, err := s.Model.Take(ctx, now, quotas)
	for i := range got {
		got[i].StartAt = now
	}
	return got, err
}

// startsNone moves the time of the next start, although it took no job.
type startsNone struct{ *Model }

func (s startsNone) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	got, err := s.Model.Take(ctx, now, quotas)
	for _, q := range quotas {
		if g := s.gate(q.Lane); q.Pass != nil && len(got) == 0 {
			g.NextAt = g.StartAt(now)
		}
	}
	return got, err
}

// probesAll permits the next probe immediately after a probe was taken.
type probesAll struct{ *Model }

func (s probesAll) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	got, err := s.Model.Take(ctx, now, quotas)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range got {
		if j.Probe {
			s.gate(j.Lane).OpenUntil = now
		}
	}
	return got, err
}

// judgesLost lets lost outcomes move gates and raise alerts.
type judgesLost struct{ *Model }

func (s judgesLost) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for _, o := range outcomes {
		if _, held := s.holds(o.JobID, o.Lease); !held {
			s.applyVerdict(o)
			s.storeArrival(o.GivesRise)
		}
	}
	return s.Model.Settle(ctx, outcomes...)
}

// judgesAll treats each outcome as the outcome of the newest probe.
type judgesAll struct{ *Model }

func (s judgesAll) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for _, o := range outcomes {
		s.gate(o.Lane).taker = o.Lease
		if _, held := s.holds(o.JobID, o.Lease); !held {
			s.applyVerdict(o)
		}
	}
	return s.Model.Settle(ctx, outcomes...)
}

// releasesJobs forgets which probe is the newest, so a release does not free its place.
type releasesJobs struct{ *Model }

func (s releasesJobs) Release(ctx context.Context, due time.Time, jobs ...core.Job) error {
	for _, j := range jobs {
		s.gate(j.Lane).taker = ""
	}
	return s.Model.Release(ctx, due, jobs...)
}

// straysAnew reports each stray as new.
type straysAnew struct{ *Model }

func (s straysAnew) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	clear(s.strays)
	return s.Model.Strays(ctx, now, known)
}

// straysKept keeps the time since when a lane is a stray, although the lane was known in the
// meantime.
type straysKept struct{ *Model }

func (s straysKept) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	before := s.strays
	s.strays = map[core.Lane]time.Time{}
	found, err := s.Model.Strays(ctx, now, known)
	for l, since := range before {
		s.strays[l] = since
		if _, stray := found[l]; stray {
			found[l] = since
		}
	}
	return found, err
}

// straysClose resets the gate of a lane as soon as it is a stray.
type straysClose struct{ *Model }

func (s straysClose) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	found, err := s.Model.Strays(ctx, now, known)
	for l := range found {
		delete(s.gates, l)
	}
	return found, err
}

// straysLeave never resets the gates of strays.
type straysLeave struct{ *Model }

func (s straysLeave) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	gates := maps.Clone(s.gates)
	found, err := s.Model.Strays(ctx, now, known)
	s.gates = gates
	return found, err
}

// retriesStrays does not begin the time of strays anew after a Retry.
type retriesStrays struct{ *Model }

func (s retriesStrays) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	strays := maps.Clone(s.strays)
	n, err := s.Model.Retry(ctx, now, id, lane)
	s.strays = strays
	return n, err
}

// takesAhead treats a ramp as over if a faster clock began it.
type takesAhead struct{ *Model }

func (s takesAhead) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for _, q := range quotas {
		if g := s.gate(q.Lane); g.ClosedAt.After(now) {
			g.ClosedAt = now.Add(-core.RampTime)
		}
	}
	return s.Model.Take(ctx, now, quotas)
}

// closesAbruptly closes breakers without a ramp.
type closesAbruptly struct{ *Model }

func (s closesAbruptly) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	closed, err := s.Model.CloseBreakers(ctx, now, lanes...)
	for _, l := range closed {
		s.gate(l).ClosedAt = time.Time{}
	}
	return closed, err
}

// closesAll returns all lanes that it is given.
type closesAll struct{ *Model }

func (s closesAll) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	_, err := s.Model.CloseBreakers(ctx, now, lanes...)
	return lanes, err
}

// judgesByDefault uses the default threshold and cooldown for each handler.
type judgesByDefault struct{ *Model }

func (s judgesByDefault) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for i := range outcomes {
		outcomes[i].Breaker = core.Breaker{}
	}
	return s.Model.Settle(ctx, outcomes...)
}

// takesHeld takes from held lanes as from others.
type takesHeld struct{ *Model }

func (s takesHeld) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for _, q := range quotas {
		s.gate(q.Lane).HeldUntil = time.Time{}
	}
	return s.Model.Take(ctx, now, quotas)
}

// holdsAfresh forgets since when a lane is held.
type holdsAfresh struct{ *Model }

func (s holdsAfresh) Hold(ctx context.Context, now time.Time, lane core.Lane, until time.Time, reason string) error {
	s.gate(lane).HeldUntil = time.Time{}
	return s.Model.Hold(ctx, now, lane, until, reason)
}

// unholdsAbruptly ends holds without a ramp.
type unholdsAbruptly struct{ *Model }

func (s unholdsAbruptly) Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	released, err := s.Model.Unhold(ctx, now, lanes...)
	for _, l := range released {
		s.gate(l).HeldUntil = time.Time{}
	}
	return released, err
}

// unholdsAll returns all lanes that it is given.
type unholdsAll struct{ *Model }

func (s unholdsAll) Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	_, err := s.Model.Unhold(ctx, now, lanes...)
	return lanes, err
}

// forgetsOpenings forgets that the breaker was open as soon as it is closed.
type forgetsOpenings struct{ *Model }

func (s forgetsOpenings) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	got, err := s.Model.Settle(ctx, outcomes...)
	for _, g := range s.gates {
		if !g.Open() {
			g.OpenedAt, g.Openings = time.Time{}, 0
		}
	}
	return got, err
}

// opensAnew counts each failure of a probe as an opening.
type opensAnew struct{ *Model }

func (s opensAnew) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for _, o := range outcomes {
		if o.Probe && o.Verdict == core.Failure {
			s.gate(o.Lane).Openings++
		}
	}
	return s.Model.Settle(ctx, outcomes...)
}
