package web_test

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// bulk has one operation, which runs and has matches of each kind.
type bulk struct{ *archivist }

const operationID core.ID = "01KAGVBZVT0C0Q1V7Y5C8H5M2N"

func (b bulk) operation(op core.Operation) core.Operation {
	op.ID, op.CreatedAt, op.State = operationID, noon, core.OperationRunning
	return op
}

func (b bulk) Begin(_ context.Context, op core.Operation) (core.Operation, error) {
	if err := manage.CheckOperation(op); err != nil {
		return op, err
	}
	return b.operation(op), b.say("begin %s by %q", op.Action, op.By)
}

func (b bulk) Plan(_ context.Context, op core.Operation) (manage.Plan, error) {
	if err := manage.CheckOperation(op); err != nil {
		return manage.Plan{}, err
	}
	return manage.Plan{Operation: op, Matches: 250, Consumers: map[core.Lane]int{"handler/billing": 250}, Sample: []core.ID{operationID},
		Takes: 2500 * time.Millisecond}, b.say("plan %s", op.Action)
}

func (b bulk) List(_ context.Context, after core.ID, limit int) (core.Page[core.Operation], error) {
	op := b.operation(core.Operation{Action: core.RetryAction, Rate: core.DefaultRate, Filter: core.OperationFilter{Error: hostile}})
	return core.Page[core.Operation]{Items: []core.Operation{op}, More: true}, b.say("list operations after %q, %d", after, limit)
}

func (b bulk) Operation(_ context.Context, id core.ID) (core.Operation, error) {
	if id != operationID {
		return core.Operation{}, manage.ErrOperation
	}
	op := b.operation(core.Operation{Action: core.ReplayAction, Rate: 50, Filter: core.OperationFilter{Source: "shop"}, To: []core.Lane{"queue/mail"}})
	op.Looked, op.Acted, op.Skipped, op.StartedAt = 40, 30, 2, noon
	return op, b.say("show operation")
}

func (b bulk) Cancel(ctx context.Context, id core.ID) (core.Operation, error) {
	op, err := b.Operation(ctx, id)
	if err == nil {
		op.State, op.FinishedAt = core.OperationCanceled, noon
	}
	return op, err
}
