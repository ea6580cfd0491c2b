package store

import (
	"errors"

	"github.com/eventgateway/gateway/core"
)

// SchemaMismatch is the error of a batch that names a table, column or index which the database
// does not have: another program changed the tables, or a backup was restored in part. Its kind
// is Unavailable, so that senders try again and the events are stored once an operator has
// repaired the tables. The cause is of kind Invalid and tells the operator the command to run.
func SchemaMismatch(cause error) error {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: &core.Refusal{
		Kind: core.Invalid, Message: `the tables are not as the gateway made them; "gateway doctor" says how to repair them`, Cause: cause,
	}}
}

// Definite reports whether an error is certain to have had no effect, and certain to come back
// until something is changed. That is any error but a refusal of kind Unavailable. An
// Unavailable with a cause of kind Invalid is definite too, such as a missing right or a
// [SchemaMismatch].
func Definite(err error) bool {
	return err != nil && (!core.IsKind(err, core.Unavailable) || invalidCause(err) != nil)
}

// invalidCause returns the refusal of kind Invalid behind a refusal of kind Unavailable, or
// nil.
func invalidCause(err error) *core.Refusal {
	var outer, inner *core.Refusal
	if errors.As(err, &outer) && outer.Kind == core.Unavailable && errors.As(outer.Cause, &inner) && inner.Kind == core.Invalid {
		return inner
	}
	return nil
}
