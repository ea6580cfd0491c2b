package runner

import (
	"context"
	"errors"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// Redrive begins a failed or canceled run anew, from its first step or from where it failed, and
// returns it. A worker of its workflow's lane runs it. A run in another status,
// or whose definition cannot be compiled, is refused as [core.Invalid], one that is not
// there as [core.NotFound]. If as is not zero, the run follows it from now on, in place of the
// definition that it has; a run whose steps as does not have is refused as [core.Invalid].
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

// Cancel ends a run that is not finished as canceled, and returns it. It needs no definition.
// A run that is finished is refused as [core.Invalid], one that is not there as
// [core.NotFound].
func (r *Runner) Cancel(ctx context.Context, run core.ID) (core.Run, error) {
	return r.operate(ctx, &turn{run: run, bare: true, plan: func(_ *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return workflow.Cancel(p, v)
	}})
}

// operate takes a turn of its own.
func (r *Runner) operate(ctx context.Context, t *turn) (core.Run, error) {
	most, cancel := context.WithTimeout(ctx, inTime)
	defer cancel()
	r.mu.Lock()
	s := &seat{line: r.stand(t.run)}
	r.mu.Unlock()
	err := r.atHead(most, []*seat{s}, func() error { return r.finish(most, brief, t) })
	switch {
	case errors.Is(err, workflow.ErrNotFailed):
		err = refused("workflow run %s is %s; only failed and canceled runs can be redriven", t.view.Run)
	case errors.Is(err, workflow.ErrFinished):
		err = refused("workflow run %s is %s; only pending and running runs can be canceled", t.view.Run)
	}
	return t.move.Transition.Run, late(ctx, most, err)
}

func refused(words string, run core.Run) error {
	return core.Refuse(core.Invalid, words, run.ID, run.Status)
}
