package manage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
)

// Bounds of a plan.
const (
	MaxPlan    = 100_000         // matches that it counts
	PlanTime   = 5 * time.Second // about how long it takes
	planSample = 10              // ids that it names
	planChunk  = 500             // matches that it reads at once
)

// Operations are the stored operations. They are safe for concurrent use.
type Operations struct {
	// Bell rings for the lane of operations; it may be nil.
	Bell *core.Bell

	// Observe receives a fact for each operation that begins or that an operator ends; it may
	// be nil.
	Observe core.Observer

	// Names are the configured names; nil refuses no name.
	Names *Names

	// Doer does the slices of Do. Without one, only workers do slices.
	Doer *operate.Doer

	// Within is about how long one Do takes at most; 0 is no bound.
	Within time.Duration

	walker operate.Walker
	ids    *core.IDs
	clock  core.Clock
}

// NewOperations makes the service.
func NewOperations(w operate.Walker, ids *core.IDs, clock core.Clock) *Operations {
	return &Operations{walker: w, ids: ids, clock: clock}
}

// ErrOperation is the refusal of an operation that does not exist.
var ErrOperation = core.Refuse(core.NotFound, "operation not found")

// A Plan is an operation that was not begun, with the number of its matches.
type Plan struct {
	Operation core.Operation // it is not stored

	Matches int
	More    bool // there are more, beyond [MaxPlan] or [PlanTime]
	Skipped int  // among them that cannot be acted on now, such as jobs that a worker holds

	// Consumers counts the jobs of each consumer that the operation would change or make, or
	// the runs of each workflow. Lanes are as they are shown.
	Consumers map[core.Lane]int

	// Sample are some of the matches: ids of jobs, events or runs.
	Sample []core.ID

	Takes time.Duration // how long the counted matches take at the rate
}

// Begin stores an operation, which a worker then does. The caller sets the Action, Filter, To and
// Rate; an empty By is the name of the context's actor, and a Rate of 0 is [core.DefaultRate]. A wrong field is refused as [core.Invalid], and a
// consumer that is neither configured nor has jobs as [core.NotFound].
func (o *Operations) Begin(ctx context.Context, op core.Operation) (core.Operation, error) {
	op, err := o.prepared(ctx, op)
	if err != nil {
		return op, err
	}
	return op, o.store(beginning(ctx, op, o.shown(op).Filter.Lane), op, op.CreatedAt)
}

// store stores an operation with the job that does it, which is due at a time.
func (o *Operations) store(ctx context.Context, op core.Operation, due time.Time) error {
	event := core.Event{
		ID: op.ID, Source: core.AlertSource, Type: core.OperationEvent + string(op.Action), Payload: []byte("{}"), ContentType: "application/json",
		CreatedAt: op.CreatedAt,
	}
	job := core.NewJob{ID: max(o.ids.Next(), op.ID.Next()), Lane: core.OperationLane, MaxAttempts: core.Unlimited, DueAt: due}
	if err := o.walker.Store.BeginOperation(ctx, op, core.Arrival{Event: event, Jobs: []core.NewJob{job}}); err != nil {
		return err
	}
	o.Bell.Ring(core.OperationLane)
	tell(o.Observe, core.OperationBegun{Operation: op})
	return nil
}

// Plan counts the matches that an operation with these fields has now. It writes nothing.
func (o *Operations) Plan(ctx context.Context, op core.Operation) (Plan, error) {
	op, err := o.prepared(ctx, op)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Operation: op, Consumers: map[core.Lane]int{}}
	for cursor, stop := "", o.clock().Add(PlanTime); ; {
		b, err := o.walker.Next(ctx, op, cursor, min(planChunk, MaxPlan-p.Matches))
		if err != nil {
			return Plan{}, err
		}
		o.count(&p, b)
		if b.Done {
			break
		}
		if p.Matches >= MaxPlan || !o.clock().Before(stop) {
			p.More = true
			break
		}
		cursor = b.Cursor
	}
	p.Takes = time.Duration(p.Matches) * time.Second / time.Duration(op.Rate)
	return p, nil
}

// count adds the matches of a batch to a plan.
func (o *Operations) count(p *Plan, b operate.Batch) {
	p.Matches, p.Skipped = p.Matches+b.Matches(), p.Skipped+b.Skipped
	add := func(l core.Lane) { p.Consumers[o.Names.places().Shown(l)]++ }
	sample := func(id core.ID) {
		if len(p.Sample) < planSample {
			p.Sample = append(p.Sample, id)
		}
	}
	for _, j := range b.Jobs {
		add(j.Lane)
		sample(j.ID)
	}
	for _, a := range b.Arrivals {
		for _, j := range a.Jobs {
			add(j.Lane)
		}
		sample(a.Event.ID)
	}
	for _, r := range b.Runs {
		add(core.WorkflowLane(r.Workflow))
		sample(r.ID)
	}
}

// List lists operations newest first; if after is set, only those below that id.
func (o *Operations) List(ctx context.Context, after core.ID, limit int) (core.Page[core.Operation], error) {
	page, err := o.walker.Store.OperationList(ctx, after, limit)
	for i := range page.Items {
		page.Items[i] = o.shown(page.Items[i])
	}
	return page, err
}

// Operation returns one operation. The error for a missing one is [ErrOperation], also of Cancel.
func (o *Operations) Operation(ctx context.Context, id core.ID) (core.Operation, error) {
	op, err := o.walker.Store.Operation(ctx, id)
	if core.IsKind(err, core.NotFound) {
		err = ErrOperation
	}
	return o.shown(op), err
}

// Cancel ends an operation. It takes effect after the slice that is being done. The acts of the
// operation until then are not undone. An operation in a final state is refused as [core.Invalid].
func (o *Operations) Cancel(ctx context.Context, id core.ID) (core.Operation, error) {
	op, err := o.Operation(ctx, id)
	if err != nil {
		return op, err
	}
	if op.State == core.OperationRunning {
		if op, err = o.walker.Store.EndOperation(audited(ctx, core.AuditCancelOperation, string(id)), o.clock(), id, ""); err != nil {
			return op, err
		}
		op = o.shown(op)
		if op.State == core.OperationCanceled {
			tell(o.Observe, core.OperationEnded{Operation: op})
			o.Bell.Ring(core.OperationLane)
			return op, nil
		}
	}
	return op, core.Refuse(core.Invalid, "operation %s is %s; only a running one can be canceled", id, op.State)
}

// shown returns an operation with the lanes of alerts as they are shown.
func (o *Operations) shown(op core.Operation) core.Operation {
	op.Filter.Lane = o.Names.places().Shown(op.Filter.Lane)
	return op
}

// prepared checks the fields of an operation, and completes it.
func (o *Operations) prepared(ctx context.Context, op core.Operation) (core.Operation, error) {
	op.Rate = cmp.Or(op.Rate, core.DefaultRate)
	if err := CheckOperation(op); err != nil {
		return op, err
	}
	if op.Filter.Match != "" {
		if _, err := o.walker.Select(op.Filter.Match); err != nil {
			return op, core.Refuse(core.Invalid, "filter.match: %v", err)
		}
	}
	if err := o.known(ctx, op); err != nil {
		return op, err
	}
	return o.stamped(ctx, op)
}

// stamped completes an operation whose fields are right.
func (o *Operations) stamped(ctx context.Context, op core.Operation) (_ core.Operation, err error) {
	if op.ID, op.CreatedAt, err = o.walker.Moment(ctx, o.ids, o.clock()); err != nil {
		return op, err
	}
	op.Filter.Lane, op.State = o.Names.places().Stored(op.Filter.Lane), core.OperationRunning
	if a, ok := core.ActorOf(ctx); ok && op.By == "" && !slices.Contains(core.ReservedActors(), a.Name) {
		op.By = a.Name
	}
	return op, nil
}

// known refuses consumers that do not exist. The consumer of jobs may be gone and have jobs still.
func (o *Operations) known(ctx context.Context, op core.Operation) error {
	if err := o.Names.receivers(op.To); err != nil {
		return err
	}
	lane := op.Filter.Lane
	unknown := o.Names.Lane(lane)
	if unknown == nil {
		return nil
	}
	found := false
	if w := lane.Workflow(); w != "" {
		page, err := o.walker.Store.Runs(ctx, core.RunFilter{Workflow: w, Limit: 1})
		if err != nil {
			return err
		}
		found = len(page.Items) > 0
	} else {
		page, err := o.walker.Store.Jobs(ctx, core.JobFilter{Lane: o.Names.places().Stored(lane), Limit: 1})
		if err != nil {
			return err
		}
		found = len(page.Items) > 0
	}
	if found {
		return nil
	}
	return unknown
}

// operationStatuses are the statuses that a filter of each action may name.
var operationStatuses = map[core.Action][]string{
	core.RetryAction:   {string(core.Dead), string(core.Canceled)},
	core.CancelAction:  {string(core.Available), string(core.Scheduled), string(core.Waiting), string(core.Retryable)},
	core.RedriveAction: {string(core.RunFailed), string(core.RunCanceled)},
}

// CheckOperation refuses an operation whose fields do not fit its action. It does not look into the
// store.
func CheckOperation(op core.Operation) error {
	f := op.Filter
	if _, err := core.ParseAction(string(op.Action)); err != nil {
		return err
	}
	switch {
	case op.Rate < 1 || op.Rate > core.MaxRate:
		return core.Refuse(core.Invalid, "rate must be a whole number from 1 to %d, in matches a second; not %d", core.MaxRate, op.Rate)
	case f == (core.OperationFilter{}):
		return core.Refuse(core.Invalid, "filter selects everything; give at least one of consumer, status, source, event_type, since, until, error, match, delivery_id, first, last")
	case len(op.To) > 0 && op.Action != core.ReplayAction:
		return core.Refuse(core.Invalid, "to is for a replay only; a %s has filter.consumer", op.Action)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return core.Refuse(core.Invalid, "filter.since must be before filter.until")
	case f.Match != "" && op.Action != core.ReplayAction:
		return core.Refuse(core.Invalid, "filter.match is for a replay only")
	case (f.DeliveryID != "" || f.First != "" || f.Last != "") && op.Action != core.ReplayAction:
		return core.Refuse(core.Invalid, "filter.delivery_id, first and last are for a replay only")
	case f.Last != "" && f.First > f.Last:
		return core.Refuse(core.Invalid, "filter.first must not be above filter.last")
	}
	if op.Action == core.ReplayAction {
		if f.Lane != "" || f.Status != "" || f.Error != "" {
			return core.Refuse(core.Invalid, "a replay selects events, by filter.source, event_type, since, until, match, delivery_id, first and last; name its consumers with to")
		}
		return nil
	}
	if s := operationStatuses[op.Action]; f.Status != "" && !slices.Contains(s, f.Status) {
		return core.Refuse(core.Invalid, "filter.status of a %s must be one of %s; not %q", op.Action, strings.Join(s, ", "), f.Status)
	}
	return checkConsumer(op.Action, f.Lane)
}

// checkConsumer refuses a consumer that has no matches of an action.
func checkConsumer(action core.Action, lane core.Lane) error {
	switch {
	case lane == "":
		return nil
	case lane.Source() != "" || lane.Operation():
		return core.Refuse(core.Invalid, "filter.consumer must be the name of a handler, or queue/ or workflow/ and the name of one; not %q", lane)
	case action == core.RedriveAction && lane.Workflow() == "":
		return core.Refuse(core.Invalid, "filter.consumer of a redrive must be workflow/ and the name of a workflow; not %q", lane.Consumer())
	case action != core.RedriveAction && lane.Workflow() != "":
		return core.Refuse(core.Invalid, "filter.consumer of a %s must not be a workflow: steps are left alone, and runs are redriven", action)
	}
	return nil
}
