package workflow

import "github.com/eventgateway/gateway/core"

// Cancel ends a run as [Definition.Cancel] does. It also works for a run whose definition
// cannot be compiled: it ends the open steps without their definitions.
func Cancel(p Pen, v View) (Move, error) {
	return (&Definition{top: &list{}}).Cancel(p, v)
}

// CancelPending is [Cancel] for a run that no worker has begun. It returns ErrBegun for a run that is
// running.
func CancelPending(p Pen, v View) (Move, error) {
	if v.Run.Status == core.RunRunning {
		return Move{}, ErrBegun
	}
	return Cancel(p, v)
}

// Spoil makes a step fail because the end of its attempt cannot be stored. The failure is
// final and of class data. Why begins with the class.
func (d *Definition) Spoil(p Pen, v View, e core.StepEnd, why string) Move {
	ends := []core.StepEnd{e}
	m := d.move(p, v)
	m.load(v, ends)
	// The end counts under the same conditions as in Advance.
	began := &e.Job.Situation.Step
	r := m.rows[began.ID]
	if r == nil || r.step == nil || r.partial || m.run.Status.Finished() || !r.Status.Open() || r.Attempt != began.Attempt {
		return Move{Lost: map[int]string{0: m.lostReason(r, e)}, Missing: m.missing}
	}
	m.begin(r)
	r.Attempt++
	m.attemptFailed(r, &failure{class: core.ClassData, text: why, final: true})
	m.enterAll()
	if m.full != "" {
		m = m.exhausted(v, ends, nil)
	}
	m.close(r)
	return m.result(nil)
}
