package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// ProveAtomic proves that a batch which fails halfway leaves no trace: the store
// stands on it. It needs no schema, several may run at once, and nothing stays. A
// connection that lacks it is refused with kind Invalid.
//
// It works on a table of its own, which the failing batch itself creates. Where
// that is undone like anything else, a second batch that does the same finds
// neither table nor row. Where it is not, or where a table cannot be created and
// used in one batch, two more batches tell.
func ProveAtomic(ctx context.Context, c Conn) error {
	p := probeTable{conn: c, table: "gateway_probe_" + strings.ToLower(rand.Text())}
	if err := p.mustFail(ctx, p.create(), p.insert(1), p.insert(1)); err != nil {
		p.drop(ctx)
		return err
	}
	_, err := c.Batch(ctx, p.create(), p.insert(1), p.dropStmt())
	if err == nil || !Definite(err) {
		return err
	}
	// The table is there, perhaps with a row; or the Conn prepares statements before
	// it runs any; or nobody may create tables.
	_, err = c.Batch(ctx, p.create())
	if err != nil && !Definite(err) {
		return err
	}
	defer p.drop(ctx)
	if failed := p.mustFail(ctx, p.insert(2), p.insert(2)); failed != nil {
		return failed
	}
	left, unread := c.Batch(ctx, Stmt{Name: "probe_read", SQL: "SELECT n FROM " + p.table + " WHERE n = 2", Reads: true})
	switch {
	case unread != nil && !Definite(unread):
		return unread
	case unread != nil:
		return fmt.Errorf("create a table to prove that batches are atomic: %w", err)
	case len(left[0].Rows) > 0:
		return errNotAtomic
	}
	return nil
}

var errNotAtomic = core.Refuse(core.Invalid, "the database keeps half of a batch whose other half failed; the gateway would lose and repeat events on it, so use another one")

// A probe is a table that exists for a moment, with a name that no other has.
type probeTable struct {
	conn  Conn
	table string
}

func (p probeTable) create() Stmt {
	return Stmt{Name: "probe_create", SQL: "CREATE TABLE " + p.table + " (n INTEGER NOT NULL PRIMARY KEY)"}
}

func (p probeTable) insert(n int) Stmt {
	return Stmt{Name: "probe_insert", SQL: fmt.Sprintf("INSERT INTO %s (n) VALUES (%d)", p.table, n)}
}

func (p probeTable) dropStmt() Stmt { return Stmt{Name: "probe_drop", SQL: "DROP TABLE " + p.table} }

// drop leaves nothing behind. What it cannot drop is an empty table, or none.
func (p probeTable) drop(ctx context.Context) {
	_, _ = p.conn.Batch(context.WithoutCancel(ctx), p.dropStmt())
}

// fails runs a batch that must fail.
func (p probeTable) mustFail(ctx context.Context, stmts ...Stmt) error {
	_, err := p.conn.Batch(ctx, stmts...)
	switch {
	case err == nil:
		return core.Refuse(core.Invalid, "the database stored the same key twice; use another one")
	case !Definite(err):
		return err
	}
	return nil
}
