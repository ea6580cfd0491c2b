package workflow

import (
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A row is a working copy of one step of the run. Rows are made from the rows of the store,
// changed by the move, and compared with nothing: fresh and changed say which are written.
type row struct {
	core.Step
	step    *step
	partial bool // its State and Output were not read

	fresh   bool // it is to be inserted
	changed bool

	// stored says that the step has a job in the store. end is the change of that job. job
	// is the new job of the step, if its due time is set.
	stored bool
	end    *core.JobChange
	job    core.StepJob

	call core.Attempt // the call that ended in this move; zero if none did
}

// scope returns the scope of the step's expressions in an attempt.
func (m *move) scope(r *row, attempt int) scope {
	return scope{event: &m.event, run: m.run.ID, row: &r.Step, attempt: attempt, docs: &m.docs}
}

// fanned reports whether it is a parallel or map step whose branches have begun.
func (r *row) fanned() bool { return r.Fan.Total > 0 }

// allEnded reports whether all its branches have ended.
func (r *row) allEnded() bool { return r.fanned() && r.Fan.Ended == r.Fan.Total }

// sibling returns the path of the n-th visit of a step of the same list. The first visit has no
// number, so that the paths of workflows without loops are plain names.
func (r *row) sibling(name string, n int) string {
	path := r.Path[:strings.LastIndexByte(r.Path, '/')+1] + name
	if n > 1 {
		path += "#" + number(n).String()
	}
	return path
}

// load copies the steps of the view into rows. Steps above the ended steps are read without
// their texts, since most moves do not need them. A move that does asks for them by need.
func (m *move) load(v View, ends []core.StepEnd) {
	for _, e := range ends {
		s, ok := v.Situations[e.Job.Situation.Step.ID]
		if !ok {
			continue
		}
		m.loadRow(s.Step, false)
		for _, above := range s.Above {
			m.loadRow(above, true)
		}
	}
	for _, s := range v.Steps {
		m.loadRow(s, false)
	}
	for _, r := range m.order {
		// This needs the rows of the steps above, so it comes after all rows are loaded.
		r.stored = m.hasJob(r)
		m.sole = m.sole || r.ParentID == "" && r.Status.Open() && !r.fanned()
	}
}

// loadRow adds a step of the run's present epoch. A full copy replaces an outline that was
// loaded before.
func (m *move) loadRow(s core.Step, partial bool) {
	if r := m.rows[s.ID]; r != nil {
		if r.partial && !partial {
			r.Step, r.partial = s, false
		}
		return
	}
	if s.RunID == m.run.ID && s.Epoch == m.run.Epoch {
		m.add(&row{Step: s, step: m.d.at(s.Path), partial: partial})
	}
}

// add keeps a row, by its id and in the order of its coming.
func (m *move) add(r *row) {
	m.rows[r.ID] = r
	m.order = append(m.order, r)
}

// hasJob reports whether a step, as it was read, has an unfinished job. A step whose
// branches have begun has none, unless all its branches have ended and a redrive joins them
// again. Items that wait for their turn have none yet.
func (m *move) hasJob(r *row) bool {
	if !r.Status.Open() || r.fanned() && !r.allEnded() {
		return false
	}
	above := m.rows[r.ParentID]
	return above == nil || above.Type != "map" || itemIndex(&r.Step) < above.Fan.Started
}

// fork makes the first step of a branch.
func (m *move) fork(above *row, l *list, label string, state []byte, c carry) *row {
	path := above.Path + "/" + label
	if !l.bare {
		path += "/" + l.steps[0].name
	}
	return m.create(l.steps[0], core.Step{ParentID: above.ID, Branch: label, Path: path, State: state, Carry: c.text()})
}

// create makes a visit to a step. The step is ready and has no job yet. It counts the bytes of
// the row. The state counts when its writer passes it on.
func (m *move) create(s *step, as core.Step) *row {
	as.ID, as.RunID, as.Epoch = m.pen.Mint(), m.run.ID, m.run.Epoch
	as.Name, as.Type = s.name, s.kind.typ()
	as.Status, as.StartedAt = core.StepReady, m.now
	r := &row{Step: as, step: s, fresh: true}
	m.written += len(as.State)
	m.wrote("", as.Path, stepBytes+len(as.Carry))
	m.add(r)
	return r
}

// schedule gives a step its job, or makes its existing job wait, until due. Due may be now. A
// job has the id of its step, so a step never has two jobs.
func (m *move) schedule(r *row, due time.Time) {
	status := core.Scheduled
	if !due.After(m.now) {
		status = core.Available
	}
	m.queue(r, status, due)
}

// queue gives a step a job with this status and due time, or changes its existing job so.
func (m *move) queue(r *row, status core.Status, due time.Time) {
	// A job that is due after the deadline wakes a worker at the deadline, which then ends the
	// run.
	if limit := m.run.DeadlineAt; !limit.IsZero() && due.After(limit) {
		due = limit
	}
	if r.stored {
		r.end = &core.JobChange{ID: r.ID, Status: status, DueAt: due, Error: r.Error}
	} else {
		r.job = core.StepJob{ID: r.ID, Status: status, DueAt: due}
	}
}

// endJob ends the job of a step. A new job that this move has made is dropped.
func (m *move) endJob(r *row, status core.Status, why string) {
	r.job = core.StepJob{}
	if r.stored {
		r.end = &core.JobChange{ID: r.ID, Status: status, Error: why, FinishedAt: m.now}
	}
}

// finish ends a step, but not its job. Tokens of the step become invalid, however it ended.
func (m *move) finish(r *row, status core.StepStatus) {
	r.Status, r.FinishedAt, r.changed = status, m.now, true
	m.disarm(r)
}

// disarm makes the tokens of a callback step invalid.
func (m *move) disarm(r *row) {
	c := readCarry(r.Carry)
	if r.Type != "callback" || c.Expires == 0 {
		return
	}
	c.Expires = 0
	r.Carry = c.text()
	m.disarmed = append(m.disarmed, r.ID)
}

// waits makes a step wait for a time or a callback.
func (m *move) waits(r *row, until time.Time) {
	r.Status, r.changed = core.StepWaiting, true
	m.schedule(r, until)
	m.record(core.EntryWaiting, r.Path, details{Until: core.FormatTime(until)})
	m.state(core.StepMoved{Run: m.run, Event: m.event, Step: r.Step, Attempt: r.call, DueAt: until})
}
