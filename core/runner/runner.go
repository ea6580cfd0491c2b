// Package runner executes workflows: it does the tasks of jobs, and stores the changes of
// their runs. It imports core, core/workflow and the standard library. It knows neither
// HTTP nor SQL.
//
// The idea to know: core/workflow computes the next transition of a run from its stored
// data. The transition takes effect whole or not at all, and only if the run has not moved
// since it was read. So the runner is one loop: read, compute, store. If another process
// moved the run first, the loop begins again. If the answer of the store is lost, the loop
// sends the same transition again, which its mark makes safe. Workers, callbacks and
// operators all use that loop (see turn.go). They need no locks between them, in one
// process or in many. The callers of one process queue for a run, and store together the
// ends that waited there. That only reduces conflicts (see lineup.go).
//
// An attempt is made in one place (attempt.go) and its end is stored in another
// (settle.go). Many ends are stored at a time: the worker collects them while it stores the
// previous ones. If the worker has room for it, the job of the next step is leased for it in the
// same commit (next.go).
//
// Nothing is cached between two calls except compiled definitions, which never change.
package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// A Store has the methods of a store that a runner uses.
type Store interface {
	core.Runs
	Run(ctx context.Context, id core.ID) (core.Run, error)
	Event(ctx context.Context, id core.ID) (core.Event, error)
}

// An Answer is the result of a call.
type Answer struct {
	StatusCode int
	Body       []byte         // of a 2xx reply, whole
	Error      string         // "<class>: <detail>" as in worker.Reply; empty if the reply was 2xx
	Response   string         // the part of the reply that an attempt keeps
	TooLarge   bool           // the reply was 2xx and has more bytes than are read
	RetryAfter time.Duration  // the Retry-After of the reply; zero if there was none
	Exchange   *core.Exchange // the request and the reply; nil if they are not recorded
}

// A Caller makes calls of steps, with the job in headers. The deadline of ctx is the
// deadline of the call.
type Caller interface {
	Call(ctx context.Context, r workflow.Request, job core.TakenJob) Answer
}

// Deps are the dependencies of a runner.
type Deps struct {
	Store   Store
	Clock   core.Clock
	IDs     *core.IDs
	Bell    *core.Bell // rung when the lane of a workflow gets work; may be nil
	Observe core.Observer

	// Caller may be nil if no attempts are made. Timeout bounds each of its calls. Zero
	// means that only the context of the attempt bounds them.
	Caller  Caller
	Timeout time.Duration

	// Compile makes a definition from its stored form.
	Compile func(core.Definition) (*workflow.Definition, error)

	// Address is the public address of the gateway, without a slash at its end.
	Address string

	// Obituary returns the event about a run that failed; it may be nil.
	Obituary func(core.Run, core.Step, core.Event) *core.Arrival
}

// A Runner executes workflows. It is safe for concurrent use.
type Runner struct {
	Deps

	// mu guards the maps and the seats and turns of the lines. It is never held during a call of
	// the store or of a definition.
	mu    sync.Mutex
	known map[string]*compiled // by the hash of the stored form
	lines map[core.ID]*lineup  // of the runs that callers want to move
}

// New makes a runner.
func New(d Deps) *Runner {
	return &Runner{Deps: d, known: map[string]*compiled{}, lines: map[core.ID]*lineup{}}
}

// A compiled definition is made when a caller first needs it.
type compiled struct {
	turn chan struct{}                       // full while a caller compiles it
	d    atomic.Pointer[workflow.Definition] // nil until then
}

// definition returns the definition with this hash. The cache has at most as many entries
// as the store has definitions, one for each change of a workflow, so no entry is ever
// dropped. A failed compilation is tried again: a missing variable may be set next time.
func (r *Runner) definition(ctx context.Context, hash string) (*workflow.Definition, error) {
	r.mu.Lock()
	// The entry is made under the lock and filled without it, since filling reads the store.
	c := r.known[hash]
	if c == nil {
		c = &compiled{turn: make(chan struct{}, 1)}
		r.known[hash] = c
	}
	r.mu.Unlock()
	if d := c.d.Load(); d != nil {
		return d, nil
	}

	select {
	case c.turn <- struct{}{}: // callers that come meanwhile wait, and get the result
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := c.d.Load(); d != nil {
		return d, nil
	}
	// After an error the entry stays empty, so the next caller tries again.
	stored, err := r.Store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	d, err := r.Compile(stored)
	if err != nil {
		return nil, uncompiled{err}
	}
	c.d.Store(d)
	return d, nil
}

// inMemory returns the definition with this hash, or nil if it has to be read.
func (r *Runner) inMemory(hash string) *workflow.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.known[hash]; c != nil {
		return c.d.Load()
	}
	return nil
}

// An uncompiled is the error of a definition that cannot be compiled.
type uncompiled struct{ error }

func (u uncompiled) Unwrap() error { return u.error }
