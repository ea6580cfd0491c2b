package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// AcceptAndTake implements [core.Express] by an Accept and by taking the stored jobs one by one.
func (m *Model) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.events[a.Event.ID]
	r := m.accept(ctx, a)
	if r.Duplicate || known {
		return r, nil, nil
	}
	m.leases++
	var taken []core.TakenJob
	for _, n := range a.Jobs {
		hold, wanted := holds[n.ID]
		j := m.jobs[n.ID]
		if !wanted || j == nil || n.Key != "" || j.Line != "" || n.Lane.Workflow() != "" || j.Status != core.Available || j.DueAt.After(now) ||
			m.heldSource(j, now) || m.allowed(now, core.Quota{Lane: n.Lane, N: 1}) == 0 {
			continue
		}
		j.Status, j.Lease, j.ScheduledAt = core.Running, core.Lease(fmt.Sprint("lease ", m.leases)), j.DueAt
		j.Attempt, j.DueAt = 1, now.Add(hold)
		taken = append(taken, core.TakenJob{Job: *j, Event: m.events[j.EventID]})
	}
	return r, taken, nil
}
