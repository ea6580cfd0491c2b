package storetest

import (
	"context"
	"maps"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Stores that break one sentence about gates each. broken_test.go lists them.

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

type startsAll struct{ *Model }

func (s startsAll) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	got, err := s.Model.Take(ctx, now, quotas)
	for i := range got {
		got[i].StartAt = now
	}
	return got, err
}

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

type releasesJobs struct{ *Model }

func (s releasesJobs) Release(ctx context.Context, due time.Time, jobs ...core.Job) error {
	for _, j := range jobs {
		s.gate(j.Lane).taker = ""
	}
	return s.Model.Release(ctx, due, jobs...)
}

type straysAnew struct{ *Model }

func (s straysAnew) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	clear(s.strays)
	return s.Model.Strays(ctx, now, known)
}

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

type straysClose struct{ *Model }

func (s straysClose) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	found, err := s.Model.Strays(ctx, now, known)
	for l := range found {
		delete(s.gates, l)
	}
	return found, err
}

type straysLeave struct{ *Model }

func (s straysLeave) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	gates := maps.Clone(s.gates)
	found, err := s.Model.Strays(ctx, now, known)
	s.gates = gates
	return found, err
}

type retriesStrays struct{ *Model }

func (s retriesStrays) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	strays := maps.Clone(s.strays)
	n, err := s.Model.Retry(ctx, now, id, lane)
	s.strays = strays
	return n, err
}

type takesAhead struct{ *Model }

func (s takesAhead) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for _, q := range quotas {
		if g := s.gate(q.Lane); g.ClosedAt.After(now) {
			g.ClosedAt = now.Add(-core.RampTime)
		}
	}
	return s.Model.Take(ctx, now, quotas)
}

type closesAbruptly struct{ *Model }

func (s closesAbruptly) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	closed, err := s.Model.CloseBreakers(ctx, now, lanes...)
	for _, l := range closed {
		s.gate(l).ClosedAt = time.Time{}
	}
	return closed, err
}

type closesAll struct{ *Model }

func (s closesAll) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	_, err := s.Model.CloseBreakers(ctx, now, lanes...)
	return lanes, err
}

type judgesByDefault struct{ *Model }

func (s judgesByDefault) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for i := range outcomes {
		outcomes[i].Breaker = core.Breaker{}
	}
	return s.Model.Settle(ctx, outcomes...)
}
