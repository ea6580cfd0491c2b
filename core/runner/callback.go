package runner

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// ErrToken is the refusal of a callback whose token is not, or no longer, good.
var ErrToken = core.Refuse(core.NotFound, "not found")

// Callback resumes the step that a token was issued for, with the body as its result: JSON,
// or nothing for an empty object. A body that cannot be a result is refused before the token
// is looked up, so that the refusal is the same for every token: as [core.Invalid], or as
// [core.TooLarge]. Any text that is no good token is ErrToken, at the same cost, one look-up of
// hashes, whatever it looks like. A result that cannot be stored now is refused as
// [core.Unavailable]: it may be stored later. After each other refusal, the token is as good
// as before.
//
// A callback that was recorded and comes again, with the same token and result, changes
// nothing and succeeds again: its sender may not know that it was recorded. So it does for as
// long as the run is stored.
func (r *Runner) Callback(ctx context.Context, token string, body []byte) error {
	result, err := workflow.CallbackResult(body)
	if err != nil {
		return err
	}
	c := &callback{hash: digest(token), receipt: receiptOf(token, result), result: result}
	found, err := r.awaited(ctx, c)
	if err != nil || found.RunID != "" {
		return err
	}
	if found.StepID == "" {
		return r.unknown()
	}
	received, err := r.receive(ctx, c, found.StepID)
	if err != nil || received {
		return err
	}
	// Another callback was first, or the step has ended. That callback may have been the same.
	found, err = r.awaited(ctx, c)
	if err != nil || found.RunID != "" {
		return err
	}
	return r.unknown()
}

// A callback has a body that can be a result.
type callback struct {
	hash, receipt string
	result        []byte
}

// awaited looks for a callback, and tells if it is repeated.
func (r *Runner) awaited(ctx context.Context, c *callback) (core.Awaiting, error) {
	found, err := r.Store.Awaited(ctx, r.Clock(), c.hash, c.receipt)
	if err == nil && found.RunID != "" {
		r.Observe(core.CalledIn{Result: core.CallbackRepeated, Run: core.Run{ID: found.RunID}})
	}
	return found, err
}

// receive resumes a step, and reports whether that was still open.
func (r *Runner) receive(ctx context.Context, c *callback, step core.ID) (bool, error) {
	found, err := r.Store.Situations(ctx, []core.ID{step})
	if err != nil {
		return false, err
	}
	at := found[step]
	if !at.Step.Status.Open() || at.Run.Status.Finished() || at.Step.Epoch != at.Run.Epoch {
		return false, nil
	}
	end := core.StepEnd{Job: core.TakenJob{Situation: at}, Kind: core.CalledBack, At: r.Clock(), Body: c.result, Receipt: c.receipt}
	called, err := r.tell(ctx, true, end)
	var lacking uncompiled
	switch {
	case errors.As(err, &lacking):
		return false, &core.Refusal{Kind: core.Unavailable, Message: "this workflow run cannot go on now; try again", Cause: err}
	case err != nil || called.settled(0).Lost:
		return false, err
	}
	r.Observe(core.CalledIn{Result: core.CallbackReceived, Run: called.made(0).Run, Path: at.Step.Path})
	return true, nil
}

func (r *Runner) unknown() error {
	r.Observe(core.CalledIn{Result: core.CallbackUnknown})
	return ErrToken
}

// receiptOf is what is stored of a callback that was recorded. Without the token, which is not
// stored, nothing can be told from it, not even about a body that is easily guessed.
func receiptOf(token string, result []byte) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(result)
	return hex.EncodeToString(h.Sum(nil))
}
