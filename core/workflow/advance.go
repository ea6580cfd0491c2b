package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A move is one transition in the making.
type move struct {
	d     *Definition
	pen   Pen
	now   time.Time
	event core.Event
	have  core.Wanted
	seq   int // of the run as it was read
	run   core.Run

	rows  map[core.ID]*row
	order []*row // in which they were come to
	ahead []*row // to be entered

	// sole says that the run is at a single step, which is known, so that no others need
	// be read to know which are open.
	sole    bool
	expired bool   // the deadline has come: no step begins
	full    string // path of the step at which the run became full: its history had room only for its end, or it wrote too much; empty if it is not full
	why     string // it is full: the error of the run
	kept    []string
	begun   int  // branches that began in this move and are not over
	entered int  // steps that need nobody
	docs    docs // documents that were read, with their size
	written int  // bytes of states and outputs

	missing   core.Wanted
	entries   []core.Entry
	attempts  []core.AttemptRecord
	tokens    []core.Token
	receipts  []string
	forgotten []core.ID
	held      []core.ID // steps that were ended while their calls may be under way
	facts     []core.Fact
	closed    []core.JobChange // of an earlier epoch
	mourned   *row             // whose failure an obituary is due for
	recast    core.Definition  // that the run follows from now on; zero: as before
}

func (d *Definition) move(p Pen, v View) *move {
	now := p.Now.UTC().Truncate(time.Millisecond)
	return &move{
		d: d, pen: p, now: now, event: v.Event, have: v.Have, seq: v.Run.Seq, run: v.Run,
		rows: map[core.ID]*row{}, expired: over(v.Run.DeadlineAt, now), kept: keptOf(v),
	}
}

// Advance moves a run past ends of its steps, in their order. An end counts if its
// step is still in the attempt in which the end began; whoever tells first counts, and
// the other's is lost.
//
// If the deadline of the run has come, the ends are told all the same, but no step
// begins any more: those that are open are skipped, and the run has failed, unless the
// ends brought it to its end.
func (d *Definition) Advance(p Pen, v View, ends ...core.StepEnd) Move {
	m := d.move(p, v)
	m.load(v, ends)
	lost := map[int]string{}
	var last *row
	for i, e := range ends {
		r := m.rowOf(e)
		if r == nil || !m.tell(r, e) {
			lost[i] = m.untold(r, e)
			continue
		}
		last = r
		m.enterAll()
	}
	if last == nil {
		return Move{Lost: lost, Missing: m.missing}
	}
	if m.full != "" {
		m = m.exhausted(v, ends, lost)
	}
	m.receipts = receiptsOf(ends, lost)
	m.close(last)
	return m.result(lost)
}

// receiptsOf are the receipts of the callbacks that counted.
func receiptsOf(ends []core.StepEnd, lost map[int]string) (receipts []string) {
	for i, e := range ends {
		if _, nothing := lost[i]; !nothing && e.Receipt != "" {
			receipts = append(receipts, e.Receipt)
		}
	}
	return receipts
}

// exhausted returns the move that replaces one with too many entries or bytes. It keeps only
// the records of calls, since the rest may be very long: the run has failed at the step where
// it became full.
func (m *move) exhausted(v View, ends []core.StepEnd, lost map[int]string) *move {
	n := m.d.move(m.pen, v)
	n.load(v, ends)
	var last *row
	for i, e := range ends {
		if _, nothing := lost[i]; !nothing {
			last = n.rowOf(e)
		}
	}
	n.begin(last)
	n.sweep("", core.StepCanceled, m.why)
	if why := stepError(m.full) + m.why; n.failing() {
		n.failAside(last, why)
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

// tell makes of a run what the end of an attempt makes of it.
func (m *move) tell(r *row, e core.StepEnd) bool {
	began := &e.Job.Situation.Step
	switch {
	case r.step == nil || r.light:
		return false
	case m.run.Status.Finished() || !r.Status.Open():
		return m.late(r, e)
	case e.Kind == core.Begun:
		return r.Epoch == began.Epoch && m.begin(r)
	case e.Kind == core.CalledBack:
	case r.Epoch != began.Epoch:
		return m.late(r, e)
	case r.Attempt != began.Attempt || (r.Status == core.StepWaiting) != (began.Status == core.StepWaiting):
		return m.late(r, e)
	case r.Carry != began.Carry && readCarry(r.Carry).Back != readCarry(began.Carry).Back:
		return false // its job was put back since
	}
	m.begin(r)
	return r.step.kind.end(m, r, e)
}

// begin makes a pending run running.
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

// enterAll enters the steps that the run has come to, and those it comes to by that. What
// is too much for one move is left to jobs.
func (m *move) enterAll() {
	for len(m.ahead) > 0 {
		r := m.ahead[0]
		m.ahead = m.ahead[1:]
		switch {
		case !r.Status.Open() || m.expired || m.full != "":
		case !r.step.kind.inner():
			r.step.kind.enter(m, r)
		case m.entered >= m.d.enters || m.docs.read+m.written >= maxWork:
			m.postpone(r)
		default:
			m.entered++
			r.step.kind.enter(m, r)
		}
	}
}

// postpone leaves a step that needs nobody to its job.
func (m *move) postpone(r *row) {
	if r.stored {
		r.putBack()
	}
	m.schedule(r, m.now)
}

// putBack notes that the job of a step goes back without an end, and not because of the step.
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
	if m.unreadTop(last) {
		return
	}
	m.sweep("", core.StepSkipped, why)
	switch {
	case m.failing():
		m.failAside(last, why)
	case m.aside(last, &failure{class: core.ClassTimeout, text: why}, why):
		m.enterAll()
	default:
		m.fail(why, last)
	}
}

// leave passes on from a step that has a result, or none (nil).
func (m *move) leave(r *row, result []byte) {
	if r.light {
		m.need(core.Wanted{IDs: []core.ID{r.ID}})
		return
	}
	state, err := m.scope(r, r.Attempt).passedOn(r.step, result)
	if err != nil {
		m.stumble(r, dataFailure(err))
		return
	}
	m.succeed(r, r.step.next, state)
}

// passedOn is the state after a step.
func (s scope) passedOn(of *step, result []byte) ([]byte, error) {
	text, err := s.placed(of.place, result)
	if err == nil && of.output != nil {
		text, err = of.output.apply(document(text), s.context())
	}
	return checked(text, err)
}

// placed is the state with the result.
func (s scope) placed(p placement, result []byte) ([]byte, error) {
	switch {
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

// succeed ends a step and goes to another, or ends its list if that is nil.
func (m *move) succeed(r *row, to *step, state []byte) {
	m.finish(r, core.StepSucceeded)
	m.passOn(r, state)
	m.dismiss(r, core.Completed, r.Error)
	m.record(core.EntrySucceeded, r.Path, details{})
	m.moved(r)
	m.proceed(r, to, state, readCarry(r.Carry))
}

// proceed goes from a step that is over to another, or ends its list if that is nil.
func (m *move) proceed(r *row, to *step, state []byte, c carry) {
	if to == nil {
		m.endList(r, state)
		return
	}
	n := c.visit(r.step, to)
	next := m.create(to, core.Step{
		ParentID: r.ParentID, Branch: r.Branch, Path: r.sibling(to.name, n), State: state, Carry: c.text(),
	})
	if r.ParentID == "" {
		m.run.Step = to.name
	}
	m.ahead = append(m.ahead, next)
}

// endList ends the workflow, or a branch.
func (m *move) endList(r *row, output []byte) {
	if r.ParentID == "" {
		if m.failing() {
			m.failAside(r, "")
			return
		}
		m.complete(output)
		return
	}
	r.Last, r.Output = true, output
	above := m.rows[r.ParentID]
	if above == nil || !above.fanned() {
		return // then the run is not where it was
	}
	above.Fan.Ended++
	above.Fan.Bytes += len(output)
	above.changed = true
	m.begun = max(0, m.begun-1)
	if above.Fan.Ended < above.Fan.Total && above.Fan.Bytes <= maxState {
		m.nextItem(above)
		return
	}
	m.join(above)
}

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

// fail ends the run. The step is the one to mourn.
func (m *move) fail(why string, of *row) {
	m.run.Status, m.run.FinishedAt, m.run.Error = core.RunFailed, m.now, why
	m.mourned = of
	m.record(core.EntryFailed, "", details{Error: why})
	m.state(core.RunMoved{Run: m.run, Event: m.event})
}

// sweep ends the open steps below a path, or all if it is empty.
func (m *move) sweep(below string, as core.StepStatus, why string) {
	if !m.sole {
		m.need(core.Wanted{Open: true})
	}
	for _, r := range m.order {
		if r.Status.Open() && strings.HasPrefix(r.Path, below) {
			if r.Type == "http" && r.stored {
				m.held = append(m.held, r.ID)
			}
			m.finish(r, as)
			m.dismiss(r, core.Completed, why)
			m.moved(r)
		}
	}
}
