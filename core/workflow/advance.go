package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A move is one transition while it is being computed. It is used by one goroutine and never
// reused. All its writes are collected in its fields, and result returns them.
type move struct {
	d     *Definition
	pen   Pen
	now   time.Time
	event core.Event
	have  core.Wanted
	seq   int // of the run as it was read
	run   core.Run

	rows  map[core.ID]*row
	order []*row // in the order in which the run reached them
	ahead []*row // to be entered

	// sole says that the run is at a single step, which is known. Then no other step has to
	// be read to know which steps are open.
	sole    bool
	expired bool   // the deadline has come: no step begins
	full    string // path of the step at which the run became full: its history had room only for its end, or it wrote too much; empty if it is not full
	why     string // the error of a run that is full
	kept    []string
	begun   int  // branches that began in this move and have not ended
	entered int  // inline steps entered in this move
	docs    docs // the documents that were read, with their size
	written int  // bytes of states and outputs

	missing    core.Wanted
	entries    []core.Entry
	attempts   []core.AttemptRecord
	tokens     []core.Token
	receipts   []string
	disarmed   []core.ID
	held       []core.ID // steps that this move ends while their calls may be under way
	facts      []core.Fact
	closed     []core.JobChange // of an earlier epoch
	obituaryOf *row             // the step whose failure the obituary reports; nil if none is due
	recast     core.Definition  // the new definition of the run; zero if it does not change
}

// move makes an empty move for a run as it was read. Times are cut to milliseconds, the precision of stored times.
func (d *Definition) move(p Pen, v View) *move {
	now := p.Now.UTC().Truncate(time.Millisecond)
	return &move{
		d: d, pen: p, now: now, event: v.Event, have: v.Have, seq: v.Run.Seq, run: v.Run,
		rows: map[core.ID]*row{}, expired: passed(v.Run.DeadlineAt, now), kept: keptOf(v),
	}
}

// Advance moves a run past the ends of its steps, in the order of the ends. An end counts
// if its step is still in the attempt in which the end began. If several ends are of one
// attempt, the first counts and the others are lost.
//
// After the deadline of the run the ends are still recorded, but no step begins any more.
// The open steps are skipped, and the run fails unless the ends completed it.
func (d *Definition) Advance(p Pen, v View, ends ...core.StepEnd) Move {
	m := d.move(p, v)
	// Each end is applied to the effects of the ends before it, as if each were a transition of
	// its own.
	m.load(v, ends)
	lost := map[int]string{}
	var last *row
	for i, e := range ends {
		r := m.rowOf(e)
		if r == nil || !m.applyEnd(r, e) {
			lost[i] = m.lostReason(r, e)
			continue
		}
		last = r
		m.enterAll()
	}
	if last == nil {
		return Move{Lost: lost, Missing: m.missing}
	}
	// The run has become full in this move. All that was computed is dropped.
	if m.full != "" {
		m = m.exhausted(v, ends, lost)
	}
	m.receipts = receiptsOf(ends, lost)
	m.close(last)
	return m.result(lost)
}

// receiptsOf returns the receipts of the callbacks that counted.
func receiptsOf(ends []core.StepEnd, lost map[int]string) (receipts []string) {
	for i, e := range ends {
		if _, nothing := lost[i]; !nothing && e.Receipt != "" {
			receipts = append(receipts, e.Receipt)
		}
	}
	return receipts
}

// exhausted returns the move that replaces a move with too many entries or bytes. It keeps
// only the records of calls, since the rest may be very long. The run has failed at the
// step at which it became full.
func (m *move) exhausted(v View, ends []core.StepEnd, lost map[int]string) *move {
	n := m.d.move(m.pen, v)
	n.load(v, ends)
	var last *row
	for i, e := range ends {
		if _, nothing := lost[i]; !nothing {
			last = n.rowOf(e)
		}
	}
	// The run may be pending, if its first transition is this one.
	n.begin(last)
	n.sweep("", core.StepCanceled, core.Completed, m.why)
	if why := stepError(m.full) + m.why; n.failing() {
		n.failAfterOnFailure(last, why)
	} else {
		n.fail(why, last)
	}
	for i, e := range ends {
		if _, nothing := lost[i]; nothing {
			continue
		}
		if r := n.rowOf(e); !n.late(r, e) {
			n.called(r, e)
		}
	}
	return n
}

// applyEnd applies the end of an attempt to the run. It returns false if the end changes
// nothing.
func (m *move) applyEnd(r *row, e core.StepEnd) bool {
	// The step as it was when the worker took the job. Differences to the present step show which end came first.
	began := &e.Job.Situation.Step
	switch {
	// The definition lacks the step, or only its outline was read.
	case r.step == nil || r.partial:
		return false
	case m.run.Status.Finished() || !r.Status.Open():
		return m.late(r, e)
	case e.Kind == core.Begun:
		return r.Epoch == began.Epoch && m.begin(r)
	case e.Kind == core.CalledBack:
	case r.Epoch != began.Epoch:
		return m.late(r, e)
	// Another worker has stored an end of this attempt.
	case r.Attempt != began.Attempt || (r.Status == core.StepWaiting) != (began.Status == core.StepWaiting):
		return m.late(r, e)
	case r.Carry != began.Carry && readCarry(r.Carry).Back != readCarry(began.Carry).Back:
		return false // its job was put back since then
	}
	m.begin(r)
	return r.step.kind.end(m, r, e)
}

// begin makes a pending run running. It returns false if the run is not pending.
func (m *move) begin(r *row) bool {
	if m.run.Status != core.RunPending {
		return false
	}
	m.run.Status, m.run.StartedAt = core.RunRunning, m.now
	if r.Status == core.StepReady {
		r.Status, r.changed = core.StepRunning, true
	}
	m.record(core.EntryStarted, "", details{})
	m.state(core.RunMoved{Run: m.run, Event: m.event})
	return true
}

// enterAll enters the steps that the run has reached, and the steps that it reaches by
// that. Steps beyond the limits of one move are left to their jobs.
func (m *move) enterAll() {
	for len(m.ahead) > 0 {
		// Steps are entered in the order in which they were reached.
		r := m.ahead[0]
		m.ahead = m.ahead[1:]
		switch {
		// A sibling's failure may have ended the step after it was reached. Expired and full
		// runs end, so none of their steps begins.
		case !r.Status.Open() || m.expired || m.full != "":
		case !r.step.kind.inner():
			r.step.kind.enter(m, r)
		// A loop of inline steps would otherwise make a transition of any size.
		case m.entered >= m.d.enters || m.docs.read+m.written >= maxWork:
			m.postpone(r)
		default:
			m.entered++
			r.step.kind.enter(m, r)
		}
	}
}

// postpone leaves an inline step to its job. The job enters it in a later move.
func (m *move) postpone(r *row) {
	if r.stored {
		r.putBack()
	}
	m.schedule(r, m.now)
}

// putBack notes that the job of a step goes back without an end, and that the step did not
// cause it. Otherwise the taken job would count towards maxTaken.
func (r *row) putBack() {
	c := readCarry(r.Carry)
	c.Back++
	r.Carry, r.changed = c.text(), true
}

// close ends a run whose deadline has come.
func (m *move) close(last *row) {
	if !m.expired || m.run.Status.Finished() {
		return
	}
	why := fmt.Sprintf("timeout: the workflow's timeout of %d s is over", m.d.timeout/time.Second)
	// on_failure needs the state of the step in the workflow's own list.
	if m.topUnread(last) {
		return
	}
	m.sweep("", core.StepSkipped, core.Completed, why)
	switch {
	case m.failing():
		m.failAfterOnFailure(last, why)
	case m.startOnFailure(last, &failure{class: core.ClassTimeout, text: why}, why):
		m.enterAll()
	default:
		m.fail(why, last)
	}
}

// passResult passes on from a step with its result. Result is nil if there is none. The new
// state depends on result_path and output. A fault of these fails the attempt, although the
// call itself succeeded.
func (m *move) passResult(r *row, result []byte) {
	if r.partial {
		m.need(core.Wanted{IDs: []core.ID{r.ID}})
		return
	}
	state, err := m.scope(r, r.Attempt).outputOf(r.step, result)
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	m.succeed(r, r.step.next, state)
}

// outputOf returns the state after a step. It places the result first and applies output to
// that. The checks bound the size and depth of the state.
func (s scope) outputOf(of *step, result []byte) ([]byte, error) {
	text, err := s.placed(of.place, result)
	if err == nil && of.output != nil {
		text, err = apply(of.output, document(text), s.context())
	}
	return checked(text, err)
}

// placed returns the state with the result in it.
func (s scope) placed(p placement, result []byte) ([]byte, error) {
	switch {
	// The state passes on unchanged.
	case result == nil || p.drop:
		return s.text()
	case len(p.steps) == 0:
		return result, nil
	}
	tree, err := put(s.state().Value(), p.steps, document(result).Value())
	if err != nil {
		return nil, err
	}
	return encode(tree)
}

// succeed ends a step and goes to the step to. It ends the list if to is nil.
func (m *move) succeed(r *row, to *step, state []byte) {
	m.finish(r, core.StepSucceeded)
	m.setOutput(r, state)
	m.endJob(r, core.Completed, r.Error)
	m.record(core.EntrySucceeded, r.Path, details{})
	m.moved(r)
	m.proceed(r, to, state, readCarry(r.Carry))
}

// proceed goes from an ended step to the step to. It ends the list if to is nil. The next step
// is entered by enterAll, in the same move if the limits permit.
func (m *move) proceed(r *row, to *step, state []byte, c carry) {
	if to == nil {
		m.endList(r, state)
		return
	}
	// The carry is a copy, so the ended step keeps its own.
	n := c.visit(r.step, to)
	next := m.create(to, core.Step{
		ParentID: r.ParentID, Branch: r.Branch, Path: r.sibling(to.name, n), State: state, Carry: c.text(),
	})
	if r.ParentID == "" {
		m.run.Step = to.name
	}
	m.ahead = append(m.ahead, next)
}

// endList ends the workflow, or a branch. The last branch to end joins the step above.
func (m *move) endList(r *row, output []byte) {
	if r.ParentID == "" {
		if m.failing() {
			m.failAfterOnFailure(r, "")
			return
		}
		m.complete(output)
		return
	}
	// The step is the last one of a branch or item. The parallel or map step above waits for
	// it.
	r.Last, r.Output = true, output
	above := m.rows[r.ParentID]
	if above == nil || !above.fanned() {
		return // the run has moved on, so it does not end here
	}
	above.Fan.Ended++
	above.Fan.Bytes += len(output)
	above.changed = true
	// The room that fan reserved in the history is free again.
	m.begun = max(0, m.begun-1)
	// Too large results end the step now, before further items make calls in vain.
	if above.Fan.Ended < above.Fan.Total && above.Fan.Bytes <= maxState {
		m.nextItem(above)
		return
	}
	m.join(above)
}

// complete completes the run, unless its output makes it full.
func (m *move) complete(output []byte) {
	m.wrote("", m.run.Step, len(output))
	if m.full == "" {
		m.end(output)
	}
}

// end completes the run.
func (m *move) end(output []byte) {
	m.run.Status, m.run.FinishedAt, m.run.Output = core.RunCompleted, m.now, output
	m.record(core.EntryCompleted, "", details{})
	m.state(core.RunMoved{Run: m.run, Event: m.event})
}

// fail ends the run as failed. The obituary reports the step of. why is for people, and begins
// with the path of the step if there is one.
func (m *move) fail(why string, of *row) {
	m.run.Status, m.run.FinishedAt, m.run.Error = core.RunFailed, m.now, why
	m.obituaryOf = of
	m.record(core.EntryFailed, "", details{Error: why})
	m.state(core.RunMoved{Run: m.run, Event: m.event})
}

// sweep ends the open steps below a path, or all open steps if the path is empty, with their jobs.
// The jobs are completed, except when an operator cancels the run: then nothing was done for them.
func (m *move) sweep(below string, as core.StepStatus, job core.Status, why string) {
	// Steps of other branches may be open, and were not read.
	if !m.sole {
		m.need(core.Wanted{Open: true})
	}
	for _, r := range m.order {
		if r.Status.Open() && strings.HasPrefix(r.Path, below) {
			// A worker may be calling at this moment. A redrive waits for that call.
			if r.Type == "http" && r.stored {
				m.held = append(m.held, r.ID)
			}
			m.finish(r, as)
			m.endJob(r, job, why)
			m.moved(r)
		}
	}
}
