package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// ErrToken is the refusal of a callback whose token is not, or no longer, good.
var ErrToken = core.Refuse(core.NotFound, "not found")

// Callback resumes the step that a token was issued for, with the body as its result: JSON,
// or nothing for an empty object. Any text that is no good token is ErrToken, at the same
// cost, a look-up of its hash, whatever it looks like. A body that is no JSON is refused
// as [core.Invalid], one that cannot be stored now as [core.Unavailable], and the token
// stays good.
func (r *Runner) Callback(ctx context.Context, token string, body []byte) error {
	step, err := r.Store.Awaited(ctx, r.Clock(), digest(token))
	if err != nil {
		return err
	}
	var at core.Situation
	if step != "" {
		found, err := r.Store.Situations(ctx, []core.ID{step})
		if err != nil {
			return err
		}
		at = found[step]
	}
	if !at.Step.Status.Open() || at.Run.Status.Finished() || at.Step.Epoch != at.Run.Epoch {
		return r.unknown()
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		return core.Refuse(core.Invalid, "the body must be JSON, or empty")
	}
	end := core.StepEnd{Job: core.TakenJob{Situation: at}, Kind: core.CalledBack, At: r.Clock(), Body: body}
	called, err := r.tell(ctx, true, end)
	var lacking uncompiled
	switch {
	case errors.As(err, &lacking):
		return &core.Refusal{Kind: core.Unavailable, Message: "this workflow run cannot go on now; try again", Cause: err}
	case err != nil:
		return err
	case called.settled(0).Lost:
		return r.unknown() // another callback was first
	}
	r.Observe(core.CalledIn{Run: called.made(0).Run, Path: at.Step.Path, Known: true})
	return nil
}

func (r *Runner) unknown() error {
	r.Observe(core.CalledIn{})
	return ErrToken
}

// Redrive begins a failed run anew, from its first step or from where it failed, and
// returns it. Whoever works for the lane of its workflow runs it. A run that did not fail,
// or whose definition cannot be compiled, is refused as [core.Invalid], one that is not
// there as [core.NotFound].
func (r *Runner) Redrive(ctx context.Context, run core.ID, fromFailed bool) (core.Run, error) {
	now, err := r.operate(ctx, &turn{run: run, plan: func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return d.Redrive(p, v, fromFailed)
	}})
	var lacking uncompiled
	if errors.As(err, &lacking) {
		why := core.Refuse(core.Invalid, "workflow run %s cannot be redriven by this process: %s", run, lacking)
		why.Cause = err
		return now, why
	}
	return now, err
}

// Cancel ends a run that is not finished as failed, and returns it. It needs no definition.
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
		err = refused("workflow run %s is %s; only failed runs can be redriven", t.view.Run)
	case errors.Is(err, workflow.ErrFinished):
		err = refused("workflow run %s is %s; only pending and running runs can be canceled", t.view.Run)
	}
	return t.move.Transition.Run, late(ctx, most, err)
}

func refused(words string, run core.Run) error {
	return core.Refuse(core.Invalid, words, run.ID, run.Status)
}
