package manage

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// A RunStore is what of a store Runs uses.
type RunStore interface {
	core.Chronicle
	Event(ctx context.Context, id core.ID) (core.Event, error)
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
}

// A Mover makes runs move. It refuses with [core.Invalid] what is asked of a run in
// another status than Runs found it in.
type Mover interface {
	Redrive(ctx context.Context, run core.ID, fromFailed bool) (core.Run, error)
	Cancel(ctx context.Context, run core.ID) (core.Run, error)
}

// ErrRun is the refusal of a run that is not there.
var ErrRun = core.Refuse(core.NotFound, "workflow run not found")

// From says where a redrive begins.
type From string

// Where a redrive may begin.
const (
	FromStart  From = "start"  // at the first step, as if nothing had happened
	FromFailed From = "failed" // where the run failed; what succeeded is kept
)

// ParseFrom reads it as users write it.
func ParseFrom(s string) (From, error) {
	switch f := From(s); f {
	case FromStart, FromFailed:
		return f, nil
	}
	return "", core.Refuse(core.Invalid, "from must be one of start, failed; not %q", s)
}

// An Inspected run is one with a page of what has become of it: steps first, and history
// once there are no more steps.
type Inspected struct {
	core.Run

	// Steps are those of its epoch, in the order in which it came to them. The State
	// of one that received the event's payload is that payload, as a JSON string if it
	// is no JSON.
	Steps []core.Step

	History []core.Entry // of all its epochs, oldest first

	// Next is where the next page begins; zero if this is the last.
	Next Place
}

// Runs are the workflow runs, also those of workflows that are not configured any
// more. They are safe for concurrent use.
type Runs struct {
	store RunStore
	mover Mover
}

// NewRuns makes the service.
func NewRuns(store RunStore, mover Mover) *Runs { return &Runs{store, mover} }

// List lists runs newest first, without their outputs.
func (r *Runs) List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	return r.store.Runs(ctx, f)
}

// OfEvent is the runs that an event started, the newest first, at most [core.MaxPage].
func (r *Runs) OfEvent(ctx context.Context, event core.ID) ([]core.Run, error) {
	page, err := r.store.Runs(ctx, core.RunFilter{EventID: event, Limit: core.MaxPage})
	return page.Items, err
}

// Inspect tells about a run, from a place on: at most limit steps and entries, 1 to
// [MaxLines], 0 meaning that. States and outputs of one page have less than twice
// [core.MaxRead] bytes, and those of one step more. The error of a run that is not there is
// [ErrRun], here and below.
func (r *Runs) Inspect(ctx context.Context, id core.ID, from Place, limit int) (Inspected, error) {
	run, err := r.run(ctx, id)
	if err != nil {
		return Inspected{}, err
	}
	if limit <= 0 || limit > MaxLines {
		limit = MaxLines
	}
	p := &page{Runs: r, Inspected: Inspected{Run: run}, lines: limit}
	err = p.read(ctx, from)
	return p.Inspected, err
}

// Redrive begins a failed run anew and returns it. A zero From is [FromStart].
func (r *Runs) Redrive(ctx context.Context, id core.ID, from From) (core.Run, error) {
	return r.move(ctx, id, redrivable, func() (core.Run, error) {
		return r.mover.Redrive(ctx, id, from == FromFailed)
	})
}

// Cancel ends a run that is not finished as failed, and returns it. A call that is
// under way is not called back; what comes of it changes nothing.
func (r *Runs) Cancel(ctx context.Context, id core.ID) (core.Run, error) {
	return r.move(ctx, id, cancelable, func() (core.Run, error) { return r.mover.Cancel(ctx, id) })
}

// move refuses what the status of a run does not allow, in words that name it. If the
// run moves on meanwhile, the mover refuses, and the words are those for the new status.
func (r *Runs) move(ctx context.Context, id core.ID, allowed func(core.Run) error, do func() (core.Run, error)) (core.Run, error) {
	run, err := r.run(ctx, id)
	if err != nil {
		return core.Run{}, err
	}
	if err := allowed(run); err != nil {
		return core.Run{}, err
	}
	moved, err := do()
	switch {
	case core.IsKind(err, core.NotFound):
		return core.Run{}, ErrRun
	case core.IsKind(err, core.Invalid):
		if run, again := r.run(ctx, id); again == nil && allowed(run) != nil {
			err = allowed(run)
		}
	}
	return moved, err
}

func redrivable(run core.Run) error {
	if run.Status == core.RunFailed {
		return nil
	}
	return core.Refuse(core.Invalid, "workflow run %s is %s; only failed runs can be redriven", run.ID, run.Status)
}

func cancelable(run core.Run) error {
	if !run.Status.Finished() {
		return nil
	}
	return core.Refuse(core.Invalid, "workflow run %s is %s; only pending and running runs can be canceled", run.ID, run.Status)
}

func (r *Runs) run(ctx context.Context, id core.ID) (core.Run, error) {
	run, err := r.store.Run(ctx, id)
	if core.IsKind(err, core.NotFound) {
		err = ErrRun
	}
	return run, err
}

// showCalls shows which calls are under way: nobody writes down that one begins, but
// its job is held then. A step that is shown as running has an Attempt more than ends,
// as the one it called is told.
func (r *Runs) showCalls(ctx context.Context, run core.Run, steps []core.Step) error {
	var held map[core.ID]bool
	for i := range steps {
		s := &steps[i]
		if !calls(*s) {
			continue
		}
		if held == nil {
			var err error
			if held, err = r.held(ctx, run); err != nil {
				return err
			}
		}
		s.Status = core.StepReady
		if held[s.ID] {
			s.Status = core.StepRunning
			s.Attempt++
		}
	}
	return nil
}

// calls reports whether a step is going to make a call, or makes one.
func calls(s core.Step) bool {
	return (s.Type == "http" || s.Type == "callback") && (s.Status == core.StepReady || s.Status == core.StepRunning)
}

// held are the jobs of a run under a lease that is not over: no more than workers have
// slots. There may be thousands of steps, so these are not asked for one by one.
func (r *Runs) held(ctx context.Context, run core.Run) (map[core.ID]bool, error) {
	held := map[core.ID]bool{}
	f := core.JobFilter{Status: core.Running, Lane: core.WorkflowLane(run.Workflow), EventID: run.EventID, Limit: core.MaxPage}
	for {
		page, err := r.store.Jobs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, j := range page.Items {
			held[j.ID], f.After = true, j.ID
		}
		if !page.More || len(page.Items) == 0 {
			return held, nil
		}
	}
}

// showPayload fills in the state of steps that received the payload, of which the store
// keeps no copy.
func (r *Runs) showPayload(ctx context.Context, run core.Run, steps []core.Step) error {
	var state []byte
	for i := range steps {
		if steps[i].State != nil {
			continue
		}
		if state == nil {
			event, err := r.store.Event(ctx, run.EventID)
			if err != nil {
				return err
			}
			if state, err = stateOf(event.Payload); err != nil {
				return err
			}
		}
		steps[i].State = state
	}
	return nil
}

func stateOf(payload []byte) ([]byte, error) {
	if utf8.Valid(payload) && json.Valid(payload) {
		return payload, nil
	}
	return json.Marshal(string(payload))
}
