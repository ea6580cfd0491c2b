package manage

import (
	"cmp"
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// A RunStore has the methods of a store that Runs uses.
type RunStore interface {
	core.Chronicle
	Event(ctx context.Context, id core.ID) (core.Event, error)
	Job(ctx context.Context, id core.ID) (core.Job, error)
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
	Survey(ctx context.Context, run core.ID, epoch int, w core.Wanted) ([]core.Step, error)
}

// A Mover redrives and cancels runs. It refuses a request with [core.Invalid] if the status
// of the run has changed since Runs read it.
type Mover interface {
	// Redrive makes the run follow as from now on, unless as is zero.
	Redrive(ctx context.Context, run core.ID, fromFailed bool, as core.Definition) (core.Run, error)
	Cancel(ctx context.Context, run core.ID) (core.Run, error)
}

// ErrRun is the refusal of a run that does not exist.
var ErrRun = core.Refuse(core.NotFound, "workflow run not found")

// From is the place at which a redrive begins.
type From string

// The places at which a redrive may begin.
const (
	FromStart  From = "start"  // at the first step, as in a new run
	FromFailed From = "failed" // where the run failed; successful steps are kept
)

// ParseFrom reads a From as users write it. Any other text is refused with [core.Invalid].
func ParseFrom(s string) (From, error) {
	switch f := From(s); f {
	case FromStart, FromFailed:
		return f, nil
	}
	return "", core.Refuse(core.Invalid, "from must be one of start, failed; not %q", s)
}

// Follow is the definition that a redriven run follows.
type Follow string

// Definitions that a redriven run may follow.
const (
	FollowStored  Follow = "stored"  // the definition that it began with, or got from an earlier redrive
	FollowCurrent Follow = "current" // the definition of today's configuration
)

// ParseFollow reads a Follow as users write it. Any other text is refused with
// [core.Invalid].
func ParseFollow(s string) (Follow, error) {
	switch f := Follow(s); f {
	case FollowStored, FollowCurrent:
		return f, nil
	}
	return "", core.Refuse(core.Invalid, "definition must be one of stored, current; not %q", s)
}

// A Redrive has the options of a redrive.
type Redrive struct {
	From       From   // zero is FromStart
	Definition Follow // zero is FollowStored
}

// A Redriven is a run that was redriven.
type Redriven struct {
	core.Run

	// Changed says that the workflow of today's configuration has another definition than
	// the run follows.
	Changed bool
}

// An Inspected is a run with one page of its steps and history. Pages have the steps first,
// and then the history.
type Inspected struct {
	core.Run

	// Steps are the steps of its epoch, in the order in which the run reached them. If a
	// step received the event's payload, its State is that payload, as a JSON string if the
	// payload is not JSON.
	Steps []core.Step

	History []core.Entry // of all its epochs, oldest first

	// Next is where the next page begins; zero on the last page.
	Next Place
}

// Runs are the workflow runs, also those of removed workflows. They are safe for concurrent
// use.
type Runs struct {
	// Names are the configured names; nil refuses no name.
	Names *Names

	// Current returns the definition of a workflow in today's configuration; zero if there
	// is no such workflow. It may be nil: then there are none.
	Current func(workflow string) core.Definition

	// Draw returns the diagram of a stored definition. It refuses a definition that is not stored
	// as [core.NotFound], and one that cannot be drawn as [core.Invalid]. If it is nil, no
	// definition is drawn.
	Draw func(ctx context.Context, hash string) (core.Diagram, error)

	store RunStore
	mover Mover
}

// NewRuns makes the service.
func NewRuns(store RunStore, mover Mover) *Runs { return &Runs{store: store, mover: mover} }

// List lists runs newest first, without their outputs. A workflow that is neither configured
// nor has runs is refused with [core.NotFound].
func (r *Runs) List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	page, err := r.store.Runs(ctx, f)
	if err == nil && len(page.Items) == 0 {
		err = r.knownWorkflow(ctx, f.Workflow)
	}
	return page, err
}

// OfEvent returns the runs that an event started, the newest first, at most [core.MaxPage].
func (r *Runs) OfEvent(ctx context.Context, event core.ID) ([]core.Run, error) {
	page, err := r.store.Runs(ctx, core.RunFilter{EventID: event, Limit: core.MaxPage})
	return page.Items, err
}

// Inspect returns a run with a page that begins at a place. The page has at most limit steps
// and entries, 1 to [MaxLines]; 0 means MaxLines. Its states and outputs have less than twice
// [core.MaxRead] bytes, plus the bytes of one more step. The error for a missing run is
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

// Redrive begins a failed or canceled run again and returns it. If the run is to follow the
// current definition, it is refused as [core.Invalid] in two cases: there is no such
// definition, or it does not fit the steps that the run has reached.
func (r *Runs) Redrive(ctx context.Context, id core.ID, how Redrive) (Redriven, error) {
	run, err := r.move(ctx, id, redrivable, func(run core.Run) (core.Run, error) {
		var as core.Definition
		if how.Definition == FollowCurrent {
			if as = r.current(run.Workflow); as.Hash == "" {
				return run, core.Refuse(core.Invalid, "the workflow %s is not configured, so it has no current definition", run.Workflow)
			}
		}
		change := audited(ctx, core.AuditRedrive, string(id), "from", string(cmp.Or(how.From, FromStart)), "definition", string(cmp.Or(how.Definition, FollowStored)))
		return r.mover.Redrive(change, id, how.From == FromFailed, as)
	})
	today := r.current(run.Workflow)
	return Redriven{run, today.Hash != "" && today.Hash != run.Definition}, err
}

func (r *Runs) current(workflow string) core.Definition {
	if r.Current == nil {
		return core.Definition{}
	}
	return r.Current(workflow)
}

// Cancel ends an unfinished run as canceled, and returns it. A call that is under way
// continues, and its answer is kept for a redrive.
func (r *Runs) Cancel(ctx context.Context, id core.ID) (core.Run, error) {
	return r.move(ctx, id, cancelable, func(core.Run) (core.Run, error) {
		return r.mover.Cancel(audited(ctx, core.AuditCancelRun, string(id)), id)
	})
}

// move refuses a change that the status of a run does not allow, in words that name the
// status. If the run moves on meanwhile, the mover refuses, with the words for the new
// status.
func (r *Runs) move(ctx context.Context, id core.ID, allowed func(core.Run) error, do func(core.Run) (core.Run, error)) (core.Run, error) {
	run, err := r.run(ctx, id)
	if err != nil {
		return core.Run{}, err
	}
	if err := allowed(run); err != nil {
		return core.Run{}, err
	}
	moved, err := do(run)
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

// redrivable refuses a run that is neither failed nor canceled.
func redrivable(run core.Run) error {
	if run.Status.Redrivable() {
		return nil
	}
	return core.Refuse(core.Invalid, "workflow run %s is %s; only failed and canceled runs can be redriven", run.ID, run.Status)
}

// cancelable refuses a run that has finished.
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

// showCalls marks the steps whose calls are under way. The beginning of a call is not
// stored, but its job is held then. A step that is shown as running has an Attempt one
// above its ends, which is the number that its receiver sees.
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

// calls reports whether a step will make a call, or is making one.
func calls(s core.Step) bool {
	return (s.Type == "http" || s.Type == "callback") && (s.Status == core.StepReady || s.Status == core.StepRunning)
}

// held returns the jobs of a run under a lease that is not over. They are at most as many
// as workers have slots. The run may have thousands of steps, so the steps are not queried
// one by one.
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

// showPayload fills in the state of steps that received the payload. The store keeps no
// copy of it with the step.
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
			if state, err = stateOf(event); err != nil {
				return err
			}
		}
		steps[i].State = state
	}
	return nil
}

// stateOf returns the payload of an event as the state of a step: null for an opaque payload,
// and a JSON string for a payload that is not JSON.
func stateOf(e core.Event) ([]byte, error) {
	switch {
	case e.Opaque():
		return []byte("null"), nil
	case utf8.Valid(e.Payload) && json.Valid(e.Payload):
		return e.Payload, nil
	}
	return json.Marshal(string(e.Payload))
}
