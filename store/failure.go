package store

import (
	"errors"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Class is the meaning of a database's error for the batch that met it: whether the batch
// may have taken effect, whether [Retry] sends it again, and the refusal that the caller gets.
// A driver maps the error codes of its engine to classes and decides nothing else.
type Class int

const (
	// Rejected: the database refused a statement. The batch took no effect and never will, so
	// the error goes to the caller as it is: it is a defect, not an outage.
	Rejected Class = iota

	// Conflict: another writer was in the way, such as a deadlock. The batch left no trace and
	// is sent again after a pause.
	Conflict

	// Stale: the connection had ended before anything of the batch was sent on it. The batch
	// is sent again even if its effect must not be doubled (Stmt.Once).
	Stale

	// Lost: the connection or the server went away before it answered. The batch may have
	// taken effect. It is sent again unless a statement is marked Once.
	Lost

	// Down: the database cannot do it now: no connection, no disk, no memory, or too late. The
	// batch may have taken effect. Another try at once would meet the same.
	Down

	// Overloaded: more requests make it worse. No batch is sent until Failure.Wait is over.
	Overloaded

	// Mismatched: a table, a column or an index does not exist. See [SchemaMismatch].
	Mismatched

	// Misconfigured: the operator has to change a right or a setting first. Failure.Err is a
	// refusal of kind Invalid that says which one.
	Misconfigured
)

// A Failure is an error of a database as its driver understands it.
type Failure struct {
	Class Class
	Err   error

	// Unsent says that nothing of the batch was sent. Retry reports [core.Untouched] only if
	// that is so for each try.
	Unsent bool

	// Wait is the time in which the database wants no batch. It counts if the class is
	// Overloaded.
	Wait time.Duration
}

// Refusal is the error of the kinds that [Conn] promises: the engine's own error for
// Rejected, and a refusal of kind Unavailable for all other classes.
func (f Failure) Refusal() error {
	switch f.Class {
	case Rejected:
		return f.Err
	case Mismatched:
		return SchemaMismatch(f.Err)
	}
	r := unavailable(f.Err)
	if f.Class == Overloaded {
		r.RetryAfter = f.Wait
	}
	return r
}

// Unavailable is the refusal of a batch that the database cannot run now. The cause is for the
// log: senders of events see "database unavailable" only.
func Unavailable(cause error) error { return unavailable(cause) }

func unavailable(cause error) *core.Refusal {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: cause}
}

// ErrClosed is the cause of the refusal of a batch on a closed [Conn].
var ErrClosed = errors.New("it is closed")

// Unsent wraps the error of a try that ended before anything of the batch was sent. A driver
// uses it where the engine's error alone does not say so. See [Failure].
func Unsent(err error) error { return &unsentError{err} }

type unsentError struct{ error }

func (u *unsentError) Unwrap() error { return u.error }
