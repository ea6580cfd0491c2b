package storetest

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// Calls of queue consumers, in random sequences. machine.go has the other calls. Refs are stale,
// repeated or made up as often as valid.

// drawRefs draws refs to taken jobs, by lease, by id or with a made-up lease, some of them
// several times. refs are for the store, and twins are the same refs for the model. The lane is
// most often the lane of the first ref.
func (m *machine) drawRefs(t *rapid.T) (lane core.Lane, refs, twins []core.Ref) {
	lane = rapid.SampledFrom(append(slices.Clone(m.lanes), "queue/nobody")).Draw(t, "lane")
	for i := range rapid.IntRange(1, 4).Draw(t, "refs") {
		h := m.drawHeld(t)
		if i == 0 && rapid.IntRange(0, 3).Draw(t, "its lane") > 0 {
			lane = h.job.Lane
		}
		ref, twin := refTo(h.job), refTo(h.twin)
		switch rapid.SampledFrom([]string{"lease", "lease", "id", "unknown lease"}).Draw(t, "by") {
		case "id":
			ref.Lease, twin.Lease = "", ""
		case "unknown lease":
			ref.Lease, twin.Lease = "unknown lease", "unknown lease"
		}
		refs, twins = append(refs, ref), append(twins, twin)
	}
	return lane, refs, twins
}

// ackSome acks drawn refs in the store and in the model.
func (m *machine) ackSome(t *rapid.T) {
	lane, refs, twins := m.drawRefs(t)
	limit := m.lineLimit(lane)
	want, _ := m.model.AckLined(context.Background(), m.now, lane, limit, twins)
	m.equal("AckLined", m.ackLined(lane, limit, refs...), want)
}

// extendSome extends drawn refs to a time before, at or after now.
func (m *machine) extendSome(t *rapid.T) {
	lane, refs, twins := m.drawRefs(t)
	end := m.now.Add(rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Millisecond, time.Second, 2 * leaseTime}).Draw(t, "by"))
	want, _ := m.model.Extend(context.Background(), end, lane, twins)
	m.equal("Extend", m.extend(end, lane, refs...), want)
}

// heldSome asks for the jobs of drawn refs.
func (m *machine) heldSome(t *rapid.T) {
	lane, refs, twins := m.drawRefs(t)
	want, _ := m.model.Held(context.Background(), lane, twins)
	m.equal("Held", bareTaken(m.held(lane, refs...)), bareTaken(want))
}

// askQueues calls each method that reads a queue.
func (m *machine) askQueues(t *rapid.T) {
	ctx, limit := context.Background(), rapid.IntRange(1, 4).Draw(t, "limit")
	lane := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	lapsed, _ := m.model.Lapsed(ctx, m.now, m.lanes, limit)
	m.equal("Lapsed", bareTaken(m.lapsed(limit, m.lanes...)), bareTaken(lapsed))
	tallies, _ := m.model.Tallies(ctx, m.now, m.lanes)
	m.equal("Tallies", m.tallies(m.lanes...), tallies)
	ended, _ := m.model.Ended(ctx, m.lanes)
	m.equal("Ended", m.countEnded(m.lanes...), ended)
	peek, _ := m.model.Peek(ctx, m.now, lane, limit)
	m.equal("Peek", bareTaken(m.peek(lane, limit)), bareTaken(peek))
	var after core.ID
	if len(m.heldJobs) > 0 {
		after = rapid.SampledFrom([]core.ID{"", m.drawHeld(t).job.ID}).Draw(t, "after")
	}
	want, _ := m.model.DeadLetters(ctx, lane, after, limit)
	got := m.deadLetters(lane, after, limit)
	m.equal("DeadLetters", bareTaken(got.Items), bareTaken(want.Items))
	m.equal("DeadLetters: More", got.More, want.More)
}

// drainSome drains a lane of all jobs. It sets no lower
// limit than MaxPage, because the contract leaves open which jobs a limit leaves.
func (m *machine) drainSome(t *rapid.T) {
	lane := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	below := core.ID(newestID) // the jobs of lines that are left would be due by the store's own clock
	want, _ := m.model.Drain(context.Background(), lane, below, core.MaxPage)
	m.equal("Drain", m.drainOf(lane, below, core.MaxPage), want)
	for _, h := range m.heldJobs {
		m.settled = append(m.settled, h.job.ID)
	}
	m.forget()
}

// forget drops the arrivals, outcomes and transitions that gave rise to jobs. Sent again after a
// purge or a drain, they could create deleted jobs again.
func (m *machine) forget() {
	m.arrivals = nil
	m.heldJobs = slices.DeleteFunc(m.heldJobs, func(h *heldJob) bool { return h.outcome != nil && h.outcome.GivesRise != nil })
	m.madeTransitions = slices.DeleteFunc(m.madeTransitions, func(t core.Transition) bool { return t.GivesRise != nil })
}

// bareTaken returns taken jobs without the values of their leases.
func bareTaken(jobs []core.TakenJob) []core.TakenJob {
	out := make([]core.TakenJob, len(jobs))
	for i, j := range jobs {
		j.Job = bare(j.Job)
		out[i] = j
	}
	return out
}
