package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
)

// A Bulk does operations at once: see [Operations.Do].
type Bulk interface {
	Do(ctx context.Context, r Rush) (core.Operation, error)
}

// A Rush is an operation without a rate, which the process that begins it does at once.
type Rush struct {
	// Operation has the Action, the Filter and To. Its consumers are known to exist.
	Operation core.Operation

	// Change is its entry in the audit. Its detail gets the id of the operation.
	Change core.Change

	// Did is called after each slice; it may be nil.
	Did func(b operate.Batch, op core.Operation)
}

// lookFor is how long Do looks for a first match before it begins the operation without one.
const lookFor = 2 * time.Second

// Do begins an operation without a rate, does its slices, and returns it. If nothing matches, it begins
// none, and the operation that it returns has no id, only the number of matches that it looked at. It
// begins one too if it looked for a match for about 2 s, and there is more to look at.
//
// The operation is running still if Within has passed, and if there is an error, such as that of a ctx
// that is done. Then a worker goes on with it.
func (o *Operations) Do(ctx context.Context, r Rush) (core.Operation, error) {
	var until time.Time
	if o.Within > 0 {
		until = o.clock().Add(o.Within)
	}
	op, err := o.stamped(ctx, r.Operation)
	if err != nil {
		return core.Operation{}, err
	}
	op.Rate = 0
	b, err := o.first(ctx, op)
	if err != nil || b.Done && b.Matches() == 0 {
		for _, f := range b.Failed {
			tell(o.Observe, f)
		}
		return core.Operation{Looked: b.Looked, Skipped: b.Skipped}, err
	}
	change := r.Change
	change.Detail = map[string]string{"operation": string(op.ID)}
	for name, value := range r.Change.Detail {
		change.Detail[name] = value
	}
	if err := o.store(core.WithChange(ctx, change), op, op.CreatedAt.Add(operate.Head)); err != nil {
		return core.Operation{}, err
	}
	did := r.Did
	if did == nil {
		did = func(operate.Batch, core.Operation) {}
	}
	op, err = o.Doer.Rush(ctx, op, b, until, did)
	o.Bell.Ring(core.OperationLane)
	return o.shown(op), err
}

// first returns the first matches of an operation without a rate. It returns none if nothing matches, or
// if there is none in the part that it looked at within lookFor.
func (o *Operations) first(ctx context.Context, op core.Operation) (b operate.Batch, err error) {
	for stop := o.clock().Add(lookFor); !b.Done && b.Matches() == 0 && o.clock().Before(stop); {
		before := b
		if b, err = o.walker.Next(ctx, op, b.Cursor, o.Doer.Size(op)); err != nil {
			return before, err
		}
		b.Looked, b.Skipped, b.Failed = b.Looked+before.Looked, b.Skipped+before.Skipped, append(before.Failed, b.Failed...)
	}
	return b, nil
}

// Retried is the result of a retry of many jobs.
type Retried struct {
	Jobs int // that are available again

	// Going is the operation that goes on with the others; "" if there are none.
	Going core.ID
}

// retriedOf returns the result of the retry of a lane, or of all, and states the fact.
func retriedOf(op core.Operation, observe core.Observer, lane core.Lane) Retried {
	r := Retried{Jobs: op.Acted}
	if r.Jobs > 0 {
		tell(observe, core.Revived{Lane: lane, Jobs: r.Jobs})
	}
	if op.State == core.OperationRunning {
		r.Going = op.ID
	}
	return r
}
