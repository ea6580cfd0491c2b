package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// ProveAtomic proves that a batch which fails halfway leaves no trace, which all of the store
// relies on. It needs no schema, several processes may run it at once, and nothing remains. A
// connection without this property is refused with kind Invalid.
//
// It uses a table of its own, which the failing batch itself creates. If the table was undone
// like a row, a second batch finds neither, and that is the proof: it can create the table and
// insert the row without an error. If not, because creating a table commits at once (MySQL), or
// because a table cannot be created and used in one batch, two more batches find out.
func ProveAtomic(ctx context.Context, c Conn) error {
	p := probeTable{conn: c, table: "gateway_probe_" + strings.ToLower(rand.Text())}
	// The key is inserted twice, so the batch fails at its last statement.
	if err := p.mustFail(ctx, p.create(), p.insert(1), p.insert(1)); err != nil {
		p.drop(ctx)
		return err
	}
	_, err := c.Batch(ctx, p.create(), p.insert(1), p.dropStmt())
	if err == nil || !Definite(err) {
		return err
	}
	// Three reasons remain. The first batch left the table behind, perhaps with the row. Or the
	// Conn prepares all statements before it runs the first. Or the account may not create
	// tables. So the table is created in a batch of its own, and a row is inserted twice in
	// another.
	_, err = c.Batch(ctx, p.create())
	if err != nil && !Definite(err) {
		return err
	}
	defer p.drop(ctx)
	if failed := p.mustFail(ctx, p.insert(2), p.insert(2)); failed != nil {
		return failed
	}
	// The row must not be there. If the table cannot be read, it could not be created either.
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

// errNotAtomic is the result of a failed proof.
var errNotAtomic = core.Refuse(core.Invalid, "the database keeps half of a batch whose other half failed; the gateway would lose and repeat events on it, so use another database")

// A probeTable is a table that exists for a moment, under a random name.
type probeTable struct {
	conn  Conn
	table string
}

// create is the statement that creates the table.
func (p probeTable) create() Stmt {
	return Stmt{Name: "probe_create", SQL: "CREATE TABLE " + p.table + " (n INTEGER NOT NULL PRIMARY KEY)"}
}

// insert is the statement that inserts a key.
func (p probeTable) insert(n int) Stmt {
	return Stmt{Name: "probe_insert", SQL: fmt.Sprintf("INSERT INTO %s (n) VALUES (%d)", p.table, n)}
}

// dropStmt is the statement that drops the table.
func (p probeTable) dropStmt() Stmt { return Stmt{Name: "probe_drop", SQL: "DROP TABLE " + p.table} }

// drop drops the table even if ctx was canceled. If that fails, the table is empty or was never
// there, and does no harm.
func (p probeTable) drop(ctx context.Context) {
	_, _ = p.conn.Batch(context.WithoutCancel(ctx), p.dropStmt())
}

// mustFail runs a batch that must fail for good. It returns an error if the batch succeeds, and
// the batch's error if that leaves the outcome open.
func (p probeTable) mustFail(ctx context.Context, stmts ...Stmt) error {
	_, err := p.conn.Batch(ctx, stmts...)
	switch {
	case err == nil:
		return core.Refuse(core.Invalid, "the database stored a primary key twice; use another database")
	case !Definite(err):
		return err
	}
	return nil
}
