package runner

import (
	"context"
	"errors"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// Redrive begins a failed or canceled run again, from its first step or from where it
// failed, and returns the run. A worker of its workflow's lane continues it. If as is not
// zero, it becomes the definition of the run.
//
// A missing run is refused as [core.NotFound]. Three cases are refused as [core.Invalid]: a
// run in another status, a run whose definition cannot be compiled, and a run with steps
// that as lacks.
func (r *Runner) Redrive(ctx context.Context, run core.ID, fromFailed bool, as core.Definition) (core.Run, error) {
	now, err := r.redrive(ctx, run, fromFailed, as)
	var lacking uncompiled
	if errors.As(err, &lacking) {
		why := core.Refuse(core.Invalid, "workflow run %s cannot be redriven by this process: %s", run, lacking)
		why.Cause = err
		return now, why
	}
	return now, err
}

// Diagram returns the diagram of a stored definition. A definition that is not stored is refused as
// [core.NotFound], and one that cannot be compiled or drawn as [core.Invalid].
func (r *Runner) Diagram(ctx context.Context, hash string) (core.Diagram, error) {
	d, err := r.definition(ctx, hash)
	var lacking uncompiled
	switch {
	case errors.As(err, &lacking):
		why := core.Refuse(core.Invalid, "this process cannot read the definition: %s", lacking)
		why.Cause = err
		return core.Diagram{}, why
	case err != nil:
		return core.Diagram{}, err
	}
	drawn, err := d.Diagram()
	if err != nil {
		err = core.Refuse(core.Invalid, "%s", err)
	}
	return drawn, err
}

// redrive plans the change. With a new definition the old one is not compiled: it may be the
// reason for the failure.
func (r *Runner) redrive(ctx context.Context, run core.ID, fromFailed bool, as core.Definition) (core.Run, error) {
	if as.Hash == "" {
		return r.operate(ctx, &turn{run: run, plan: func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
			return d.Redrive(p, v, fromFailed)
		}})
	}
	next, err := r.Compile(as)
	if err != nil {
		return core.Run{}, uncompiled{err}
	}
	return r.operate(ctx, &turn{run: run, bare: true, plan: func(_ *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return next.Recast(p, v, fromFailed, as)
	}})
}

// Cancel ends an unfinished run as canceled, and returns the run. It does not need the
// definition. A finished run is refused as [core.Invalid], a missing one as
// [core.NotFound].
func (r *Runner) Cancel(ctx context.Context, run core.ID) (core.Run, error) {
	return r.operate(ctx, &turn{run: run, bare: true, plan: func(_ *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return workflow.Cancel(p, v)
	}})
}

// CancelPending is Cancel for a run of which no worker has begun a step. A run that is running or
// finished is refused as [core.Invalid], also if a worker begins it at the same time: the first to
// store its transition wins.
func (r *Runner) CancelPending(ctx context.Context, run core.ID) (core.Run, error) {
	return r.operate(ctx, &turn{run: run, bare: true, plan: func(_ *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return workflow.CancelPending(p, v)
	}})
}

// operate executes a turn that no other caller shares.
func (r *Runner) operate(ctx context.Context, t *turn) (core.Run, error) {
	most, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	r.mu.Lock()
	// A seat without a turn: the turn of an operator is executed at the head of the line, and no
	// other end may join it.
	s := &seat{line: r.countIn(t.run)}
	r.mu.Unlock()
	err := r.atHead(most, []*seat{s}, func() error { return r.finish(most, brief, t) })
	switch {
	case errors.Is(err, workflow.ErrNotFailed):
		err = refused("workflow run %s is %s; only failed and canceled runs can be redriven", t.view.Run)
	case errors.Is(err, workflow.ErrBegun):
		err = refused("workflow run %s is %s; only pending runs are canceled with their event", t.view.Run)
	case errors.Is(err, workflow.ErrFinished):
		err = refused("workflow run %s is %s; only pending and running runs can be canceled", t.view.Run)
	}
	return t.move.Transition.Run, busyIfLate(ctx, most, err)
}

// refused returns the refusal of a request that does not suit the status of a run.
func refused(words string, run core.Run) error {
	return core.Refuse(core.Invalid, words, run.ID, run.Status)
}
