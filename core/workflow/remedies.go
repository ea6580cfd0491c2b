package workflow

import (
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// attemptFailed handles a failed attempt, which is counted already. It tries the remedies in
// their order: another attempt, another step, going on. If the step has none, the step above it
// fails, which has remedies of its own. The steps below the one with the remedy are canceled,
// since their results are of no use.
func (m *move) attemptFailed(r *row, f *failure) {
	r.Error, r.changed = f.text, true
	// The record of the call shows the reason, also if another attempt follows.
	m.markUnusable(r, f)
	if m.retry(r, f) {
		return
	}
	// From here on the attempt is final for r. by has the remedy, and failed are the steps that
	// end with r.
	failed, by := m.escalate(r, f)
	// The remedy passes on the state of its step, which was not read.
	if by != nil && by.partial {
		m.need(core.Wanted{IDs: []core.ID{by.ID}})
		return
	}
	if by == nil && m.topUnread(r) {
		return
	}
	for _, x := range failed {
		x.Error = f.text
		m.finish(x, core.StepFailed)
		m.record(core.EntryStepFailed, x.Path, details{Error: f.text})
	}
	if by == nil {
		m.failRun(r, failed, f)
		return
	}
	m.endJob(r, core.Completed, f.text)
	m.stateFailures(failed)
	// Other branches may still be running.
	if by != r || by.fanned() && !by.allEnded() {
		m.sweep(by.Path+"/", core.StepCanceled, core.Completed, "canceled")
	}
	m.continueAfter(by, f)
}

// markUnusable writes into the record of a successful call why its reply was not usable. The
// call had been recorded as a success before its reply was read.
func (m *move) markUnusable(r *row, f *failure) {
	for i := range m.attempts {
		if a := &m.attempts[i]; a.JobID == r.ID && a.Error == "" {
			a.Error = f.text
			r.call.Error = f.text
		}
	}
}

// retry schedules the next attempt. It returns false if no attempt is left or allowed.
func (m *move) retry(r *row, f *failure) bool {
	if m.expired || !r.step.tries(r.Attempt, f) {
		return false
	}
	r.Status = core.StepReady
	// The receiver's Retry-After may lengthen the pause, up to a bound, and never shortens it.
	pause := max(r.step.backoff.Delay(r.Attempt), min(f.pause, core.MaxBackoff))
	m.queue(r, core.Retryable, m.now.Add(pause).Truncate(time.Millisecond))
	due := r.dueAt()
	m.record(core.EntryRetried, r.Path, details{Attempt: r.Attempt, Error: f.text, Until: core.FormatTime(due)})
	m.state(core.StepMoved{Run: m.run, Event: m.event, Step: r.Step, Attempt: r.call, DueAt: due})
	return true
}

// tries reports whether a step is tried again after the given number of attempts, the last of
// which failed. attempts counts the failed attempt. The classes of retry.errors decide; without
// any, all classes are retried.
func (s *step) tries(attempts int, f *failure) bool {
	return !f.final && attempts < s.attempts && (len(s.retried) == 0 || matches(s.retried, f.class))
}

// dueAt returns when the job of a scheduled step is due.
func (r *row) dueAt() time.Time {
	if r.end != nil {
		return r.end.DueAt
	}
	return r.job.DueAt
}

// escalate finds the step with a remedy: the step itself, or a step above it, or nil. The steps
// below that one have failed for good. It goes upwards, so the innermost remedy wins.
func (m *move) escalate(r *row, f *failure) (failed []*row, by *row) {
	for x := r; x != nil; x = m.rows[x.ParentID] {
		if x.step.remedied(f.class) {
			return failed, x
		}
		failed = append(failed, x)
	}
	return failed, nil
}

// remedied reports whether the run continues after this step fails.
func (s *step) remedied(class core.ErrorClass) bool { return s.proceeds || s.caught(class) != nil }

// caught returns the step to which a failure sends the run; nil if no entry of catch
// matches.
func (s *step) caught(class core.ErrorClass) *step {
	for _, c := range s.catches {
		if matches(c.classes, class) {
			return c.to
		}
	}
	return nil
}

// continueAfter continues after a failed step that has a remedy. The step counts as failed in
// the history, but the run goes on.
func (m *move) continueAfter(r *row, f *failure) {
	to, way, problem := m.detour(r, f)
	state := m.stateAfter(r, problem)
	r.Error = f.text
	m.setOutput(r, state)
	m.finish(r, core.StepFailed)
	m.record(core.EntryStepFailed, r.Path, way)
	m.moved(r)
	m.proceed(r, to, state, r.carryAfter(problem, f.class))
}

// detour returns the next step after a failed step that has a remedy, the details for the
// history, and the failure as later steps see it.
func (m *move) detour(r *row, f *failure) (to *step, way details, problem *caughtFailure) {
	way = details{Error: f.text, Goto: "continue"}
	if to = r.step.caught(f.class); to != nil {
		way.Goto = to.name
	} else {
		to = r.step.next
	}
	return to, way, &caughtFailure{Class: f.class, Message: f.text, Status: f.status, Step: r.Name}
}

// carryAfter returns the carry for the steps after a failure.
func (r *row) carryAfter(problem *caughtFailure, class core.ErrorClass) carry {
	c := readCarry(r.Carry)
	c.Error = problem
	if r.step.caught(class) != nil {
		c.Caught = r.Path
	}
	return c
}

// stateAfter returns the state that a failed step passes on. It is the state that the step
// received, with the failure in it if the state is an object.
func (m *move) stateAfter(r *row, problem *caughtFailure) []byte {
	state, err := m.scope(r, r.Attempt).text()
	if err == nil {
		state, err = checked(annotated(state, problem), nil)
	}
	if err != nil {
		return []byte("null") // the payload is too large for a state, and the step has no input
	}
	return state
}

// failRun ends the run because of a failed step without a remedy.
func (m *move) failRun(r *row, failed []*row, f *failure) {
	why, again := stepError(r.Path)+f.text, m.failing()
	job := core.Dead
	if again { // the dead job belongs to the step that failed first
		job = core.Completed
	}
	// A dead job shows operators where the run failed.
	m.endJob(r, job, f.text)
	m.stateFailures(failed)
	if r.ParentID != "" || r.fanned() && !r.allEnded() {
		m.sweep("", core.StepCanceled, core.Completed, "canceled")
	}
	switch {
	case again:
		m.failAfterOnFailure(r, why)
	case !m.startOnFailure(r, f, why):
		m.fail(why, r)
	}
}

// stepError returns the first part of the error of a run that failed with a step. Redrives find
// the failed step by it, so its form is fixed.
func stepError(path string) string { return "step " + path + ": " }

// isOf reports whether a run failed because of the step with this path.
func isOf(runError, path string) bool { return strings.HasPrefix(runError, stepError(path)) }

// stateFailures adds the facts of failed steps.
func (m *move) stateFailures(failed []*row) {
	for _, x := range failed {
		m.moved(x)
	}
}
