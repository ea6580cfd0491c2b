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
// as [core.Invalid], and the token stays good.
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
	called := newTurn(core.StepEnd{Job: core.TakenJob{Situation: at}, Kind: core.CalledBack, At: r.Clock(), Body: body}).seen()
	if err := r.finish(ctx, brief, called); err != nil {
		return err
	}
	if called.settled(0).Lost {
		return r.unknown() // another callback was first
	}
	r.Observe(core.CalledIn{Run: called.move.Transition.Run, Path: at.Step.Path, Known: true})
	return nil
}

func (r *Runner) unknown() error {
	r.Observe(core.CalledIn{})
	return ErrToken
}

// Redrive begins a failed run anew, from its first step or from where it failed, and
// returns it. Whoever works for the lane of its workflow runs it. A run that did not fail
// is refused as [core.Invalid], one that is not there as [core.NotFound].
func (r *Runner) Redrive(ctx context.Context, run core.ID, fromFailed bool) (core.Run, error) {
	return r.operate(ctx, run, func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return d.Redrive(p, v, fromFailed)
	})
}

// Cancel ends a run that is not finished as failed, and returns it. A run that is finished
// is refused as [core.Invalid], one that is not there as [core.NotFound].
func (r *Runner) Cancel(ctx context.Context, run core.ID) (core.Run, error) {
	return r.operate(ctx, run, func(d *workflow.Definition, p workflow.Pen, v workflow.View) (workflow.Move, error) {
		return d.Cancel(p, v)
	})
}

func (r *Runner) operate(ctx context.Context, run core.ID,
	plan func(*workflow.Definition, workflow.Pen, workflow.View) (workflow.Move, error)) (core.Run, error) {
	t := &turn{run: run, plan: plan}
	err := r.finish(ctx, brief, t)
	switch {
	case errors.Is(err, workflow.ErrNotFailed):
		err = refused("workflow run %s is %s; only failed runs can be redriven", t.view.Run)
	case errors.Is(err, workflow.ErrFinished):
		err = refused("workflow run %s is %s; only pending and running runs can be canceled", t.view.Run)
	}
	return t.move.Transition.Run, err
}

func refused(words string, run core.Run) error {
	return core.Refuse(core.Invalid, words, run.ID, run.Status)
}
