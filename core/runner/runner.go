// Package runner runs workflows: it does what the jobs of steps ask for, and stores what
// becomes of their runs. It imports core, core/workflow and the standard library; it
// knows neither HTTP nor SQL.
//
// The idea to know: what a run does next is computed by core/workflow out of what is
// stored, and takes effect whole or not at all, and only if nobody else moved the run
// since it was read. So the runner is one loop: read, work out, store; once more if
// somebody was first; and the very same again if the answer of the store got lost, which
// is why a transition has a mark. Workers, callbacks and operators all go through that
// loop (see turn.go) and need no locks between them, in one process or in many. That
// those of one process stand in line for a run, and tell together what waited there, only
// keeps them from being in each other's way (see lineup.go).
//
// An attempt is made in one place (attempt.go) and its end stored in another (settle.go),
// many at a time, since the worker settles what has ended while it was storing the last.
//
// Nothing is remembered between two calls but compiled definitions, which never change.
package runner

import (
	"context"
	"sync"
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

// A Caller makes calls of steps. The job is described in headers. ctx carries the
// deadline of the call.
type Caller interface {
	Call(ctx context.Context, r workflow.Request, job core.TakenJob) Answer
}

// Deps is what a runner works with.
type Deps struct {
	Store   Store
	Clock   core.Clock
	IDs     *core.IDs
	Bell    *core.Bell // rung when the lane of a workflow gets work; may be nil
	Observe core.Observer

	// Caller may be nil if no attempts are made. Timeout bounds each of its calls; zero
	// means that nothing does but the context of the attempt.
	Caller  Caller
	Timeout time.Duration

	// Compile makes a definition of what the store keeps of it.
	Compile func(core.Definition) (*workflow.Definition, error)

	// Address is the public address of the gateway, without a slash at its end.
	Address string

	// Obituary is what comes of a run that failed; it may be nil.
	Obituary func(core.Run, core.Step, core.Event) *core.Arrival
}

// A Runner runs workflows. It is safe for concurrent use.
type Runner struct {
	Deps

	mu    sync.Mutex
	known map[string]*compiled // by the hash of what is stored
	lines map[core.ID]*lineup  // of runs that somebody wants to move
}

// New makes a runner.
func New(d Deps) *Runner {
	return &Runner{Deps: d, known: map[string]*compiled{}, lines: map[core.ID]*lineup{}}
}

// A compiled definition is made when it is first asked for.
type compiled struct {
	turn chan struct{} // full while somebody is at it
	d    *workflow.Definition
}

// definition is what runs with this hash follow. There are as many as the store keeps,
// one for each time that somebody changed a workflow, so none is ever forgotten. What
// cannot be compiled is tried again: it may lack a variable that is there next time.
func (r *Runner) definition(ctx context.Context, hash string) (*workflow.Definition, error) {
	r.mu.Lock()
	c := r.known[hash]
	if c == nil {
		c = &compiled{turn: make(chan struct{}, 1)}
		r.known[hash] = c
	}
	r.mu.Unlock()

	select {
	case c.turn <- struct{}{}: // whoever comes meanwhile waits and has it
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.d != nil {
		return c.d, nil
	}
	stored, err := r.Store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	if c.d, err = r.Compile(stored); err != nil {
		return nil, uncompiled{err}
	}
	return c.d, nil
}

// uncompiled is why a definition cannot be compiled.
type uncompiled struct{ error }

func (u uncompiled) Unwrap() error { return u.error }
