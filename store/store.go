package store

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Store is every role of core, over one connection. It is safe for concurrent
// use.
type Store struct {
	conn    Conn
	dialect Dialect
	sql     statements
	clock   core.Clock
	leases  *core.IDs
	floors  floors
	marking sync.Mutex // held while marks are written
}

var _ core.Store = (*Store)(nil)

// New makes a store over a connection. The clock is asked only where no time is
// passed in: for the presentation of leases that are over, and schema records.
func New(conn Conn, d Dialect, clock core.Clock) *Store {
	return &Store{conn: conn, dialect: d, sql: newStatements(d), clock: clock, leases: core.NewIDs(clock)}
}

// Close closes the connection. Calls that are under way may fail.
func (s *Store) Close() error { return s.conn.Close() }

// callTimeout bounds each batch, so that a database that does not answer cannot
// hold a worker for ever.
const callTimeout = 10 * time.Second

// write runs a batch to its end even when the caller goes away: what is sent is
// sent, and a caller that is told "canceled" would not know what became of it.
func (s *Store) write(ctx context.Context, stmts ...Stmt) ([]Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return s.conn.Batch(ctx, stmts...)
}

// read runs one statement that returns rows.
func (s *Store) read(ctx context.Context, name, sql string, args ...any) ([][]any, error) {
	results, err := s.readBatch(ctx, Stmt{Name: name, SQL: sql, Args: args, Reads: true})
	if err != nil {
		return nil, err
	}
	return results[0].Rows, nil
}

func (s *Store) readBatch(ctx context.Context, stmts ...Stmt) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.conn.Batch(ctx, stmts...)
}
