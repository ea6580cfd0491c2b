package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// The model-based test. rapid draws random sequences of calls. A machine makes each call on the
// store and on a [Model], and compares the answers. After each call it compares the contents of
// both: jobs, events, gates, marks, attempts and runs. So the test finds combinations of calls
// for which no sentence has a check. rapid shortens a sequence that fails, and prints the calls
// that are left.
//
// The store and the model choose leases for themselves. So the machine keeps both leases of each
// taken job, and compares jobs without the values of leases.

// The numbers of random sequences that run on a slow store and on a database with a server. The
// other stores have rapid's 100.
const (
	slowSequences    = 10
	sampledSequences = 30
)

// runModel compares a store with a [Model] over random sequences of calls. After each call, both
// must show the same. All sequences share one store. Each has its own lanes and source.
func runModel(t *testing.T, s core.Store, o Options) {
	var begun int
	var failing bool // rapid runs a failed sequence again, to shorten it
	var said []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("failures of the first failed sequence:\n%s", strings.Join(said, "\n"))
		}
	})
	most := math.MaxInt
	switch {
	case o.Slow:
		most = slowSequences
	case o.Sampled:
		most = sampledSequences
	}
	// Such a store runs the first sequences only. Once one has failed, rapid must be able to run it
	// again.
	rapid.Check(t, func(rt *rapid.T) {
		if begun++; begun > most && !failing {
			return
		}
		defer func() { failing = failing || rt.Failed() }()
		var noted tb = rt
		if !failing {
			noted = failureLog{rt, &said}
		}
		m := newMachine(noted, s, o, begun)
		// Transitions are drawn twice as often as other calls, because most of them depend on
		// earlier ones.
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
			"cancel":      m.cancelSome,
			"purge":       m.purgeAll,
			"mark":        m.markSome,
			"strays":      m.straysSome,
			"close":       m.closeSome,
			"hold":        m.holdSome,
			"ack":         m.ackSome,
			"extend":      m.extendSome,
			"held":        m.heldSome,
			"queues":      m.askQueues,
			"drain":       m.drainSome,
			"skip":        m.skipOne,
			"fill":        m.fillLane,
			"acceptRuns":  m.acceptRuns,
			"takeRuns":    m.takeRuns,
			"transit":     m.transitSome,
			"transitMore": m.transitSome,
			"runs":        m.askRuns,
			"advance":     m.advance,
		})
	})
}

// A failureLog is a tb that also records the texts of failures. rapid prints only the failure of
// the shortened sequence, which may be another one.
type failureLog struct {
	tb
	texts *[]string
}

// Errorf implements tb.
func (s failureLog) Errorf(format string, args ...any) {
	*s.texts = append(*s.texts, fmt.Sprintf(format, args...))
	s.tb.Errorf(format, args...)
}

// Fatalf implements tb.
func (s failureLog) Fatalf(format string, args ...any) {
	*s.texts = append(*s.texts, fmt.Sprintf(format, args...))
	s.tb.Fatalf(format, args...)
}

// A machine makes the same calls of a store and of its model. It serves one sequence and one
// goroutine.
type machine struct {
	*rig
	model  *Model
	lanes  []core.Lane
	others []core.Lane // the lanes of earlier sequences
	flow   core.Lane   // the lane of the sequence's workflow
	event  func() core.Event
	base   int // the depth of the store before the sequence
	began  time.Time

	arrivals        []core.Arrival
	heldJobs        []*heldJob
	madeTransitions []core.Transition // the transitions that were made

	// Changes since the last comparison:
	eventsChanged bool
	settled       []core.ID
	marksMoved    bool
	runsChanged   bool

	unchanged int // comparisons since the rows of runs were compared
}

// A heldJob is a taken job in the store, with its twin in the model. The two have different leases.
type heldJob struct {
	job, twin core.Job
	probe     bool
	outcome   *core.Outcome // nil until settled; it may be sent again
}

// newMachine prepares the sequence with the given number, from 1. All sequences share a store, so
// this one has new lanes and a new source. base is the number of unfinished jobs of earlier
// sequences.
func newMachine(rt tb, s core.Store, o Options, sequence int) *machine {
	r := newRig(rt, s, o)
	r.armed = map[core.ID]bool{}
	m := &machine{rig: r, model: NewModel(core.SystemClock), base: r.depth(), began: r.now}
	for _, name := range []string{"a", "b"} {
		for before := range sequence {
			m.others = append(m.others, core.Lane(fmt.Sprintf("handler/%s-%d", name, before)))
		}
		m.lanes = append(m.lanes, core.Lane(fmt.Sprintf("handler/%s-%d", name, sequence)))
	}
	for before := range sequence {
		m.others = append(m.others, core.WorkflowLane(fmt.Sprint("w-", before)))
	}
	m.flow = core.WorkflowLane(fmt.Sprint("w-", sequence))
	m.event = func() core.Event {
		e := r.event()
		e.Source = fmt.Sprint("source-", sequence)
		return e
	}
	return m
}

// takeSome takes up to three jobs of each lane, with or without a Pass. The store may return jobs
// of a lane in any order, so the ids are sorted before they are compared.
func (m *machine) takeSome(t *rapid.T) {
	var quotas []core.Quota
	for _, l := range m.lanes {
		quotas = append(quotas, core.Quota{
			Lane: l, N: rapid.IntRange(0, 3).Draw(t, "n"),
			Hold:  rapid.SampledFrom([]time.Duration{time.Second, leaseTime}).Draw(t, "hold"),
			Pass:  m.drawPass(t, l),
			Lines: m.lineLimit(l),
		})
	}
	twins := map[core.ID]core.TakenJob{}
	want, _ := m.model.Take(context.Background(), m.now, quotas)
	for _, j := range want {
		twins[j.ID] = j
	}
	got := m.takeQuotas(quotas...)
	m.equal("Take", slices.Sorted(slices.Values(ids(got))), slices.Sorted(slices.Values(ids(want))))
	for _, j := range got {
		twin := twins[j.ID]
		m.equal("Take: job", bare(j.Job), bare(twin.Job))
		m.equal("Take: start", j.StartAt, twin.StartAt)
		m.equal("Take: probe", j.Probe, twin.Probe)
		m.heldJobs = append(m.heldJobs, &heldJob{job: j.Job, twin: twin.Job, probe: j.Probe})
	}
}

// drawPass draws the pass of a taker, most often one that fits the gate's state.
func (m *machine) drawPass(t *rapid.T, l core.Lane) *core.Pass {
	g := m.model.gate(l)
	// A Pass that does not fit is refused, which is the less interesting case, so it is drawn less
	// often.
	p := &core.Pass{Closed: g.ClosedAt}
	fits := "interval"
	if g.Open() {
		fits = "probe"
	}
	switch rapid.SampledFrom([]string{"none", "none", fits, fits, "interval", "probe", "another"}).Draw(t, "pass") {
	case "none":
		return nil
	case "probe":
		p.Probe = rapid.SampledFrom([]time.Duration{time.Millisecond, core.BreakerCooldown}).Draw(t, "probe")
		return p
	case "another":
		p.Closed = p.Closed.Add(time.Millisecond)
	}
	p.Interval = rapid.SampledFrom([]time.Duration{time.Microsecond, 20 * time.Millisecond, 7 * time.Second}).Draw(t, "interval")
	p.Ahead = rapid.SampledFrom([]time.Duration{0, time.Second, 9 * time.Second, -time.Second}).Draw(t, "ahead")
	return p
}

// drawHeld draws a taken job, most often one of the last four.
func (m *machine) drawHeld(t *rapid.T) *heldJob {
	if len(m.heldJobs) == 0 {
		t.Skip("nothing is taken")
	}
	last := m.heldJobs[max(0, len(m.heldJobs)-4):]
	return rapid.SampledFrom(slices.Concat(m.heldJobs, last, last)).Draw(t, "hand")
}

// settleSome settles up to three outcomes of taken jobs: new outcomes, outcomes under stale leases
// and repeated ones. It leaves out combinations whose effect the contract leaves open.
func (m *machine) settleSome(t *rapid.T) {
	var stored, twin []core.Outcome
	var alone bool
	for range rapid.IntRange(1, 3).Draw(t, "outcomes") {
		h := m.drawHeld(t)
		if h.outcome == nil {
			o := m.ended(h.job, rapid.SampledFrom([]core.Status{core.Completed, core.Retryable, core.Dead}).Draw(t, "status"))
			o.Attempt.Number = min(h.job.Attempt, h.job.MaxAttempts)
			m.judge(t, h, &o)
			o.Line = core.Line{Key: h.job.Line, Limit: m.lineLimit(h.job.Lane)}
			o.StopsLine = rapid.Bool().Draw(t, "stops its line")
			h.outcome = &o
		}
		o := *h.outcome
		_, held := m.model.holds(h.twin.ID, h.twin.Lease)
		if late := !held && o.Verdict == core.Success; late && len(stored) > 0 || alone {
			continue // the contract leaves open whether other outcomes of its lease count with it
		} else {
			alone = late
		}
		stored = append(stored, o)
		o.Lease = h.twin.Lease
		twin = append(twin, o)
		m.settled = append(m.settled, h.job.ID)
	}
	want, _ := m.model.Settle(context.Background(), twin...)
	m.equal("Settle", m.settlement(stored...), want)
}

// judge gives an outcome a verdict, most often a failure, and sometimes an event that the outcome
// gives rise to.
func (m *machine) judge(t *rapid.T, h *heldJob, o *core.Outcome) {
	verdicts := []core.Verdict{core.Failure, core.Failure, core.Failure, core.Success, core.NoVerdict}
	o.Lane, o.Verdict, o.Probe = h.job.Lane, rapid.SampledFrom(verdicts).Draw(t, "verdict"), h.probe
	o.Breaker = rapid.SampledFrom([]core.Breaker{{}, {Failures: 1}, {Failures: 3, Cooldown: time.Second}, {Cooldown: time.Hour}}).Draw(t, "breaker")
	if rapid.IntRange(0, 3).Draw(t, "gives rise") > 0 {
		return
	}
	o.GivesRise = &core.Arrival{Event: m.event()}
	for range rapid.IntRange(0, 2).Draw(t, "to") {
		l := rapid.SampledFrom(m.lanes).Draw(t, "lane")
		o.GivesRise.Jobs = append(o.GivesRise.Jobs, core.NewJob{ID: m.ids.Next(), Lane: l, MaxAttempts: 1})
	}
	m.eventsChanged = true
}

// straysSome asks for strays among the lanes of this sequence. Its known lanes include all lanes
// of the other sequences.
func (m *machine) straysSome(t *rapid.T) {
	known := slices.Clone(rapid.SliceOfNDistinct(rapid.SampledFrom(m.lanes), 0, 2, rapid.ID).Draw(t, "known"))
	known = append(known, m.flow)
	want, _ := m.model.Strays(context.Background(), m.now, known)
	m.equal("Strays", m.strays(append(known, m.others...)...), want)
}

// closeSome closes breakers of this sequence's lanes.
func (m *machine) closeSome(t *rapid.T) {
	lanes := rapid.SliceOfNDistinct(rapid.SampledFrom(m.lanes), 1, 2, rapid.ID).Draw(t, "lanes")
	want, _ := m.model.CloseBreakers(context.Background(), m.now, lanes...)
	m.equal("CloseBreakers", m.closeBreakers(lanes...), want)
}

// holdSome holds a lane of this sequence, or its source, for a while or without an end, or ends
// holds.
func (m *machine) holdSome(t *rapid.T) {
	all := append(slices.Clone(m.lanes), core.SourceLane(m.event().Source))
	lanes := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 2, rapid.ID).Draw(t, "lanes")
	if rapid.Bool().Draw(t, "release") {
		want, _ := m.model.Unhold(context.Background(), m.now, lanes...)
		m.equal("Unhold", m.unhold(lanes...), want)
		return
	}
	var until time.Time
	if d := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "for"); d > 0 {
		until = m.now.Add(d)
	}
	_ = m.model.Hold(context.Background(), m.now, lanes[0], until, "held")
	m.holdLane(lanes[0], until, "held")
}

// releaseOne releases a taken job, which may be settled or taken again already.
func (m *machine) releaseOne(t *rapid.T) {
	h := m.drawHeld(t)
	due := m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "due in"))
	_ = m.model.Release(context.Background(), due, h.twin)
	m.release(due, h.job)
}

// recoverLane recovers a lane, as after a restart.
func (m *machine) recoverLane(t *rapid.T) {
	l := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	want, _ := m.model.Recover(context.Background(), m.now, []core.Lane{l})
	m.equal("Recover", m.recover(l), want)
}

// retryOne retries a job that was taken before. The job may have any status by now.
func (m *machine) retryOne(t *rapid.T) {
	id := m.drawHeld(t).job.ID
	want, _ := m.model.Retry(context.Background(), m.now, id, "")
	m.equal("Retry", m.retry(id, ""), want)
}

// retryLane retries the dead jobs of a lane.
func (m *machine) retryLane(t *rapid.T) {
	l := rapid.SampledFrom(m.lanes).Draw(t, "lane")
	want, _ := m.model.Retry(context.Background(), m.now, "", l)
	m.equal("Retry", m.retry("", l), want)
}

// purgeAll deletes all finished jobs. Sequences share a store, so a limit would count the jobs of
// other sequences. Those sequences are over, and no check reads their jobs again.
func (m *machine) purgeAll(t *rapid.T) {
	_, _, _ = m.model.Purge(context.Background(), m.now, core.MaxPage)
	for m.purge(core.MaxPage) > 0 {
	}
	m.base, m.eventsChanged, m.runsChanged = m.depthOfOthers(), true, true
	m.forget()
}

// depthOfOthers returns the store's depth less the model's.
func (m *machine) depthOfOthers() int {
	own, _ := m.model.Depth(context.Background())
	return m.depth() - own
}

// markSome moves the marks of one or two sources, each on one of two schedules.
func (m *machine) markSome(t *rapid.T) {
	var marks []core.Mark
	for _, source := range rapid.SliceOfNDistinct(rapid.SampledFrom(m.markSources()), 1, 2, rapid.ID).Draw(t, "sources") {
		mk := m.mark(source, rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Millisecond, time.Second}).Draw(t, "after"))
		mk.Schedule = rapid.SampledFrom([]string{"* * * * *", "0 * * * *"}).Draw(t, "schedule")
		marks = append(marks, mk)
	}
	_ = m.model.Mark(context.Background(), marks...)
	m.marked(marks...)
	m.marksMoved = true
}

// markSources returns the sources whose marks a sequence moves.
func (m *machine) markSources() []string {
	own := m.event().Source
	return []string{own + "/a", own + "/b"}
}

// advance moves the time forward by an amount at which something becomes due or ends, or sets it
// back.
func (m *machine) advance(t *rapid.T) {
	steps := []time.Duration{time.Millisecond, time.Second - time.Millisecond, time.Second, core.RampTime, leaseTime, -3 * leaseTime, core.StrayTime}
	m.now = m.now.Add(rapid.SampledFrom(steps).Draw(t, "by"))
	m.runsChanged = true       // tokens may have expired
	if m.now.Before(m.began) { // a purge may rely on the times in ids
		m.now = m.began
	}
}

// compare fails unless the store shows the same as the model, in all parts that may have changed.
func (m *machine) compare(t *rapid.T) {
	ctx := context.Background()
	// Cheap comparisons are made after each call, and others only if a call may have changed their
	// rows.
	for _, l := range m.lanes {
		f := core.JobFilter{Lane: l, Limit: core.MaxPage}
		want, _ := m.model.Jobs(ctx, f)
		got := m.jobs(f)
		m.equal("Jobs", bareAll(got.Items), bareAll(want.Items))
		lines, _ := m.model.Lines(ctx, l, "", core.MaxPage)
		m.equal("Lines", m.linesOf(l).Items, lines.Items)
	}
	if m.eventsChanged {
		want, _ := m.model.Events(ctx, core.EventFilter{Limit: core.MaxPage})
		got := m.events(core.EventFilter{Source: m.event().Source, Limit: core.MaxPage})
		m.equal("Events", got.Items, want.Items)
	}
	due, _ := m.model.Due(ctx, m.lanes)
	m.equal("Due", m.outlooks(m.lanes...), due)
	depth, _ := m.model.Depth(ctx)
	m.equal("Depth", m.depth()-m.base, depth)
	for _, id := range m.settled {
		want, _ := m.model.Attempts(ctx, id, 0, core.MaxPage)
		m.equal("Attempts", sorted(m.attempts(id)), sorted(want))
	}
	if m.marksMoved {
		want, _ := m.model.Marks(ctx, m.markSources())
		m.equal("Marks", m.marks(m.markSources()...), want)
	}
	m.compareRuns()
	m.eventsChanged, m.settled, m.marksMoved, m.runsChanged = false, nil, false, false
	if t.Failed() {
		t.FailNow() // later failures would only follow from this one
	}
}

// sorted returns the attempts by start time. Attempts of the same time may be listed in any
// order, so it sorts those by their content.
func sorted(attempts []core.Attempt) []core.Attempt {
	return slices.SortedFunc(slices.Values(attempts), func(a, b core.Attempt) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
}

// bare returns a job without the value of its lease, which each store chooses for itself.
func bare(j core.Job) core.Job {
	if j.Lease != "" {
		j.Lease = "held"
	}
	return j
}

// bareAll returns jobs without the values of their leases.
func bareAll(jobs []core.Job) []core.Job {
	out := make([]core.Job, len(jobs))
	for i := range jobs {
		out[i] = bare(jobs[i])
	}
	return out
}
