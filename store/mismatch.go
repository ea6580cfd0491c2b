package store

import (
	"errors"

	"github.com/eventgateway/gateway/core"
)

// SchemaMismatch is the error of a batch that names a table, a column or an index which the database
// does not have: another program changed the tables, or a backup was restored in part. The refusal
// is of kind Unavailable, since senders are to come back once the tables are repaired.
func SchemaMismatch(cause error) error {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: &core.Refusal{
		Kind: core.Invalid, Message: `the tables are not as the gateway made them; "gateway doctor" says how to repair them`, Cause: cause,
	}}
}

// Definite reports whether an error says for certain that a batch took no effect, and what
// has to be changed before it does: it is no refusal of kind Unavailable, or one whose cause
// is a refusal of kind Invalid, such as a missing right or a [SchemaMismatch].
func Definite(err error) bool {
	return err != nil && (!core.IsKind(err, core.Unavailable) || invalidCause(err) != nil)
}

// invalidCause is the refusal of kind Invalid behind one of kind Unavailable, or nil.
func invalidCause(err error) *core.Refusal {
	var outer, inner *core.Refusal
	if errors.As(err, &outer) && outer.Kind == core.Unavailable && errors.As(outer.Cause, &inner) && inner.Kind == core.Invalid {
		return inner
	}
	return nil
}
