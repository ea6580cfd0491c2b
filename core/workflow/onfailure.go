package workflow

import (
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// A workflow may name a step with on_failure. A failing run continues with that step and
// its successors, and fails when they have ended, in any way. The error of the run is set
// from the failure on. So a run that has an error and is not finished is executing these
// steps.
//
// These steps are aside from the others: a redrive from the failed step leaves them out. A
// failure among them does not start on_failure again: the run fails at once.

// startOnFailure continues with the step of on_failure after the failure of a step. It returns
// false if the run fails now: there is no such step, the run is executing it already, or the
// run is full. It also gives those steps a new deadline, since the old one may be the cause of
// the failure.
func (m *move) startOnFailure(r *row, f *failure, why string) bool {
	if !m.hasOnFailure() {
		return false
	}
	top := m.topOf(r)
	to := m.d.onFailure
	problem := &caughtFailure{Class: f.class, Message: f.text, Status: f.status, Step: r.Name}
	// From here on failing reports true.
	m.run.Error = why
	m.record(core.EntryOnFailure, r.Path, details{Error: why, Goto: to.name})
	if m.expired { // the steps of on_failure have as long as the others had
		m.expired, m.run.DeadlineAt = false, m.now.Add(m.d.timeout)
	}
	// The next step belongs to the workflow's own list, so it continues the counts of the step
	// there, and not of a step in a branch.
	c := readCarry(top.Carry)
	c.Error, c.Caught, c.Aside = problem, "", r.Path
	c.skip(m.d.shared)
	m.proceed(top, to, m.stateAfter(top, problem), c)
	return true
}

// hasOnFailure reports whether a run that fails now continues with the step of on_failure.
func (m *move) hasOnFailure() bool { return m.d.onFailure != nil && !m.failing() && m.full == "" }

// failing reports whether the run has failed, or will fail when its steps have ended.
func (m *move) failing() bool {
	return m.run.Status == core.RunFailed || !m.run.Status.Finished() && m.run.Error != ""
}

// topOf returns the step of the workflow's own list that contains a step, or the step
// itself.
func (m *move) topOf(r *row) *row {
	for r.ParentID != "" && m.rows[r.ParentID] != nil {
		r = m.rows[r.ParentID]
	}
	return r
}

// topUnread asks for the step of the workflow's own list that contains r, if on_failure is next
// and its state was not read. A true result means that the move must be computed again.
func (m *move) topUnread(r *row) bool {
	top := m.topOf(r)
	if !m.hasOnFailure() || !top.partial {
		return false
	}
	m.need(core.Wanted{IDs: []core.ID{top.ID}})
	return true
}

// failAfterOnFailure ends a run that has executed on_failure. More is the error of those steps; it
// is empty if they had none. The obituary reports the step that failed first.
func (m *move) failAfterOnFailure(r *row, more string) {
	// The step because of which the run fails was noted when on_failure began.
	path := readCarry(m.topOf(r).Carry).Aside
	origin := m.withPath(path)
	if origin == nil && !slices.Contains(m.have.Paths, path) && !m.have.All {
		m.need(core.Wanted{Paths: []string{path}})
		return
	}
	// The step was not found; the obituary then reports the last step.
	if origin == nil {
		origin = r
	}
	why := m.run.Error
	if k, ok := r.step.kind.(*failStep); more != "" && !(ok && k.silent()) {
		why += "; then " + more
	}
	m.fail(why, origin)
}

// withPath returns the known step with a path; nil if none was read.
func (m *move) withPath(path string) *row {
	for _, r := range m.order {
		if r.Path == path {
			return r
		}
	}
	return nil
}

// markShared finds the steps that a run may reach both before a failure and after it. The
// second visit of such a step needs a path of its own. Marking them as looped gives that visit
// a number.
func (d *Definition) markShared() {
	usual, aside := reached(d.top.steps[0]), reached(d.onFailure)
	for _, s := range d.top.steps {
		if usual[s] && aside[s] {
			s.looped = true
			d.shared = append(d.shared, s.name)
		}
	}
}

// skip leaves out the number of the next visit of some steps. A late answer may still make
// a row for that visit: see noteLateSuccessor.
func (c *carry) skip(names []string) {
	if len(names) == 0 {
		return
	}
	if c.Visits = maps.Clone(c.Visits); c.Visits == nil {
		c.Visits = map[string]int{}
	}
	for _, name := range names {
		c.Visits[name]++
	}
}

// reached returns a step and all steps that may come after it. Branches are not entered: only
// steps of the workflow's own list can be reached from it.
func reached(from *step) map[*step]bool {
	seen := map[*step]bool{from: true}
	for ahead := []*step{from}; len(ahead) > 0; ahead = ahead[1:] {
		for _, s := range ahead[0].follows() {
			if !seen[s] {
				seen[s] = true
				ahead = append(ahead, s)
			}
		}
	}
	return seen
}
