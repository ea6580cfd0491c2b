package workflow

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Redrive begins a failed run anew, in a new epoch and with a new deadline: from its
// first step, or from where it failed. Then what the run had gone beyond is copied into
// the new epoch as it was, also branches that were over of steps that were not; what
// failed, was canceled or was skipped begins again, with the state that it had. If all
// branches of a step were over, and nothing could be made of that, they are only joined
// again.
func (d *Definition) Redrive(p Pen, v View, fromFailed bool) (Move, error) {
	if v.Run.Status != core.RunFailed {
		return Move{}, ErrNotFailed
	}
	m := d.move(p, v)
	m.need(core.Wanted{All: fromFailed, Failed: !fromFailed})
	if !m.missing.Nothing() {
		return Move{Missing: m.missing}, nil
	}
	m.renew(v)
	from := "start"
	if fromFailed {
		from = "failed"
	}
	m.record(core.EntryRedriven, "", details{From: from})
	m.state(core.RunMoved{Run: m.run, Event: m.event})
	if !fromFailed || !m.resume(v.Steps) {
		m.restart()
	}
	return m.result(nil), nil
}

// renew makes the run pending in a new epoch.
func (m *move) renew(v View) {
	for _, s := range v.Steps { // there is one dead job at most, and it has no more to say
		if s.Status == core.StepFailed && isOf(m.run.Error, s.Path) {
			m.closed = append(m.closed, core.JobChange{ID: s.ID, Status: core.Completed, Error: s.Error, FinishedAt: m.now})
		}
	}
	r := &m.run
	r.Status, r.Error, r.Output = core.RunPending, "", nil
	r.Epoch++
	r.StartedAt, r.FinishedAt, r.DeadlineAt = time.Time{}, time.Time{}, time.Time{}
	if m.d.timeout > 0 {
		r.DeadlineAt = m.now.Add(m.d.timeout)
	}
}

// restart begins with the first step.
func (m *move) restart() {
	first := m.d.top.steps[0]
	m.run.Step = first.name
	m.schedule(m.create(first, core.Step{Path: first.name}), m.now)
}

// resume begins with the steps that had not succeeded. False means that there are none.
func (m *move) resume(steps []core.Step) bool {
	old := &past{m: m, within: map[core.ID][]core.Step{}}
	for _, s := range steps {
		old.within[s.ParentID] = append(old.within[s.ParentID], s)
	}
	old.revive("", nil)
	return old.revived
}

// A past is what an epoch came to.
type past struct {
	m       *move
	within  map[core.ID][]core.Step // by what they are in
	revived bool                    // something begins again
}

// revive takes over what was in a step, which has come along as another one; of the
// workflow's own list if that is nil.
func (p *past) revive(id core.ID, above *row) {
	for _, s := range p.within[id] {
		switch {
		case s.Output != nil: // the run had gone beyond it
			p.keep(s, above)
		case s.Fan.Total > s.Fan.Ended: // it failed, if it did, because of what is in it
			r := p.copied(s, above)
			if k, ok := p.m.d.at(s.Path).kind.(*mapStep); ok { // no item begins after a deadline
				r.Fan.Started = max(s.Fan.Started, k.atOnce(s.Fan))
			}
			r.Status, r.Error, r.FinishedAt = core.StepRunning, "", time.Time{}
			p.revive(s.ID, r)
		case s.Fan.Total > 0: // it failed because of what they came to
			p.rejoin(s, above)
		default:
			p.again(s, above)
		}
	}
}

// keep copies a step with all that is in it.
func (p *past) keep(s core.Step, above *row) {
	r := p.copied(s, above)
	for _, x := range p.within[s.ID] {
		p.keep(x, r)
	}
}

// rejoin has a step go on whose branches have all ended.
func (p *past) rejoin(s core.Step, above *row) {
	s.Status, s.Error, s.FinishedAt = core.StepReady, "", time.Time{}
	r := p.copied(s, above)
	for _, x := range p.within[s.ID] {
		p.keep(x, r)
	}
	p.m.schedule(r, p.m.now)
	p.revived = true
}

// again lets a step begin again. An item whose turn had not come waits for it.
func (p *past) again(s core.Step, above *row) {
	m := p.m
	of := m.d.at(s.Path)
	if of == nil {
		return
	}
	c := readCarry(s.Carry)
	c.Expires, c.Turn, c.Back = 0, 0, 0
	r := m.create(of, core.Step{Branch: s.Branch, Path: s.Path, State: s.State, Carry: c.text()})
	p.place(r, above)
	if above != nil && above.Type == "map" && itemIndex(&s) >= above.Fan.Started {
		return
	}
	m.schedule(r, m.now)
	p.revived = true
}

// copied is a copy of a step in the new epoch.
func (p *past) copied(s core.Step, above *row) *row {
	s.ID, s.Epoch, s.ParentID = p.m.pen.Mint(), p.m.run.Epoch, ""
	r := &row{Step: s, fresh: true}
	p.m.wrote("", s.Path, stepBytes+len(s.Carry))
	p.m.add(r)
	p.place(r, above)
	return r
}

// place puts a step into another one, or on the workflow's own list.
func (p *past) place(r *row, above *row) {
	if above != nil {
		r.ParentID = above.ID
		return
	}
	if r.Status.Open() {
		p.m.run.Step = r.Name
	}
}

// Cancel ends a run that is not finished as failed.
func (d *Definition) Cancel(p Pen, v View) (Move, error) {
	if v.Run.Status.Finished() {
		return Move{}, ErrFinished
	}
	m := d.move(p, v)
	m.load(v, nil)
	m.sweep("", core.StepCanceled, "canceled")
	m.fail("canceled", nil)
	return m.result(nil), nil
}
