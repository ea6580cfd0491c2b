package alert

import (
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Endings are the alerts about operations that finished or failed. Each is stored in the commit that
// completes the job of its operation, so none is missing, and none is there twice. Endings are safe for
// concurrent use. Nil Endings make no alerts.
type Endings struct{ mailing }

// NewEndings returns the Endings for the places that want alerts about operations, with maxAttempts
// attempts to deliver each, at least 1. It returns nil if no place wants them.
func NewEndings(ids *core.IDs, maxAttempts int, places []Place) *Endings {
	m := mailing{kind: OperationFinished, ids: ids, lanes: wanting(OperationFinished, places), maxAttempts: maxAttempts}
	if len(m.lanes) == 0 {
		return nil
	}
	return &Endings{m}
}

// Of returns the alert about an operation that is over. It returns nil for an operation that
// runs or was canceled: its operator knows of the cancel.
func (e *Endings) Of(op core.Operation, at time.Time) *core.Arrival {
	if e == nil || op.State != core.OperationFinished && op.State != core.OperationFailed {
		return nil
	}
	text := fmt.Sprintf("Operation %s (%s) %s: acted on %d, skipped %d", op.ID, op.Action, op.State, op.Acted, op.Skipped)
	if op.Error != "" {
		text += ". It cannot go on: " + fit(op.Error, maxCause, nil)
	}
	a := e.arrival(notice{
		Message: text, Operation: string(op.ID), Action: string(op.Action), Count: op.Acted, Error: fit(op.Error, maxError, nil),
		Since: core.FormatTime(op.CreatedAt),
	}, at)
	return &a
}
