package workflow

import (
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An answer is late if its step ended before it: a sibling failed, the deadline came, or an
// operator canceled the run while the call was under way. The step keeps a late answer, so
// that a redrive from the failed step need not make the call again. The run itself does not
// change.
//
// Two other calls can answer a step: a call that an earlier epoch made for it, and a call
// that another worker made for an earlier attempt. Both carried the step's own idempotency
// key. Of these only a success counts. See visitOf.

// visitOf returns the epoch in the idempotency key of the step's calls. It is the epoch in
// which the run reached the step, also after a redrive from the failed step.
func visitOf(s core.Step) int {
	if c := readCarry(s.Carry); c.Visit > 0 {
		return c.Visit
	}
	return s.Epoch
}

// rowOf returns the step of an end. If the run was redriven since the attempt began, it is the
// copy of the step in the new epoch. It is nil if there is none, or if it was not read yet. The
// path and the epoch of the key identify the visit to the step: both epochs made the same call.
func (m *move) rowOf(e core.StepEnd) *row {
	began := e.Job.Situation.Step
	if began.Epoch == m.run.Epoch || began.ID == "" {
		return m.rows[began.ID]
	}
	m.need(core.Wanted{Paths: []string{began.Path}})
	for _, r := range m.order {
		if r.Path == began.Path && !r.partial && visitOf(r.Step) == visitOf(began) && m.aboveRead(r) {
			return r
		}
	}
	return nil
}

// aboveRead reports whether all steps above this step were read. If not, it asks for the first
// one that was not. Only with them can the move tell whether the run went on without the step.
func (m *move) aboveRead(r *row) bool {
	for r.ParentID != "" {
		above := m.rows[r.ParentID]
		if above == nil {
			m.need(core.Wanted{IDs: []core.ID{r.ParentID}})
			return false
		}
		r = above
	}
	return true
}

// late handles a call that was answered after its step had ended without it, or after its
// attempt had been replaced. It returns false if the answer changes nothing. Only http steps
// have late answers: the reply of a callback step carries no result.
func (m *move) late(r *row, e core.StepEnd) bool {
	if r.Type != "http" || r.Status == core.StepSucceeded || r.Output != nil {
		return false
	}
	switch {
	case e.Kind == core.Replied:
		return m.repliedLate(r, e)
	case e.Kind != core.Refused:
		return false
	// The call began before a redrive. Only the redrive's waiting is affected.
	case r.Epoch != e.Job.Situation.Step.Epoch:
		return m.earlierCallRefused(r, e)
	case r.Status.Open() || r.Status == core.StepFailed || r.Attempt != e.Job.Situation.Step.Attempt:
		return false
	}
	m.refusedLate(r, e)
	return true
}

// repliedLate handles a late success. If the reply cannot be a result, the call is repeated
// like a failed one.
func (m *move) repliedLate(r *row, e core.StepEnd) bool {
	result, err := resultOf(e.Body)
	var state []byte
	if err == nil {
		state, err = m.scope(r, r.Attempt+1).outputOf(r.step, result)
	}
	if err != nil {
		return false
	}
	if r.Status == core.StepFailed && !m.redrivable(r) {
		return false // the run continued without the step
	}
	r.Attempt++
	m.called(r, e)
	if r.Status.Open() {
		m.begin(r)
		m.succeed(r, r.step.next, state)
		return true
	}
	// The step had ended. It becomes a success, but the run stays as it is.
	m.endJob(r, core.Completed, "")
	if r.Status == core.StepFailed && !r.stored { // its job may be dead
		m.closed = append(m.closed, core.JobChange{ID: r.ID, Status: core.Completed, FinishedAt: m.now})
	}
	m.finish(r, core.StepSucceeded)
	m.setOutput(r, state)
	m.record(core.EntrySucceeded, r.Path, details{Late: true})
	m.moved(r)
	m.noteLateSuccessor(r, r.step.next, state, readCarry(r.Carry))
	return true
}

// noteLateSuccessor notes the successor of a step that ended late. The successor is a step that has
// ended as well, with which a redrive begins, or the end of the list.
func (m *move) noteLateSuccessor(r *row, to *step, state []byte, c carry) {
	above := m.rows[r.ParentID]
	switch {
	case !m.redrivable(r):
	case to != nil:
		n := c.visit(r.step, to)
		next := m.create(to, core.Step{
			ParentID: r.ParentID, Branch: r.Branch, Path: r.sibling(to.name, n), State: state, Carry: c.text(),
		})
		// No worker executes it now. A redrive from the failed step finds it like any canceled
		// step.
		next.Status, next.FinishedAt = core.StepCanceled, m.now
	case above == nil:
		r.Last = true
	default:
		r.Last, r.Output = true, state
		above.Fan.Ended++
		above.Fan.Bytes += len(state)
		above.changed = true
	}
}

// redrivable reports whether a redrive from the failed step would reach a step again. The
// run must have failed, or be failing, or be canceled, and no step above may have gone on
// without it. It asks for the steps above to be read in full.
func (m *move) redrivable(r *row) bool {
	if !m.failing() && m.run.Status != core.RunCanceled {
		return false
	}
	if r.ParentID != "" && m.rows[r.ParentID] == nil {
		return false
	}
	// A step above with an output has ended and gone on, with or without this step.
	for x := m.rows[r.ParentID]; x != nil; x = m.rows[x.ParentID] {
		if x.partial {
			m.need(core.Wanted{IDs: []core.ID{x.ID}})
			return false
		}
		if x.Output != nil {
			return false
		}
	}
	return true
}

// refusedLate handles a late failure. The step stays ended, and a redrive makes the call
// again. But if the step has a remedy by which the run would have continued, a redrive uses
// the remedy.
func (m *move) refusedLate(r *row, e core.StepEnd) {
	f := failureOf(e)
	r.Attempt++
	m.called(r, e)
	r.Error, r.changed = f.text, true
	c := readCarry(r.Carry)
	// A redrive need not wait for the lease of the worker any more.
	c.CallOver = true
	r.Carry = c.text()
	if !r.step.remedied(f.class) || r.step.tries(r.Attempt, f) || !m.redrivable(r) {
		m.record(core.EntryLate, r.Path, details{Error: f.text})
		m.moved(r)
		return
	}
	// The remedy is applied as if the failure had come in time.
	to, way, problem := m.detour(r, f)
	state := m.stateAfter(r, problem)
	m.finish(r, core.StepFailed)
	m.setOutput(r, state)
	way.Late = true
	m.record(core.EntryStepFailed, r.Path, way)
	m.moved(r)
	m.noteLateSuccessor(r, to, state, r.carryAfter(problem, f.class))
}

// earlierCallRefused handles the failure of a call that an earlier epoch began. A redrive made
// the step's job wait until that call is over; now the job need not wait any longer. If the
// step has ended again, the next redrive need not wait.
func (m *move) earlierCallRefused(r *row, e core.StepEnd) bool {
	c := readCarry(r.Carry)
	// The step waits for another call, or no longer waits.
	if c.Call != callOf(e.Job.Situation.Step) || !c.held().After(m.now) {
		return false
	}
	c.Held, c.Call = 0, ""
	r.Carry, r.changed = c.text(), true
	m.called(r, e)
	if r.Status.Open() {
		m.schedule(r, m.now)
	}
	m.record(core.EntryLate, r.Path, details{Error: failureOf(e).text})
	return true
}

// callOf names a call among the calls for one visit to a step. An attempt number alone is not
// enough, since each epoch counts from the beginning.
func callOf(s core.Step) string { return fmt.Sprintf("%d.%d", s.Epoch, s.Attempt) }

// failureOf returns the failure of a call. An attempt without an error text shows its class.
func failureOf(e core.StepEnd) *failure {
	text := e.Attempt.Error
	if text == "" {
		text = string(e.Class)
	}
	return &failure{class: e.Class, text: text, status: e.Attempt.StatusCode, final: e.Final, pause: e.RetryAfter}
}

// lostReason returns why an end changes nothing, for the log. The reasons are ordered from the
// most specific to the most general one.
func (m *move) lostReason(r *row, e core.StepEnd) string {
	began := e.Job.Situation.Step
	switch {
	case r == nil && began.Epoch != m.run.Epoch:
		return "the run was redriven from its start"
	case r == nil:
		return "the run is gone"
	case r.Status == core.StepCanceled || r.Status == core.StepSkipped:
		return "the step was over before: it is " + string(r.Status)
	case r.Epoch != began.Epoch && r.Status.Open():
		return "the run was redriven, and the step is tried again"
	}
	return "another attempt stands"
}

// held returns until when a call may be under way that began before a redrive.
func (c carry) held() time.Time {
	if c.Held == 0 {
		return time.Time{}
	}
	return time.UnixMilli(c.Held).UTC()
}
