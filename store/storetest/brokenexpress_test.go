package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Stores that break one sentence about jobs that are taken at once each. See broken_test.go.

// expressesShut takes jobs through any gate, and of held sources.
type expressesShut struct{ *Model }

func (s expressesShut) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	gates := s.gates
	s.gates = map[core.Lane]*gate{}
	defer func() { s.gates = gates }()
	return s.Model.AcceptAndTake(ctx, now, a, holds)
}

// expressesAgain takes the jobs of an arrival that was accepted before.
type expressesAgain struct{ *Model }

func (s expressesAgain) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	r, taken, err := s.Model.AcceptAndTake(ctx, now, a, holds)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(taken) == 0 && !r.Duplicate {
		for _, n := range a.Jobs {
			taken = append(taken, core.TakenJob{Job: *s.jobs[n.ID], Event: s.events[a.Event.ID]})
		}
	}
	return r, taken, err
}

// expressesAll takes jobs with keys and lines as well.
type expressesAll struct{ *Model }

func (s expressesAll) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	r, err := s.Accept(ctx, a)
	var quotas []core.Quota
	for _, j := range a.Jobs {
		quotas = append(quotas, core.Quota{Lane: j.Lane, N: 1, Hold: holds[j.ID]})
	}
	taken, _ := s.Take(ctx, now, quotas)
	return r, taken, err
}
