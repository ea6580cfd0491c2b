package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// The part of the [Model] with held sources. A Take parks the due jobs of held sources that it
// meets. A parked job shows as before. Only Due and the ramp after the hold tell it from others.

// A parkedJob is the source and the due time of a job when a Take parked it. A call that changes
// the due time or ends the job unparks it.
type parkedJob struct {
	source core.Lane
	due    time.Time
}

// sourceOf returns the lane of the source of a job's event.
func (m *Model) sourceOf(j *core.Job) core.Lane {
	return core.SourceLane(m.events[j.EventID].Source)
}

// heldSource reports whether the source of a job is held.
func (m *Model) heldSource(j *core.Job, now time.Time) bool {
	g := m.gates[m.sourceOf(j)]
	return g != nil && g.Held(now)
}

// parkedBy returns the lane of the source under whose hold a job is parked.
func (m *Model) parkedBy(j *core.Job) (source core.Lane, parked bool) {
	p, noted := m.parked[j.ID]
	return p.source, noted && p.due.Equal(j.DueAt) && !j.Status.Finished() && j.Status != core.Waiting
}

// isParked reports whether a job is parked.
func (m *Model) isParked(j *core.Job) bool {
	_, parked := m.parkedBy(j)
	return parked
}

// park parks the due jobs of held sources in the lanes of quotas, and makes the parked jobs of all
// other sources due again. Their lanes begin slowly. A released source loses its number after a
// minute.
func (m *Model) park(now time.Time, quotas []core.Quota) {
	for id := range m.parked {
		j := m.jobs[id]
		if j == nil {
			delete(m.parked, id)
			continue
		}
		source, parked := m.parkedBy(j)
		end := m.gate(source).HeldUntil
		if parked && end.After(now) {
			continue
		}
		delete(m.parked, id)
		if g := m.gate(j.Lane); parked && j.Lane.Queue() == "" && now.Sub(end) < core.RampTime && g.HeldUntil.Before(end) {
			g.HeldUntil = end
		}
	}
	for source, heldAt := range m.numbers {
		end := m.gate(source).HeldUntil
		if old := now.Add(-time.Minute); !end.After(now) && heldAt.Before(old) && end.Before(old) {
			delete(m.numbers, source)
		}
	}
	for _, q := range quotas {
		if !asks(q) {
			continue
		}
		for _, j := range m.due(now, core.Quota{Lane: q.Lane, N: len(m.jobs)}) {
			if m.heldSource(j, now) {
				m.parked[j.ID] = parkedJob{m.sourceOf(j), j.DueAt}
			}
		}
	}
}

// asks reports whether a quota can bring jobs.
func asks(q core.Quota) bool {
	return q.N > 0 && (q.Pass == nil || q.Pass.Probe > 0 || q.Pass.Ahead >= 0)
}
