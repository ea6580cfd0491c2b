// Package runner runs workflows.
package runner

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// A Store is what a runner uses of a store.
type Store interface {
	core.Runs
	Run(ctx context.Context, id core.ID) (core.Run, error)
	Event(ctx context.Context, id core.ID) (core.Event, error)
}

// An Answer is how a call went.
type Answer struct {
	StatusCode int
	Body       []byte        // of a 2xx reply, whole
	Error      string        // "<class>: <detail>" as in worker.Reply; empty if the reply was 2xx
	Response   string        // what an attempt keeps of the reply
	TooLarge   bool          // the reply was 2xx and has more bytes than are read
	RetryAfter time.Duration // how long the called one asked to be left alone
}

// A Caller makes calls of steps. The job is described in headers.
type Caller interface {
	Call(ctx context.Context, r workflow.Request, job core.TakenJob) Answer
}

// Deps is what a runner works with.
type Deps struct {
	Store   Store
	Clock   core.Clock
	IDs     *core.IDs
	Bell    *core.Bell
	Observe core.Observer
	Caller  Caller

	// Compile makes a definition of what the store keeps of it.
	Compile func(core.Definition) (*workflow.Definition, error)

	// Address is the public address of the gateway, without a slash at its end.
	Address string

	// Obituary is what comes of a run that failed; it may be nil.
	Obituary func(core.Run, core.Step, core.Event) *core.Arrival
}

// A Runner runs workflows. It is safe for concurrent use.
type Runner struct{ Deps }

// New makes a runner.
func New(d Deps) *Runner { return &Runner{d} }

// Attempt does what the job of a step asks for. False means that the job is stale
// and to be closed.
func (r *Runner) Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error) {
	return core.StepEnd{}, false, nil
}

// Settled is what became of a StepEnd.
type Settled = core.StepSettled

// Settle stores how attempts ended.
func (r *Runner) Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error) {
	return nil, nil
}

// ErrToken is the refusal of a callback whose token is not, or no longer, good.
var ErrToken = core.Refuse(core.NotFound, "not found")

// Callback resumes the step that a token was issued for, with the body as its result.
func (r *Runner) Callback(ctx context.Context, token string, body []byte) error { return nil }

// Redrive begins a failed run anew and returns it.
func (r *Runner) Redrive(ctx context.Context, run core.ID, fromFailed bool) (core.Run, error) {
	return core.Run{}, nil
}

// Cancel ends a run that is not finished, and returns it.
func (r *Runner) Cancel(ctx context.Context, run core.ID) (core.Run, error) { return core.Run{}, nil }
