package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// slowSequences is how many random sequences a slow store runs.
const slowSequences = 10

// runModel compares a store with a [Model] over random sequences of calls: after
// each call, both show the same. All sequences share one store; each has lanes
// and a source of its own.
func runModel(t *testing.T, s core.Store, o Options) {
	var begun int
	var failing bool // a sequence that failed is run again to make it short
	rapid.Check(t, func(rt *rapid.T) {
		if begun++; o.Slow && begun > slowSequences && !failing {
			return
		}
		defer func() { failing = failing || rt.Failed() }()
		m := newMachine(rt, s, o, begun)
		rt.Repeat(map[string]func(*rapid.T){
			"":            m.compare,
			"accept":      m.acceptNew,
			"acceptAgain": m.acceptAgain,
			"take":        m.takeSome,
			"settle":      m.settleSome,
			"release":     m.releaseOne,
			"recover":     m.recoverLane,
			"retry":       m.retryOne,
			"retryLane":   m.retryLane,
			"advance":     m.advance,
		})
	})
}

// A machine drives a store and its model side by side.
type machine struct {
	*rig
	model *Model
	lanes []core.Lane
	event func() core.Event
	base  int // depth of the store before

	arrivals []core.Arrival
	hands    []*hand

	// Since the last comparison:
	arrived bool
	settled []core.ID
}

// A hand is a taken job: in the store, and its twin in the model, whose lease is
// another one.
type hand struct {
	job, twin core.Job
	outcome   *core.Outcome // once settled; the same is sent again
}

func newMachine(rt *rapid.T, s core.Store, o Options, sequence int) *machine {
	r := newRig(rt, s, o)
	m := &machine{rig: r, model: NewModel(core.SystemClock), base: r.depth()}
	for _, name := range []string{"a", "b"} {
		m.lanes = append(m.lanes, core.Lane(fmt.Sprintf("handler/%s-%d", name, sequence)))
	}
	m.event = func() core.Event {
		e := r.event()
		e.Source = fmt.Sprint("source-", sequence)
		return e
	}
	return m
}

func (m *machine) acceptNew(t *rapid.T) {
	a := core.Arrival{Event: m.event()}
	a.Event.DeliveryID = rapid.SampledFrom([]string{"", "", "", "d1", "d2"}).Draw(t, "delivery id")
	a.Event.CreatedAt = m.now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "due in"))
	for _, l := range rapid.SliceOfNDistinct(rapid.SampledFrom(m.lanes), 0, 2, rapid.ID).Draw(t, "lanes") {
		a.Jobs = append(a.Jobs, core.NewJob{
			ID: m.ids.Next(), Lane: l, MaxAttempts: rapid.IntRange(1, 3).Draw(t, "max attempts"),
			Key: rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key"),
		})
	}
	m.arrivals = append(m.arrivals, a)
	m.acceptBoth(a)
}

func (m *machine) acceptAgain(t *rapid.T) {
	if len(m.arrivals) == 0 {
		t.Skip("nothing has arrived")
	}
	m.acceptBoth(rapid.SampledFrom(m.arrivals).Draw(t, "arrival"))
}

// Which of several events a receipt names is left open, if keys of an arrival
// belong to several.
func (m *machine) acceptBoth(a core.Arrival) {
	m.arrived = true
	want, _ := m.model.Accept(context.Background(), a)
	got := m.accept(a)
	if got.Duplicate && len(a.Jobs) > 1 && a.Event.DeliveryID == "" {
		want.EventID = got.EventID
	}
	m.equal("Accept", got, want)
}

func (m *machine) takeSome(t *rapid.T) {
	var quotas []core.Quota
	for _, l := range m.lanes {
		quotas = append(quotas, core.Quota{
			Lane: l, N: rapid.IntRange(0, 3).Draw(t, "n"),
			Hold: rapid.SampledFrom([]time.Duration{time.Second, hold}).Draw(t, "hold"),
		})
	}
	twins := map[core.ID]core.Job{}
	want, _ := m.model.Take(context.Background(), m.now, quotas)
	for _, j := range want {
		twins[j.ID] = j.Job
	}
	got := m.haul(quotas...)
	m.equal("Take", slices.Sorted(slices.Values(ids(got))), slices.Sorted(slices.Values(ids(want))))
	for _, j := range got {
		m.equal("Take: job", bare(j.Job), bare(twins[j.ID]))
		m.hands = append(m.hands, &hand{job: j.Job, twin: twins[j.ID]})
	}
}

// drawHand picks a taken job, most often one of the last.
func (m *machine) drawHand(t *rapid.T) *hand {
	if len(m.hands) == 0 {
		t.Skip("nothing is taken")
	}
	last := m.hands[max(0, len(m.hands)-4):]
	return rapid.SampledFrom(slices.Concat(m.hands, last, last)).Draw(t, "hand")
}

func (m *machine) settleSome(t *rapid.T) {
	var stored, twin []core.Outcome
	for range rapid.IntRange(1, 3).Draw(t, "outcomes") {
		h := m.drawHand(t)
		if h.outcome == nil {
			o := m.ended(h.job, rapid.SampledFrom([]core.Status{core.Completed, core.Retryable, core.Dead}).Draw(t, "status"))
			o.Attempt.Number = min(h.job.Attempt, h.job.MaxAttempts)
			h.outcome = &o
		}
		o := *h.outcome
		stored = append(stored, o)
		o.Lease = h.twin.Lease
		twin = append(twin, o)
		m.settled = append(m.settled, h.job.ID)
	}
	want, _ := m.model.Settle(context.Background(), twin...)
	m.equal("Settle: lost", m.lost(stored...), want)
}

func (m *machine) releaseOne(t *rapid.T) {
	h := m.drawHand(t)
	due := m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "due in"))
	_ = m.model.Release(context.Background(), due, h.twin)
	m.release(due, h.job)
}

func (m *machine) recoverLane(t *rapid.T) {
	l := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	want, _ := m.model.Recover(context.Background(), m.now, []core.Lane{l})
	m.equal("Recover", m.recover(l), want)
}

func (m *machine) retryOne(t *rapid.T) {
	id := m.drawHand(t).job.ID
	want, _ := m.model.Retry(context.Background(), m.now, id, "")
	m.equal("Retry", m.retry(id, ""), want)
}

func (m *machine) retryLane(t *rapid.T) {
	l := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	want, _ := m.model.Retry(context.Background(), m.now, "", l)
	m.equal("Retry", m.retry("", l), want)
}

func (m *machine) advance(t *rapid.T) {
	steps := []time.Duration{time.Millisecond, time.Second - time.Millisecond, time.Second, hold}
	m.now = m.now.Add(rapid.SampledFrom(steps).Draw(t, "by"))
}

// compare wants the store to show what the model shows, of what may have changed.
func (m *machine) compare(t *rapid.T) {
	ctx := context.Background()
	for _, l := range m.lanes {
		f := core.JobFilter{Lane: l, Limit: core.MaxPage}
		want, _ := m.model.Jobs(ctx, f)
		got := m.jobs(f)
		m.equal("Jobs", bareAll(got.Items), bareAll(want.Items))
	}
	if m.arrived {
		want, _ := m.model.Events(ctx, core.EventFilter{Limit: core.MaxPage})
		got := m.events(core.EventFilter{Source: m.event().Source, Limit: core.MaxPage})
		m.equal("Events", got.Items, want.Items)
	}
	due, _ := m.model.Due(ctx, m.lanes)
	m.equal("Due", m.due(m.lanes...), due)
	depth, _ := m.model.Depth(ctx)
	m.equal("Depth", m.depth()-m.base, depth)
	for _, id := range m.settled {
		want, _ := m.model.Attempts(ctx, id)
		m.equal("Attempts", sorted(m.attempts(id)), sorted(want))
	}
	m.arrived, m.settled = false, nil
	if t.Failed() {
		t.FailNow() // what follows would only follow from it
	}
}

// sorted brings attempts that began at the same time in one order.
func sorted(attempts []core.Attempt) []core.Attempt {
	return slices.SortedStableFunc(slices.Values(attempts), func(a, b core.Attempt) int {
		if c := a.StartedAt.Compare(b.StartedAt); c != 0 {
			return c
		}
		return a.Number - b.Number
	})
}

// bare is a job without what a store decides by itself: the name of its lease.
func bare(j core.Job) core.Job {
	if j.Lease != "" {
		j.Lease = "held"
	}
	return j
}

func bareAll(jobs []core.Job) []core.Job {
	out := make([]core.Job, len(jobs))
	for i := range jobs {
		out[i] = bare(jobs[i])
	}
	return out
}
