package operate

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// Head is how long an operation without a rate is left to the process that began it, before a worker
	// looks whether that process does it.
	Head = 2 * time.Second

	// watch is how long a worker waits for a slice of another process. It is longer than a slice of
	// [core.MaxRush] matches takes.
	watch = 500 * time.Millisecond
)

// Rush does an operation without a rate, slice after slice, and returns it. The batch is its first
// matches, as Next returned them for [Doer.Size] of the rate 0. After each slice Rush calls did with its
// batch and the operation.
//
// Rush returns a running operation if ctx is done, if a slice ends after until, or with the error of the
// store. Then a worker goes on with it, after Head at the latest.
func (d *Doer) Rush(ctx context.Context, op core.Operation, b Batch, until time.Time, did func(Batch, core.Operation)) (core.Operation, error) {
	for {
		done, wait, err := d.act(ctx, op, b)
		if err != nil {
			return op, err
		}
		did(b, done)
		if op = done; op.State != core.OperationRunning || !until.IsZero() && !d.Clock().Before(until) {
			return op, nil
		}
		if !sleep(ctx, wait) {
			return op, ctx.Err()
		}
		if b, err = d.Next(ctx, op, op.Cursor, d.Size(op)); err != nil {
			return op, err
		}
	}
}

// rushed reports whether another process does the slices of an operation that has no rate: two that do
// them would do each one twice, and store one.
func (d *Doer) rushed(ctx context.Context, id core.ID) (bool, error) {
	op, err := d.Store.Operation(ctx, id)
	if err != nil || op.Rate != 0 || op.State != core.OperationRunning || !sleep(ctx, watch) {
		return false, unlessMissing(err)
	}
	later, err := d.Store.Operation(ctx, id)
	return err == nil && later.State == core.OperationRunning && later.Seq != op.Seq, unlessMissing(err)
}

// unlessMissing returns an error, unless it says that an operation is not stored.
func unlessMissing(err error) error {
	if core.IsKind(err, core.NotFound) {
		return nil
	}
	return err
}
