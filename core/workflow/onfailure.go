package workflow

import (
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// A workflow may name a step with on_failure. A run that fails goes on with that step, and with
// those that come after it, and fails when they are over, however they ended. The error of
// the run is set from the failure on, so a run that has an error and is not finished is one
// that tells of its failure.
//
// The steps from there on are aside from the others: a redrive from the failed step leaves them
// out. A failure among them is not told of again: the run fails at once.

// aside goes on with the step of on_failure because of a failure at a step. False means that the
// run fails now: there is no such step, the run is there already, or it has no room.
func (m *move) aside(r *row, f *failure, why string) bool {
	if !m.tellable() {
		return false
	}
	top := m.topOf(r)
	to := m.d.onFailure
	problem := &trouble{Class: f.class, Message: f.text, Status: f.status, Step: r.Name}
	m.run.Error = why
	m.record(core.EntryOnFailure, r.Path, details{Error: why, Goto: to.name})
	if m.expired { // the steps to come have as long as the others had
		m.expired, m.run.DeadlineAt = false, m.now.Add(m.d.timeout)
	}
	c := readCarry(top.Carry)
	c.Error, c.Caught, c.Aside = problem, "", r.Path
	c.skip(m.d.shared)
	m.proceed(top, to, m.stateAfter(top, problem), c)
	return true
}

// tellable reports whether a run that fails now goes on with the step of on_failure.
func (m *move) tellable() bool { return m.d.onFailure != nil && !m.failing() && m.full == "" }

// failing reports whether the run has failed, or does when its steps are over.
func (m *move) failing() bool {
	return m.run.Status == core.RunFailed || !m.run.Status.Finished() && m.run.Error != ""
}

// topOf is the step of the workflow's own list that a step is in, or the step itself.
func (m *move) topOf(r *row) *row {
	for r.ParentID != "" && m.rows[r.ParentID] != nil {
		r = m.rows[r.ParentID]
	}
	return r
}

// unreadTop asks for the step that a failure leads aside from, if its state was not read.
func (m *move) unreadTop(r *row) bool {
	top := m.topOf(r)
	if !m.tellable() || !top.light {
		return false
	}
	m.need(core.Wanted{IDs: []core.ID{top.ID}})
	return true
}

// failAside ends a run that told of its failure. The more is what failed on the way; empty if
// nothing did. The step to mourn is the one that failed first.
func (m *move) failAside(r *row, more string) {
	path := readCarry(m.topOf(r).Carry).Aside
	origin := m.withPath(path)
	if origin == nil && !slices.Contains(m.have.Paths, path) && !m.have.All {
		m.need(core.Wanted{Paths: []string{path}})
		return
	}
	if origin == nil {
		origin = r
	}
	why := m.run.Error
	if k, ok := r.step.kind.(*failStep); more != "" && !(ok && k.silent()) {
		why += "; then " + more
	}
	m.fail(why, origin)
}

func (m *move) withPath(path string) *row {
	for _, r := range m.order {
		if r.Path == path {
			return r
		}
	}
	return nil
}

// markAside finds the steps that a run may come to on its way and once more after a failure, so
// that the second visit has a path of its own.
func (d *Definition) markAside() {
	usual, aside := reached(d.top.steps[0]), reached(d.onFailure)
	for _, s := range d.top.steps {
		if usual[s] && aside[s] {
			s.looped = true
			d.shared = append(d.shared, s.name)
		}
	}
}

// skip leaves out the next visit of some steps. A late answer may yet make a row for it: see
// leaveLate.
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

// reached are a step and all steps that may come after it.
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
