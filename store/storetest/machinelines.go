package storetest

import (
	"context"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// Calls on lines, in random sequences. The jobs of lines are accepted, taken and settled by the
// calls in machine.go.

// lineLimit returns the limit of a lane's lines: 1 in the first lane and 2 in the second.
func (m *machine) lineLimit(l core.Lane) int {
	if l == m.lanes[0] {
		return 1
	}
	return 2
}

// skipOne skips a job that was taken before. The job may have any status by now.
func (m *machine) skipOne(t *rapid.T) {
	id := m.drawHeld(t).job.ID
	want, known := m.model.Skip(context.Background(), m.now, id)
	got, err := m.store.Skip(context.Background(), m.now, id)
	m.equal("Skip", got, want)
	m.equal("Skip: not found", core.IsKind(err, core.NotFound), core.IsKind(known, core.NotFound))
}

// fillLane fills the lines of a lane.
func (m *machine) fillLane(t *rapid.T) {
	l := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	_, _ = m.model.Fill(context.Background(), m.now, l, m.lineLimit(l), "")
	m.fill(l, m.lineLimit(l))
}
