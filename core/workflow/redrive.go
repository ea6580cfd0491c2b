package workflow

import (
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Redrive begins a failed or canceled run again, in a new epoch and with a new deadline. It
// begins at the first step, or where the run failed.
//
// From the failed step, Redrive copies the steps beyond which the run had gone into the new
// epoch, unchanged. It also copies ended branches of steps that had not ended. Steps that
// failed, were canceled or were skipped begin again, with the state that they had. If all
// branches of a step had ended and only their join failed, the branches are joined again.
// If catch led the run to a step of type fail, the step whose failure was caught begins
// again, and the steps after it are left out. If no catch led there, a redrive from the
// failed step returns ErrPurpose.
func (d *Definition) Redrive(p Pen, v View, fromFailed bool) (Move, error) {
	return d.redrive(p, v, fromFailed, core.Definition{})
}

// Recast is [Definition.Redrive] for a run that so far follows another definition. d is
// compiled from as, the new definition. For a redrive from the failed step, d must have all
// reached steps that do not begin anew, with the same types and branches. The error is a
// refusal that names the first step that d lacks.
func (d *Definition) Recast(p Pen, v View, fromFailed bool, as core.Definition) (Move, error) {
	return d.redrive(p, v, fromFailed, as)
}

// redrive is Redrive for a zero as, and Recast otherwise.
func (d *Definition) redrive(p Pen, v View, fromFailed bool, as core.Definition) (Move, error) {
	if !v.Run.Status.Redrivable() {
		return Move{}, ErrNotFailed
	}
	m := d.move(p, v)
	// A redrive from the start needs only the failed steps, whose jobs it closes.
	m.need(core.Wanted{All: fromFailed, Failed: !fromFailed})
	if !m.missing.Nothing() {
		return Move{Missing: m.missing}, nil
	}
	// The run is pending again, so the entries and facts below show the new epoch.
	m.renew(v)
	from := "start"
	if fromFailed {
		from = "failed"
	}
	entry := details{From: from}
	if as.Hash != "" && as.Hash != m.run.Definition {
		m.recast, m.run.Definition, entry.Definition = as, as.Hash, "current"
	}
	m.record(core.EntryRedriven, "", entry)
	m.state(core.RunMoved{Run: m.run, Event: m.event})
	if !fromFailed || len(v.Steps) == 0 {
		m.restart()
	} else if err := m.resume(v.Steps); err != nil {
		return Move{}, err
	}
	return m.result(nil), nil
}

// renew makes the run pending in a new epoch.
func (m *move) renew(v View) {
	for _, s := range v.Steps { // there is one dead job at most, and it has no further use
		gaveUp := isOf(m.run.Error, s.Path) || m.run.Status == core.RunCanceled && s.Output == nil
		if s.Status == core.StepFailed && gaveUp {
			m.closed = append(m.closed, core.JobChange{ID: s.ID, Status: core.Completed, Error: s.Error, FinishedAt: m.now})
		}
	}
	r := &m.run
	r.Status, r.Error, r.Output = core.RunPending, "", nil
	r.Epoch++
	r.StartedAt, r.FinishedAt, r.DeadlineAt = time.Time{}, time.Time{}, time.Time{}
	// The time that the run has spent so far does not count.
	if m.d.timeout > 0 {
		r.DeadlineAt = m.now.Add(m.d.timeout)
	}
}

// restart begins with the first step. The first step has no state: it reads the payload of the
// event.
func (m *move) restart() {
	first := m.d.top.steps[0]
	m.run.Step = first.name
	m.schedule(m.create(first, core.Step{Path: first.name}), m.now)
}

// resume begins with the steps that had not succeeded. If the last of them was answered
// late, there are none, and the run is completed.
func (m *move) resume(steps []core.Step) error {
	// The old steps are grouped by the step that contains them, since revive works from the
	// outside to the inside.
	old := &formerEpoch{m: m, within: map[core.ID][]core.Step{}}
	for _, s := range steps {
		old.within[s.ParentID] = append(old.within[s.ParentID], s)
	}
	old.revive("", nil)
	switch {
	case old.misfit != "":
		return core.Refuse(core.Invalid, "the current definition does not fit: %s; redrive the run with the definition that it has, or from the start", old.misfit)
	// Nothing was stored yet, so the run is unchanged.
	case old.failsAgain:
		return ErrPurpose
	}
	if r := old.last; r != nil && !old.revived {
		m.run.Step, m.run.StartedAt = r.Name, m.now
		m.end(r.Output)
	}
	return nil
}

// A formerEpoch is the steps of the epoch that failed. It is used for one redrive. Its methods
// go through the old steps and add the new ones to m.
type formerEpoch struct {
	m          *move
	within     map[core.ID][]core.Step // by the step that contains them
	revived    bool                    // a step begins again
	last       *row                    // it ended the workflow's own list
	failsAgain bool                    // a step of type fail would only fail again
	misfit     string                  // the step of the run that the definition lacks; empty if there is none
}

// effective returns the inner steps of a step that count. The steps from a catch up to a
// step of type fail do not count: the step whose failure was caught is to begin again. The
// steps from on_failure on do not count either.
func (p *formerEpoch) effective(id core.ID) []core.Step {
	// First the steps of on_failure are left out, then the steps after a caught failure that
	// led to a step of type fail.
	within := slices.DeleteFunc(slices.Clone(p.within[id]), func(s core.Step) bool { return readCarry(s.Carry).Aside != "" })
	undone := map[string]bool{}
	for _, s := range within {
		if s.Type == "fail" && s.Status == core.StepFailed {
			origin := readCarry(s.Carry).Caught
			undone[origin], p.failsAgain = origin != "", p.failsAgain || origin == ""
		}
	}
	var all []core.Step
	for _, s := range within {
		if undone[readCarry(s.Carry).Caught] {
			continue
		}
		// Without its output the step counts as one that did not succeed.
		if undone[s.Path] {
			s.Output, s.OutputName = nil, ""
		}
		all = append(all, s)
	}
	return all
}

// revive copies the steps inside a step; above is the step's copy in the new epoch. Above
// is nil for the workflow's own list.
func (p *formerEpoch) revive(id core.ID, above *row) {
	for _, s := range p.effective(id) {
		switch {
		case s.Output != nil: // the run had gone beyond it
			p.follow(s, p.keep(s, above), above)
		case s.Fan.Total > s.Fan.Ended: // if it failed, a step inside it caused that
			r := p.copied(s, above)
			p.fitBranches(s)
			if k, ok := p.m.d.at(s.Path).kind.(*mapStep); ok { // no item begins after a deadline
				r.Fan.Started = max(s.Fan.Started, k.atOnce(s.Fan))
			}
			// The step goes on: branches that ended keep their results, and the others begin
			// again.
			r.Status, r.Error, r.FinishedAt = core.StepRunning, "", time.Time{}
			p.revive(s.ID, r)
			if r.allEnded() { // follow ended its last branch
				r.Status = core.StepReady
				p.m.schedule(r, p.m.now)
				p.revived = true
			}
		case s.Fan.Total > 0: // joining its branches failed
			p.rejoin(s, above)
		default:
			p.restart(s, above)
		}
	}
}

// keep copies a step with all steps inside it. The copies count as finished; no job is made for
// them.
func (p *formerEpoch) keep(s core.Step, above *row) *row {
	r := p.copied(s, above)
	if r.Last && above == nil {
		p.last = r
	}
	for _, x := range p.within[s.ID] {
		p.keep(x, r)
	}
	return r
}

// follow continues after a step, kept as r, whose late answer was stored without the next
// step. A process of an earlier version stores it so, since for that version a canceled run
// cannot be redriven.
func (p *formerEpoch) follow(s core.Step, r, above *row) {
	of := p.m.d.at(s.Path)
	if of == nil || s.Type != "http" || s.Status != core.StepSucceeded || s.Last {
		return
	}
	if of.next != nil {
		c := readCarry(s.Carry)
		path := r.sibling(of.next.name, c.visit(of, of.next))
		// The next step exists if the answer was stored by a process of this version.
		if !slices.ContainsFunc(p.within[s.ParentID], func(x core.Step) bool { return x.Path == path }) {
			p.restart(core.Step{Epoch: p.m.run.Epoch, Branch: s.Branch, Path: path, Type: of.next.kind.typ(), State: s.Output, Carry: c.text()}, above)
		}
		return
	}
	r.Last = true
	if above == nil {
		p.last = r
		return
	}
	above.Fan.Ended++
	above.Fan.Bytes += len(s.Output)
}

// rejoin makes a step go on whose branches have all ended. Its outputs are kept, so no call is
// repeated.
func (p *formerEpoch) rejoin(s core.Step, above *row) {
	s.Status, s.Error, s.FinishedAt = core.StepReady, "", time.Time{}
	r := p.copied(s, above)
	for _, x := range p.within[s.ID] {
		p.keep(x, r)
	}
	p.m.schedule(r, p.m.now)
	p.revived = true
}

// restart begins a step again. An item of a map waits for its turn if it had not begun.
func (p *formerEpoch) restart(s core.Step, above *row) {
	m := p.m
	of := m.d.at(s.Path)
	if !p.fits(s) || of == nil {
		return
	}
	c := p.counted(s)
	// A worker may still be calling for the old step. Two calls at a time are avoided, although
	// both carry the same idempotency key.
	due, call := p.callableFrom(s, c)
	c.Expires, c.Turn, c.Back, c.Visit, c.Held, c.Call, c.CallOver = 0, 0, 0, 0, 0, "", false
	if s.Type == "http" { // a callback step sends another token, so its call is another one
		c.Visit = visitOf(s)
	}
	if due.After(m.now) {
		c.Held, c.Call = due.UnixMilli(), call
	}
	r := m.create(of, core.Step{Branch: s.Branch, Path: s.Path, State: s.State, Carry: c.text()})
	p.place(r, above)
	if limit := due.Add(m.d.timeout); m.d.timeout > 0 && limit.After(m.run.DeadlineAt) {
		m.run.DeadlineAt = limit // the step has as long as it would have without the wait
	}
	// The item gets its job when its turn comes.
	if above != nil && above.Type == "map" && itemIndex(&s) >= above.Fan.Started {
		return
	}
	m.schedule(r, due)
	p.revived = true
}

// callableFrom returns from when on a step may be called again. A worker that held the step's job
// when the step was ended may still be calling, until its lease ends: see callOf. The
// answer of that call is an answer to the step.
func (p *formerEpoch) callableFrom(s core.Step, c carry) (due time.Time, call string) {
	due = p.m.now
	if c.held().After(due) {
		due, call = c.held(), c.Call
	}
	if s.HeldUntil.After(due) && !c.CallOver {
		due, call = s.HeldUntil, callOf(s)
	}
	return due, call
}

// copied returns a copy of a step in the new epoch. The copy has a new id, because steps of
// both epochs are stored side by side.
func (p *formerEpoch) copied(s core.Step, above *row) *row {
	p.fits(s)
	c := p.counted(s)
	if s.Type == "http" {
		c.Visit = visitOf(s)
	}
	s.Carry = c.text()
	s.ID, s.Epoch, s.ParentID = p.m.pen.Mint(), p.m.run.Epoch, ""
	r := &row{Step: s, fresh: true}
	p.m.wrote("", s.Path, stepBytes+len(s.Carry))
	p.m.add(r)
	p.place(r, above)
	return r
}

// place puts a step into another step, or on the workflow's own list if above is nil.
func (p *formerEpoch) place(r *row, above *row) {
	if above != nil {
		r.ParentID = above.ID
		return
	}
	if r.Status.Open() {
		p.m.run.Step = r.Name
	}
}

// Cancel ends an unfinished run as canceled. It returns ErrFinished for a finished run.
func (d *Definition) Cancel(p Pen, v View) (Move, error) {
	if v.Run.Status.Finished() {
		return Move{}, ErrFinished
	}
	m := d.move(p, v)
	m.load(v, nil)
	const why = "canceled"
	// Cancel sets no error of a step: the steps did not fail.
	m.sweep("", core.StepCanceled, core.Canceled, why)
	m.run.Status, m.run.FinishedAt, m.run.Error = core.RunCanceled, m.now, why
	m.record(core.EntryCanceled, "", details{})
	m.state(core.RunMoved{Run: m.run, Event: m.event})
	return m.result(nil), nil
}
