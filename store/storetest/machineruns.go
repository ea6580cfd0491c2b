package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// Workflow runs, in random sequences. machine.go has the other calls. The transitions here make
// no sense for a workflow, and a store does not check that.

// acceptRuns accepts an event with one or two runs of the sequence's workflow.
func (m *machine) acceptRuns(t *rapid.T) {
	a := core.Arrival{Event: m.event()}
	a.Event.DeliveryID = rapid.SampledFrom([]string{"", "", "d1", "d3"}).Draw(t, "delivery id")
	for range rapid.IntRange(1, 2).Draw(t, "runs") {
		n := core.NewRun{ID: m.ids.Next(), Workflow: m.flow.Workflow(), Definition: definition(defaultWorkflow), StepID: m.ids.Next(), Step: "first",
			Timeout: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "timeout")}
		a.Runs = append(a.Runs, n)
		a.Jobs = append(a.Jobs, core.NewJob{ID: n.StepID, Lane: m.flow, MaxAttempts: core.Unlimited,
			Key: rapid.SampledFrom([]string{"", "", "k1"}).Draw(t, "key")})
	}
	m.arrivals = append(m.arrivals, a)
	m.acceptBoth(a, nil)
}

// takeRuns takes jobs of the sequence's workflow and compares their situations as well.
func (m *machine) takeRuns(t *rapid.T) {
	q := []core.Quota{{Lane: m.flow, N: rapid.IntRange(1, 3).Draw(t, "n"), Hold: leaseTime}}
	twins := map[core.ID]core.TakenJob{}
	want, _ := m.model.Take(context.Background(), m.now, q)
	for _, j := range want {
		twins[j.ID] = j
	}
	got := m.takeQuotas(q...)
	m.equal("Take", slices.Sorted(slices.Values(ids(got))), slices.Sorted(slices.Values(ids(want))))
	for _, j := range got {
		twin := twins[j.ID]
		m.equal("Take: job", bare(j.Job), bare(twin.Job))
		m.equal("Take: situation", j.Situation, twin.Situation)
		m.heldJobs = append(m.heldJobs, &heldJob{job: j.Job, twin: twin.Job})
	}
}

// drawRun draws a run of the model. It skips the call if there are none.
func (m *machine) drawRun(t *rapid.T) core.Run {
	if len(m.model.runs) == 0 {
		t.Skip("there are no runs")
	}
	return *m.model.runs[rapid.SampledFrom(slices.Sorted(maps.Keys(m.model.runs))).Draw(t, "run")]
}

// stepsOf returns the steps of a run in the model, by id.
func (m *machine) stepsOf(run core.ID) (steps []core.Step) {
	for _, id := range slices.Sorted(maps.Keys(m.model.steps)) {
		if s := m.model.steps[id]; s.RunID == run {
			steps = append(steps, *s)
		}
	}
	return steps
}

// transitSome makes transitions of one or two runs. Some are behind, and some were made before.
// The answers say for each transition whether it is made. A repeated transition stands first in
// its call, since another transition of its run could follow it.
func (m *machine) transitSome(t *rapid.T) {
	var ts []core.Transition
	for range rapid.IntRange(1, 2).Draw(t, "transitions") {
		run := m.drawRun(t)
		if slices.ContainsFunc(ts, func(u core.Transition) bool { return u.Run.ID == run.ID }) {
			continue
		}
		if len(m.madeTransitions) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
			u := rapid.SampledFrom(m.madeTransitions).Draw(t, "which")
			if m.model.runs[u.Run.ID] != nil && len(ts) == 0 {
				ts = append(ts, u)
				continue
			}
		}
		run.Seq = max(0, run.Seq-rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "behind"))
		ts = append(ts, m.drawTransition(t, run))
	}
	m.runsChanged = true
	want, _ := m.model.Transit(context.Background(), ts...)
	m.equal("Transit", m.transited(ts...), want)
	for i, u := range ts {
		m.eventsChanged = m.eventsChanged || u.GivesRise != nil
		for _, a := range u.Attempts {
			m.settled = append(m.settled, a.JobID)
		}
		if want[i].Made {
			m.madeTransitions = append(m.madeTransitions, u)
		}
	}
}

// drawTransition draws a transition of a run. It changes some of the run's steps and jobs, adds up
// to two steps, and may end the run.
func (m *machine) drawTransition(t *rapid.T, run core.Run) core.Transition {
	types := []core.EntryType{core.EntryStarted, core.EntrySucceeded, core.EntryRedriven, core.EntryFanned}
	u := m.transitionOf(run, rapid.SliceOfN(rapid.SampledFrom(types), 1, 3).Draw(t, "entries")...)
	u.Run.Step, u.Run.Epoch = "step", run.Epoch+rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "epochs")
	u.Run.Status = rapid.SampledFrom(core.RunStatuses()).Draw(t, "status")
	u.Run.Output, u.Run.Error, u.Run.FinishedAt = nil, "", time.Time{}
	if u.Run.Status.Finished() {
		u.Run.FinishedAt, u.Run.Output, u.Run.Error = m.now, []byte(`1`), "data: too large"
	}
	before := m.stepsOf(run.ID)
	for range rapid.IntRange(0, 2).Draw(t, "new steps") {
		m.drawStep(t, &u, before)
	}
	for _, s := range before {
		m.drawChange(t, &u, s)
	}
	if rapid.IntRange(0, 3).Draw(t, "gives rise") == 0 {
		u.GivesRise = &core.Arrival{Event: m.event(), Jobs: []core.NewJob{{ID: m.ids.Next(), Lane: m.lanes[0], MaxAttempts: 1}}}
	}
	return u
}

// drawStep adds a new step to a transition, sometimes inside another step, to a depth of at most
// 5.
func (m *machine) drawStep(t *rapid.T, u *core.Transition, before []core.Step) {
	s := m.step(u.Run, "", rapid.SampledFrom([]core.StepStatus{core.StepReady, core.StepRunning, core.StepFailed}).Draw(t, "status"))
	s.Path = "path/" + string(s.ID)
	before = slices.DeleteFunc(slices.Clone(before), func(above core.Step) bool { return above.Epoch != s.Epoch })
	if len(before) > 0 && rapid.Bool().Draw(t, "inside") {
		above := rapid.SampledFrom(before).Draw(t, "above")
		if len(m.model.situation(above.ID).Above) < 4 {
			s.ParentID, s.Branch, s.Last = above.ID, "branch", rapid.Bool().Draw(t, "last")
		}
	}
	u.New = append(u.New, s)
	if rapid.Bool().Draw(t, "job") {
		j := core.StepJob{ID: s.ID, Status: rapid.SampledFrom([]core.Status{"", core.Scheduled, core.Retryable}).Draw(t, "waits as"),
			DueAt: m.now.Add(rapid.SampledFrom([]time.Duration{0, -time.Second, leaseTime}).Draw(t, "due in"))}
		u.Jobs = append(u.Jobs, j)
		if j.Status == "" && !j.DueAt.After(m.now) && rapid.Bool().Draw(t, "take") {
			u.Take = core.Taking{Job: j.ID, Source: m.model.events[u.Run.EventID].Source, Until: m.now.Add(leaseTime)}
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "token") == 0 {
		m.armed[s.ID] = true
		u.Tokens = append(u.Tokens, core.Token{Hash: tokenOf(s.ID), StepID: s.ID, ExpiresAt: m.now.Add(leaseTime)})
	}
	if rapid.IntRange(0, 2).Draw(t, "receipt") == 0 {
		m.armed[s.ID] = true
		u.Receipts = append(u.Receipts, receiptOf(s.ID))
	}
}

// drawChange adds changes of a step and of its job to a transition. Each part is drawn by itself,
// so a job may end without its step and a step without its job. A completed job does not change.
func (m *machine) drawChange(t *rapid.T, u *core.Transition, s core.Step) {
	if rapid.IntRange(0, 2).Draw(t, "changed") == 0 {
		all := []core.StepStatus{core.StepSucceeded, core.StepFailed, core.StepSkipped, core.StepCanceled}
		s = ended(s, m.rig, rapid.SampledFrom(all).Draw(t, "status"))
		if s.State != nil && rapid.Bool().Draw(t, "passes") {
			s.Output = s.State
		}
		s.Last, s.Fan = s.ParentID != "" && rapid.Bool().Draw(t, "last"), core.Fan{Total: rapid.IntRange(0, 2).Draw(t, "total"), Bytes: rapid.IntRange(0, 2).Draw(t, "bytes")}
		u.Changed = append(u.Changed, changeOf(s))
		u.Disarm = append(u.Disarm, s.ID)
	}
	if j := m.model.jobs[s.ID]; j == nil || j.Status == core.Completed || rapid.Bool().Draw(t, "its job") {
		return
	}
	// A job either waits again or ends.
	c := core.JobChange{ID: s.ID, Status: rapid.SampledFrom([]core.Status{core.Retryable, core.Scheduled, core.Available}).Draw(t, "waits"), DueAt: m.now.Add(time.Second), Error: "network: refused"}
	if rapid.Bool().Draw(t, "over") {
		c.Status, c.DueAt, c.FinishedAt = rapid.SampledFrom([]core.Status{core.Completed, core.Dead}).Draw(t, "job"), time.Time{}, m.now
	}
	u.JobsEnd = append(u.JobsEnd, c)
	u.Attempts = append(u.Attempts, core.AttemptRecord{JobID: s.ID, Lease: core.Lease(u.Mark), Attempt: core.Attempt{Number: 1, StartedAt: m.now}})
}

// askRuns calls each method that reads runs and their steps. The answers are compared for a random
// filter, epoch and page.
func (m *machine) askRuns(t *rapid.T) {
	ctx := context.Background()
	f := core.RunFilter{Workflow: m.flow.Workflow(), Status: rapid.SampledFrom(append(core.RunStatuses(), "")).Draw(t, "status"), Limit: 2}
	runs, _ := m.model.Runs(ctx, f)
	got := m.runs(f)
	m.equal("Runs", got.Items, runs.Items)
	m.equal("Runs: More", got.More, runs.More)
	run := m.drawRun(t)
	w := core.Wanted{Open: rapid.Bool().Draw(t, "open"), Failed: rapid.Bool().Draw(t, "failed")}
	var all []core.ID
	for _, s := range m.stepsOf(run.ID) {
		all = append(all, s.ID)
		if rapid.Bool().Draw(t, "some") {
			w.IDs, w.Paths, w.Leaves = append(w.IDs, s.ID), append(w.Paths, s.Path), append(w.Leaves, s.ID)
		}
	}
	epoch := rapid.IntRange(1, run.Epoch).Draw(t, "epoch")
	steps, _ := m.model.Survey(ctx, run.ID, epoch, w)
	m.equal("Survey", m.survey(run.ID, epoch, w), steps)
	situations, _ := m.model.Situations(ctx, all)
	m.equal("Situations", m.situations(all...), situations)
	after := rapid.IntRange(0, run.Seq).Draw(t, "after")
	entries, _ := m.model.History(ctx, run.ID, after, 2)
	m.equal("History", m.history(run.ID, after, 2), entries)
}

// runsEvery is how often the rows of runs are compared after calls that must not change them. A
// comparison sends several statements for each run and step, which was half of a sequence's time.
const runsEvery = 4

// compareRuns fails unless the store shows the sequence's runs as the model does. It compares
// their jobs each time. It compares their other rows after each call that may change them, and
// otherwise after each runsEvery-th call.
func (m *machine) compareRuns() {
	ctx := context.Background()
	f := core.JobFilter{Lane: m.flow, Limit: core.MaxPage}
	want, _ := m.model.Jobs(ctx, f)
	m.equal("Jobs of runs", bareAll(m.jobs(f).Items), bareAll(want.Items))
	if m.unchanged++; !m.runsChanged && m.unchanged < runsEvery {
		return
	}
	m.unchanged = 0
	twin := *m.rig
	twin.store = m.model
	for _, run := range slices.Sorted(maps.Keys(m.model.runs)) {
		m.equal(fmt.Sprint("tale of ", run), m.runView(run), twin.runView(run))
	}
	m.equal("runs", len(m.runs(core.RunFilter{Workflow: m.flow.Workflow(), Limit: core.MaxPage}).Items), len(m.model.runs))
}
