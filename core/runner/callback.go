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

// ErrToken is the refusal of a callback whose token is not valid, or no longer.
var ErrToken = core.Refuse(core.NotFound, "not found")

// Callback resumes the step for which a token was issued. The body is the step's result:
// JSON, or nothing for an empty object.
//
// A body that cannot be a result is refused as [core.Invalid] or [core.TooLarge]. That
// happens before the token is looked up, so the refusal is the same for every token. Every
// text that is not a valid token is refused as ErrToken, at the same cost: one look-up of
// hashes. A result that cannot be stored now is refused as [core.Unavailable]; it may be
// stored later. After each refusal other than ErrToken the token stays valid.
//
// A callback that is repeated with the same token and result changes nothing and succeeds
// again, since its sender may not know that it was recorded. That holds for as long as the
// run is stored.
func (r *Runner) Callback(ctx context.Context, token string, body []byte) error {
	result, err := workflow.CallbackResult(body)
	if err != nil {
		return err
	}
	// The body is checked first, and one look-up follows. So the time of the answer does not tell
	// an attacker which tokens exist.
	c := &callback{hash: digest(token), receipt: receiptOf(token, result), result: result}
	found, err := r.awaited(ctx, c)
	if err != nil || found.RunID != "" {
		return err
	}
	// Neither a waiting step nor a recorded callback has this token.
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

// A callback is a request whose body can be a result.
//
// hash finds the waiting step, and receipt finds an equal callback that was recorded before.
type callback struct {
	hash, receipt string
	result        []byte
}

// awaited looks up a callback, and states the fact if the callback is repeated.
func (r *Runner) awaited(ctx context.Context, c *callback) (core.Awaiting, error) {
	found, err := r.Store.Awaited(ctx, r.Clock(), c.hash, c.receipt)
	if err == nil && found.RunID != "" {
		r.Observe(core.CalledIn{Result: core.CallbackRepeated, Run: core.Run{ID: found.RunID}})
	}
	return found, err
}

// receive resumes a step, and reports whether the step was still open.
func (r *Runner) receive(ctx context.Context, c *callback, step core.ID) (bool, error) {
	found, err := r.Store.Situations(ctx, []core.ID{step})
	if err != nil {
		return false, err
	}
	at := found[step]
	// The token is known, but its step is over, its run has ended, or the run was redriven since.
	if !at.Step.Status.Open() || at.Run.Status.Finished() || at.Step.Epoch != at.Run.Epoch {
		return false, nil
	}
	end := core.StepEnd{Job: core.TakenJob{Situation: at}, Kind: core.CalledBack, At: r.Clock(), Body: c.result, Receipt: c.receipt}
	called, err := r.storeEnd(ctx, true, end)
	// A run whose definition does not compile here may be moved by another process, or after an
	// operator has set the missing variable. So the sender is to try again.
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

// unknown states the fact of a bad token and returns the refusal.
func (r *Runner) unknown() error {
	r.Observe(core.CalledIn{Result: core.CallbackUnknown})
	return ErrToken
}

// receiptOf returns the stored form of a recorded callback. The token, which is not stored,
// is its key. Without the token the receipt reveals nothing, not even about a guessed body.
func receiptOf(token string, result []byte) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(result)
	return hex.EncodeToString(h.Sum(nil))
}
