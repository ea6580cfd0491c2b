package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// The calls of a [machine] that accept events.

// acceptNew accepts an event with up to two jobs. Delivery ids and keys are few, so that they
// repeat.
func (m *machine) acceptNew(t *rapid.T) {
	a := core.Arrival{Event: m.event()}
	a.Event.DeliveryID = rapid.SampledFrom([]string{"", "", "", "d1", "d2"}).Draw(t, "delivery id")
	a.Event.CreatedAt = m.now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "due in"))
	// Intake makes jobs with ids of the event's block, others do not.
	block, place := core.BlockOf(a.Event.ID)
	for i, l := range rapid.SliceOfNDistinct(rapid.SampledFrom(m.lanes), 0, 2, rapid.ID).Draw(t, "lanes") {
		id := m.ids.Next()
		if rapid.Bool().Draw(t, "id of the event's block") {
			id = block.At((place + uint32(i) + 1) % core.BlockSize)
		}
		a.Jobs = append(a.Jobs, core.NewJob{
			ID: id, Lane: l, MaxAttempts: rapid.IntRange(1, 3).Draw(t, "max attempts"),
			Key:   rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key"),
			DueAt: m.now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second, 2 * time.Second}).Draw(t, "delayed by")),
			Line:  core.Line{Key: rapid.SampledFrom([]string{"", "", "x", "x", "y"}).Draw(t, "line"), Limit: m.lineLimit(l)},
		})
	}
	m.arrivals = append(m.arrivals, a)
	holds := map[core.ID]time.Duration{}
	for _, j := range a.Jobs {
		if rapid.Bool().Draw(t, "taken at once") {
			holds[j.ID] = rapid.SampledFrom([]time.Duration{time.Second, leaseTime}).Draw(t, "hold")
		}
	}
	m.acceptBoth(a, holds)
}

// acceptAgain repeats any earlier arrival of the sequence.
func (m *machine) acceptAgain(t *rapid.T) {
	if len(m.arrivals) == 0 {
		t.Skip("nothing has arrived")
	}
	m.acceptBoth(rapid.SampledFrom(m.arrivals).Draw(t, "arrival"), nil)
}

// acceptBoth accepts an arrival in the store and in the model, and takes the jobs of holds. If the
// keys of the arrival belong to several events, the receipt may name any of those events.
func (m *machine) acceptBoth(a core.Arrival, holds map[core.ID]time.Duration) {
	m.eventsChanged, m.runsChanged = true, true
	var want, got core.Receipt
	if len(holds) == 0 {
		want, _ = m.model.Accept(context.Background(), a)
		got = m.accept(a)
	} else {
		var twins, taken []core.TakenJob
		want, twins, _ = m.model.AcceptAndTake(context.Background(), m.now, a, holds)
		got, taken = m.express(a, holds)
		m.equal("AcceptAndTake: jobs", ids(taken), ids(twins))
		for i, j := range taken {
			m.equal("AcceptAndTake: job", bare(j.Job), bare(twins[i].Job))
			m.heldJobs = append(m.heldJobs, &heldJob{job: j.Job, twin: twins[i].Job})
		}
	}
	if got.Duplicate && len(a.Jobs) > 1 && a.Event.DeliveryID == "" {
		want.EventID = got.EventID
	}
	m.equal("Accept", got, want)
}
