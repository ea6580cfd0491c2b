package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The part of the [Model] with workflow runs. Rows are maps by id. A situation is read from them
// at one moment, since the lock is held.

// runRows holds the rows of runs. The Model embeds it.
type runRows struct {
	definitions map[string]core.Definition
	runs        map[core.ID]*core.Run
	steps       map[core.ID]*core.Step
	history     map[core.ID][]marked // by run
	tokens      map[string]core.Token
	receipts    map[string]core.ID // the run of each receipt
}

// marked is an entry with the mark of the transition that made it. The mark tells a repetition
// from another transition.
type marked struct {
	core.Entry
	mark core.ID
}

func newRunRows() runRows {
	return runRows{
		definitions: map[string]core.Definition{}, runs: map[core.ID]*core.Run{}, steps: map[core.ID]*core.Step{},
		history: map[core.ID][]marked{}, tokens: map[string]core.Token{}, receipts: map[string]core.ID{},
	}
}

// addRun stores a run of an arrival if its first step's job is stored. A job is left out if its
// key is taken, and its run then as well.
func (m *Model) addRun(a core.Arrival, n core.NewRun) {
	e := a.Event
	if m.jobs[n.StepID] == nil {
		return
	}
	if _, stored := m.definitions[n.Definition.Hash]; !stored {
		m.definitions[n.Definition.Hash] = n.Definition
	}
	run := &core.Run{ID: n.ID, Workflow: n.Workflow, EventID: e.ID, Definition: n.Definition.Hash, Status: core.RunPending,
		Epoch: 1, Step: n.Step, CreatedAt: e.CreatedAt, DeadlineAt: a.Deadline(n)}
	m.runs[n.ID] = run
	m.steps[n.StepID] = &core.Step{ID: n.StepID, RunID: n.ID, Epoch: 1, Path: n.Step, Name: n.Step, Type: n.StepType,
		Status: core.StepReady, StartedAt: e.CreatedAt}
}

// runsOf returns the number of runs that an event started.
func (m *Model) runsOf(event core.ID) (n int) {
	for _, r := range m.runs {
		if r.EventID == event {
			n++
		}
	}
	return n
}

// Definition implements [core.Runs].
func (m *Model) Definition(_ context.Context, hash string) (core.Definition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.definitions[hash]
	if !ok {
		return d, core.Refuse(core.NotFound, "definition not found")
	}
	return d, nil
}

// Situations implements [core.Runs].
func (m *Model) Situations(_ context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[core.ID]core.Situation{}
	for _, id := range steps {
		if m.steps[id] != nil {
			found[id] = m.situation(id)
		}
	}
	return found, nil
}

// situation returns the situation of a step, or the zero Situation if there is no such step. The
// steps around it come without their texts.
func (m *Model) situation(id core.ID) (s core.Situation) {
	step := m.steps[id]
	if step == nil {
		return s
	}
	s.Step, s.Run = copied(step), *m.runs[step.RunID]
	s.Step.HeldUntil = time.Time{}
	for above := m.steps[step.ParentID]; above != nil; above = m.steps[above.ParentID] {
		light := *above
		light.State, light.Output, light.HeldUntil = nil, nil, time.Time{}
		s.Above = append(s.Above, light)
	}
	return s
}

// copied returns a step whose texts are its own, so that a caller's change does not reach the
// store.
func copied(s *core.Step) core.Step {
	c := *s
	c.State, c.Output = slices.Clone(s.State), slices.Clone(s.Output)
	return c
}

// Survey implements [core.Runs].
func (m *Model) Survey(_ context.Context, run core.ID, epoch int, w core.Wanted) (steps []core.Step, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.steps)) {
		if s := m.steps[id]; s.RunID == run && s.Epoch == epoch && wants(w, s) {
			c := copied(s)
			if !w.All {
				c.HeldUntil = time.Time{}
			}
			steps = append(steps, c)
		}
	}
	return steps, nil
}

// wants reports whether one of the wanted things is this step.
func wants(w core.Wanted, s *core.Step) bool {
	return w.All || w.Open && s.Status.Open() || w.Failed && s.Status == core.StepFailed ||
		slices.Contains(w.IDs, s.ID) || slices.Contains(w.Paths, s.Path) || s.Last && slices.Contains(w.Leaves, s.ParentID)
}

// Transit implements [core.Runs].
func (m *Model) Transit(ctx context.Context, ts ...core.Transition) (results []core.Transited, err error) {
	made := false
	defer func() { m.audit(ctx, made) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range ts {
		r := m.transited(t, m.transit(t))
		results, made = append(results, r), made || r.Made
	}
	return results, nil
}

// transited returns the result of a transition. The caller holds the lock.
func (m *Model) transited(t core.Transition, made bool) core.Transited {
	j := m.jobs[t.Take.Job]
	return core.Transited{Made: made, Taken: made && j != nil && j.Lease == core.Lease(t.Mark)}
}

// transit makes one transition and reports whether it is made, also if it was made before. The
// caller holds the lock.
func (m *Model) transit(t core.Transition) bool {
	run, history := m.runs[t.Run.ID], m.history[t.Run.ID]
	if run == nil {
		return false
	}
	if run.Seq != t.Seq {
		return t.Seq < len(history) && history[t.Seq].mark == t.Mark
	}
	for _, e := range t.Entries {
		m.history[run.ID] = append(m.history[run.ID], marked{e, t.Mark})
	}
	m.moveSteps(run, t)
	m.moveJobs(run, t)
	for _, token := range t.Tokens {
		m.tokens[token.Hash] = token
	}
	for _, receipt := range t.Receipts {
		m.receipts[receipt] = run.ID
	}
	maps.DeleteFunc(m.tokens, func(_ string, token core.Token) bool { return slices.Contains(t.Disarm, token.StepID) })
	m.storeArrival(t.GivesRise)
	if d := t.Definition; d.Hash != "" {
		m.definitions[d.Hash] = d
	}
	run.Definition = t.Run.Definition
	run.Status, run.Epoch, run.Seq, run.Step = t.Run.Status, t.Run.Epoch, t.Run.Seq, t.Run.Step
	run.Output, run.Error = slices.Clone(t.Run.Output), t.Run.Error
	run.Written, run.Writers = t.Run.Written, t.Run.Writers
	run.DeadlineAt, run.StartedAt, run.FinishedAt = t.Run.DeadlineAt, t.Run.StartedAt, t.Run.FinishedAt
	return true
}

// moveSteps adds the new steps of a transition and changes others.
func (m *Model) moveSteps(run *core.Run, t core.Transition) {
	for _, n := range t.New {
		s := copied(&n)
		s.RunID = run.ID
		m.steps[s.ID] = &s
	}
	for _, c := range t.Changed {
		s := m.steps[c.ID]
		s.Status, s.Attempt, s.Output, s.Error = c.Status, c.Attempt, slices.Clone(c.Output), c.Error
		s.Carry, s.Fan, s.Last, s.FinishedAt = c.Carry, c.Fan, c.Last, c.FinishedAt
	}
}

// moveJobs notes the holders of ended steps, records attempts, adds jobs and changes jobs. The
// holders come first, because the changes remove the leases.
func (m *Model) moveJobs(run *core.Run, t core.Transition) {
	for _, id := range t.Held {
		m.steps[id].HeldUntil = time.Time{}
		if j := m.jobs[id]; j != nil && j.Status == core.Running {
			m.steps[id].HeldUntil = j.DueAt
		}
	}
	for _, a := range t.Attempts {
		m.attempts[a.JobID] = append(m.attempts[a.JobID], leased{a.Attempt, a.Lease})
	}
	for _, n := range t.Jobs {
		m.jobs[n.ID] = &core.Job{
			ID: n.ID, EventID: run.EventID, Lane: core.WorkflowLane(run.Workflow), Status: cmp.Or(n.Status, core.Available),
			MaxAttempts: core.Unlimited, DueAt: n.DueAt, CreatedAt: t.Entries[0].At,
		}
		if n.ID == t.Take.Job {
			m.takeStep(m.jobs[n.ID], t)
		}
	}
	for _, c := range t.JobsEnd {
		if j := m.jobs[c.ID]; j != nil {
			if j.ScheduledAt.IsZero() {
				j.ScheduledAt = j.DueAt
			}
			j.Status, j.DueAt, j.Lease, j.LastError, j.FinishedAt = c.Status, c.DueAt, "", c.Error, c.FinishedAt
		}
	}
}

// takeStep leases a new job of a transition, unless its lane is held, or was a moment ago, or its source is.
func (m *Model) takeStep(j *core.Job, t core.Transition) {
	now := t.Entries[0].At
	if m.heldSource(j, now) || m.gate(j.Lane).HeldUntil.After(now.Add(-core.RampTime)) {
		return
	}
	j.Status, j.Lease, j.Attempt = core.Running, core.Lease(t.Mark), 1
	j.ScheduledAt, j.DueAt = j.DueAt, t.Take.Until
}

// Awaited implements [core.Runs].
func (m *Model) Awaited(_ context.Context, now time.Time, hash, receipt string) (core.Awaiting, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := core.Awaiting{RunID: m.receipts[receipt]}
	if t, ok := m.tokens[hash]; ok && t.ExpiresAt.After(now) {
		found.StepID = t.StepID
	}
	return found, nil
}

// Run implements [core.Chronicle].
func (m *Model) Run(_ context.Context, id core.ID) (core.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	if r == nil {
		return core.Run{}, core.Refuse(core.NotFound, "run not found")
	}
	return *r, nil
}

// Runs implements [core.Chronicle].
func (m *Model) Runs(_ context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return list(m.runs, f.After, f.Limit, func(row *core.Run) (core.Run, bool) {
		r := *row
		r.Output = nil
		return r, (f.Status == "" || r.Status == f.Status) && (f.Workflow == "" || r.Workflow == f.Workflow) &&
			(f.EventID == "" || r.EventID == f.EventID)
	}), nil
}

// Steps implements [core.Chronicle]. The step that makes the page reach MaxRead is its last one.
func (m *Model) Steps(_ context.Context, run core.ID, epoch int, after core.ID, limit int) (page core.Page[core.Step], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, id := range slices.Sorted(maps.Keys(m.steps)) {
		s := m.steps[id]
		if s.RunID != run || s.Epoch != epoch || id <= after {
			continue
		}
		if len(page.Items) >= limit || size >= core.MaxRead {
			page.More = true
			break
		}
		page.Items = append(page.Items, copied(s))
		size += len(s.State) + len(s.Output)
	}
	return page, nil
}

// Outline implements [core.Chronicle].
func (m *Model) Outline(_ context.Context, run core.ID, epoch int) (all []core.Step, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.steps)) {
		if s := m.steps[id]; s.RunID == run && s.Epoch == epoch {
			all = append(all, outlined(copied(s)))
		}
	}
	return all, nil
}

// History implements [core.Chronicle].
func (m *Model) History(_ context.Context, run core.ID, after, limit int) (entries []core.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.history[run] {
		if e.Seq > after && len(entries) < limit {
			entries = append(entries, e.Entry)
		}
	}
	return entries, nil
}

// purgeRuns deletes up to limit runs that ended before a time, with all their rows. It returns the
// event of each. Their jobs are purged by themselves.
func (m *Model) purgeRuns(before time.Time, limit int) (events []core.ID) {
	var over []*core.Run
	for _, r := range m.runs {
		if !r.FinishedAt.IsZero() && r.FinishedAt.Before(before) {
			over = append(over, r)
		}
	}
	slices.SortFunc(over, func(a, b *core.Run) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), strings.Compare(string(a.ID), string(b.ID)))
	})
	over = over[:min(limit, len(over))]
	for _, r := range over {
		maps.DeleteFunc(m.tokens, func(_ string, t core.Token) bool { return m.steps[t.StepID].RunID == r.ID })
		maps.DeleteFunc(m.receipts, func(_ string, run core.ID) bool { return run == r.ID })
		maps.DeleteFunc(m.steps, func(_ core.ID, s *core.Step) bool { return s.RunID == r.ID })
		delete(m.history, r.ID)
		delete(m.runs, r.ID)
		events = append(events, r.EventID)
	}
	return events
}
