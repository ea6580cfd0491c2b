package metrics

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// operationLogOps measures [core.OperationLog]. DoSlice, FinishedJobs and KindsOf serve the worker
// that does operations, the others serve operators.
type operationLogOps struct {
	beginOperation, operation, operationList, endOperation *op
	doSlice, finishedJobs, kindsOf, purgeOperations        *op
}

func newOperationLogOps(f opFamilies) operationLogOps {
	return operationLogOps{
		beginOperation:  f.op("begin_operation"),
		operation:       f.op("operation"),
		operationList:   f.op("operation_list"),
		endOperation:    f.op("end_operation"),
		doSlice:         f.op("do_slice"),
		finishedJobs:    f.op("finished_jobs"),
		kindsOf:         f.op("kinds_of"),
		purgeOperations: f.op("purge_operations"),
	}
}

func (m *measured) BeginOperation(ctx context.Context, o core.Operation, a core.Arrival) (err error) {
	defer m.beginOperation.ended(time.Now(), &err)
	return m.Store.BeginOperation(ctx, o, a)
}

func (m *measured) Operation(ctx context.Context, id core.ID) (_ core.Operation, err error) {
	defer m.operation.ended(time.Now(), &err)
	return m.Store.Operation(ctx, id)
}

func (m *measured) OperationList(ctx context.Context, after core.ID, limit int) (_ core.Page[core.Operation], err error) {
	defer m.operationList.ended(time.Now(), &err)
	return m.Store.OperationList(ctx, after, limit)
}

func (m *measured) EndOperation(ctx context.Context, now time.Time, id core.ID, why string) (_ core.Operation, err error) {
	defer m.endOperation.ended(time.Now(), &err)
	return m.Store.EndOperation(ctx, now, id, why)
}

func (m *measured) DoSlice(ctx context.Context, now time.Time, s core.Slice) (_ core.Operation, err error) {
	defer m.doSlice.ended(time.Now(), &err)
	return m.Store.DoSlice(ctx, now, s)
}

func (m *measured) FinishedJobs(ctx context.Context, w core.FinishedWalk) (_ []core.Job, err error) {
	defer m.finishedJobs.ended(time.Now(), &err)
	return m.Store.FinishedJobs(ctx, w)
}

func (m *measured) KindsOf(ctx context.Context, events []core.ID) (_ map[core.ID]core.EventKind, err error) {
	defer m.kindsOf.ended(time.Now(), &err)
	return m.Store.KindsOf(ctx, events)
}

func (m *measured) PurgeOperations(ctx context.Context, before time.Time) (err error) {
	defer m.purgeOperations.ended(time.Now(), &err)
	return m.Store.PurgeOperations(ctx, before)
}
