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
	s := r.step
	retried := len(s.retried) == 0 || matches(s.retried, f.class)
	if f.final || m.expired || !retried || r.Attempt >= s.attempts {
		return false
	}
	r.Status = core.StepReady
	pause := max(s.backoff.Delay(r.Attempt), min(f.pause, core.MaxBackoff))
	m.schedule(r, m.now.Add(pause).Truncate(time.Millisecond))
	due := r.dueAt()
	m.record(core.EntryRetried, r.Path, details{Attempt: r.Attempt, Error: f.text, Until: core.FormatTime(due)})
	m.state(core.StepMoved{Run: m.run, Event: m.event, Step: r.Step, Attempt: r.call, DueAt: due})
	return true
}

// dueAt is when the job of a step that was scheduled is due.
func (r *row) dueAt() time.Time {
	if r.end != nil {
		return r.end.DueAt
	}
	return r.due
}

// escalate finds who has a remedy: the step itself, or what it is in, or nobody (nil).
// Those below have failed for good.
func (m *move) escalate(r *row, f *failure) (failed []*row, by *row) {
	for x := r; x != nil; x = m.rows[x.ParentID] {
		if x.step.proceeds || x.step.caught(f.class) != nil {
			return failed, x
		}
		failed = append(failed, x)
	}
	return failed, nil
}

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
	to := r.step.caught(f.class)
	way := details{Error: f.text, Goto: "continue"}
	if to != nil {
		way.Goto = to.name
	} else {
		to = r.step.next
	}
	problem := &trouble{Class: f.class, Message: f.text, Status: f.status, Step: r.Name}
	state, err := m.scope(r, r.Attempt).text()
	if err == nil {
		state, err = checked(annotated(state, problem), nil)
	}
	if err != nil {
		state = []byte("null") // a payload that is too large for a state, and nobody has made it smaller
	}
	r.Error = f.text
	m.passOn(r, state)
	m.finish(r, core.StepFailed)
	m.record(core.EntryStepFailed, r.Path, way)
	m.moved(r)
	c := readCarry(r.Carry)
	c.Error = problem
	m.proceed(r, to, state, c)
}

// lose ends the run because of a step for whose failure there is no remedy.
func (m *move) lose(r *row, failed []*row, f *failure) {
	m.dismiss(r, core.Dead, f.text)
	m.tellFailed(failed)
	if r.ParentID != "" || r.fanned() && !r.whole() {
		m.sweep("", core.StepCanceled, "canceled")
	}
	m.fail(stepError(r.Path)+f.text, r)
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
