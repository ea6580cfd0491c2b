package workflow

import (
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// stumble is told that an attempt of a step failed. The attempt is counted already.
// Remedies in their order: to try again, to go elsewhere, to go on, and else to fail
// what the step is in, which has remedies of its own.
func (m *move) stumble(r *row, f *failure) {
	r.Error, r.changed = f.text, true
	m.blame(r, f)
	if m.again(r, f) {
		return
	}
	failed, by := m.escalate(r, f)
	if by != nil && by.light {
		m.need(core.Wanted{IDs: []core.ID{by.ID}})
		return
	}
	if by == nil && m.unreadTop(r) {
		return
	}
	for _, x := range failed {
		x.Error = f.text
		m.finish(x, core.StepFailed)
		m.record(core.EntryStepFailed, x.Path, details{Error: f.text})
	}
	if by == nil {
		m.lose(r, failed, f)
		return
	}
	m.dismiss(r, core.Completed, f.text)
	m.tellFailed(failed)
	if by != r || by.fanned() && !by.whole() {
		m.sweep(by.Path+"/", core.StepCanceled, "canceled")
	}
	m.divert(by, f)
}

// blame writes into the record of a call that went well why nothing came of it.
func (m *move) blame(r *row, f *failure) {
	for i := range m.attempts {
		if a := &m.attempts[i]; a.JobID == r.ID && a.Error == "" {
			a.Error = f.text
			r.call.Error = f.text
		}
	}
}

// again schedules the next attempt, if there is to be one.
func (m *move) again(r *row, f *failure) bool {
	if m.expired || !r.step.tries(r.Attempt, f) {
		return false
	}
	r.Status = core.StepReady
	pause := max(r.step.backoff.Delay(r.Attempt), min(f.pause, core.MaxBackoff))
	m.queue(r, core.Retryable, m.now.Add(pause).Truncate(time.Millisecond))
	due := r.dueAt()
	m.record(core.EntryRetried, r.Path, details{Attempt: r.Attempt, Error: f.text, Until: core.FormatTime(due)})
	m.state(core.StepMoved{Run: m.run, Event: m.event, Step: r.Step, Attempt: r.call, DueAt: due})
	return true
}

// tries reports whether a step is tried again after so many attempts, the last of which failed.
func (s *step) tries(attempts int, f *failure) bool {
	return !f.final && attempts < s.attempts && (len(s.retried) == 0 || matches(s.retried, f.class))
}

// dueAt is when the job of a step that was scheduled is due.
func (r *row) dueAt() time.Time {
	if r.end != nil {
		return r.end.DueAt
	}
	return r.job.DueAt
}

// escalate finds who has a remedy: the step itself, or what it is in, or nobody (nil).
// Those below have failed for good.
func (m *move) escalate(r *row, f *failure) (failed []*row, by *row) {
	for x := r; x != nil; x = m.rows[x.ParentID] {
		if x.step.remedied(f.class) {
			return failed, x
		}
		failed = append(failed, x)
	}
	return failed, nil
}

// remedied reports whether the run goes on from a step after a failure.
func (s *step) remedied(class core.ErrorClass) bool { return s.proceeds || s.caught(class) != nil }

// caught is where a failure sends the run; nil if no entry of catch matches.
func (s *step) caught(class core.ErrorClass) *step {
	for _, c := range s.catches {
		if matches(c.classes, class) {
			return c.to
		}
	}
	return nil
}

// divert goes on from a step that failed and has a remedy.
func (m *move) divert(r *row, f *failure) {
	to, way, problem := m.detour(r, f)
	state := m.stateAfter(r, problem)
	r.Error = f.text
	m.passOn(r, state)
	m.finish(r, core.StepFailed)
	m.record(core.EntryStepFailed, r.Path, way)
	m.moved(r)
	m.proceed(r, to, state, r.troubled(problem, f.class))
}

// detour is where the run goes from a step that failed and has a remedy, and what the
// history and the steps to come are told of the failure.
func (m *move) detour(r *row, f *failure) (to *step, way details, problem *trouble) {
	way = details{Error: f.text, Goto: "continue"}
	if to = r.step.caught(f.class); to != nil {
		way.Goto = to.name
	} else {
		to = r.step.next
	}
	return to, way, &trouble{Class: f.class, Message: f.text, Status: f.status, Step: r.Name}
}

// troubled is what goes along to the steps that come after a failure.
func (r *row) troubled(problem *trouble, class core.ErrorClass) carry {
	c := readCarry(r.Carry)
	c.Error = problem
	if r.step.caught(class) != nil {
		c.Caught = r.Path
	}
	return c
}

// stateAfter is what a step that failed passes on.
func (m *move) stateAfter(r *row, problem *trouble) []byte {
	state, err := m.scope(r, r.Attempt).text()
	if err == nil {
		state, err = checked(annotated(state, problem), nil)
	}
	if err != nil {
		return []byte("null") // a payload that is too large for a state, and no input made it smaller
	}
	return state
}

// lose ends the run because of a step for whose failure there is no remedy.
func (m *move) lose(r *row, failed []*row, f *failure) {
	why, again := stepError(r.Path)+f.text, m.failing()
	job := core.Dead
	if again { // the dead job is that of the step that failed first
		job = core.Completed
	}
	m.dismiss(r, job, f.text)
	m.tellFailed(failed)
	if r.ParentID != "" || r.fanned() && !r.whole() {
		m.sweep("", core.StepCanceled, "canceled")
	}
	switch {
	case again:
		m.failAside(r, why)
	case !m.aside(r, f, why):
		m.fail(why, r)
	}
}

// stepError is what the error of a run begins with that failed with a step.
func stepError(path string) string { return "step " + path + ": " }

// isOf reports whether a run failed because of the step with this path.
func isOf(runError, path string) bool { return strings.HasPrefix(runError, stepError(path)) }

func (m *move) tellFailed(failed []*row) {
	for _, x := range failed {
		m.moved(x)
	}
}
