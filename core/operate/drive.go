package operate

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// look is the time between two looks at an operation that a worker does.
	look = 200 * time.Millisecond

	// patience is how long Drive leaves an operation to workers that do none of its slices. It is longer
	// than the time between two slices at the lowest rate.
	patience = 3 * time.Second
)

// Drive does an operation until it is over, and returns it. It calls seen with the operation after each
// look at it. It is for a program that has no worker, such as a command beside a gateway that runs or does
// not run.
//
// Drive does the first slice. As long as no other process does slices, Drive does the next ones too, at the
// rate of the operation. If another process does them, Drive only looks on. So the rate is kept to, but
// for a slice at the beginning, and an operation does not wait for a gateway that is not there.
func (d *Doer) Drive(ctx context.Context, id core.ID, seen func(core.Operation)) (core.Operation, error) {
	ours, moved := 0, d.Clock() // how many slices there were after our last one; when there was a new one
	for last := 0; ; {
		op, err := d.Store.Operation(ctx, id)
		if err != nil {
			return op, err
		}
		seen(op)
		if op.State != core.OperationRunning {
			return op, nil
		}
		now := d.Clock()
		if op.Seq != last {
			last, moved = op.Seq, now
		}
		wait := look
		if op.Seq == ours || now.Sub(moved) >= patience {
			if op, wait, err = d.slice(ctx, op); err != nil {
				return op, err
			}
			ours, last, moved = op.Seq, op.Seq, d.Clock()
		}
		if op.State == core.OperationRunning && !sleep(ctx, wait) {
			return op, ctx.Err()
		}
	}
}
