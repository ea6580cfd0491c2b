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
	conn          Conn
	dialect       Dialect
	sql           statements
	clock         core.Clock
	databaseClock *core.DatabaseClock // nil if it is not to be measured
	leases        *core.IDs
	floors        dueFloors
	markMutex     sync.Mutex // held while marks are written
	writeDeadline sharedDeadline

	definitions definitions
	scanned     scanPositions
}

var _ core.Store = (*Store)(nil)

// New makes a store over a connection. The clock is asked only where no time is
// passed in: for the presentation of leases that are over, and schema records.
func New(conn Conn, d Dialect, clock core.Clock) *Store {
	return &Store{conn: conn, dialect: d, sql: newStatements(d), clock: clock, leases: core.NewIDs(clock)}
}

// Close closes the connection. Calls that are under way may fail.
func (s *Store) Close() error { return s.conn.Close() }

// write runs a batch to its end even when the caller goes away: what is sent is
// sent, and a caller that is told "canceled" would not know what became of it.
func (s *Store) write(_ context.Context, stmts ...Stmt) ([]Result, error) {
	return s.send(s.writeDeadline.context(), stmts...)
}

// read runs one statement that returns rows.
func (s *Store) read(ctx context.Context, st statement, args ...any) ([][]any, error) {
	results, err := s.readBatch(ctx, st.with(args...))
	if err != nil {
		return nil, err
	}
	return results[0].Rows, nil
}

func (s *Store) readBatch(ctx context.Context, stmts ...Stmt) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.send(ctx, stmts...)
}

// lone returns the row of a statement that always returns one row. With a database over HTTP,
// another server may answer in its place.
func onlyRow(st statement, rows [][]any) ([]any, error) {
	if len(rows) != 1 {
		return nil, core.Refuse(core.Unavailable, "the database answers %s with %d rows, and there is always one", st.name, len(rows))
	}
	return rows[0], nil
}

// looks is how often a batch's reads are repeated until they show what it met.
const maxRereads = 10

// eventually returns what the reads at the end of a batch said, or what they say when
// they are sent again, once that is complete.
//
// On MariaDB (seen in 10.11) a transaction that commits lets go of its rows a moment
// before those who read without locks see them. A claim, or an insert that finds its
// key taken, may meet a row in that moment, and the reads behind it in the same batch
// do not find it, or not what it refers to. The moment is over when a thread of the
// server gets to run again: at most about a second is waited for it.
func (s *Store) rereadUntil(ctx context.Context, results []Result, reads []Stmt, complete func([]Result) bool) ([]Result, error) {
	results, err := s.reread(ctx, results, reads, complete)
	if err == nil && !complete(results) {
		return nil, core.Refuse(core.Unavailable, "the database does not show what was written beside this; send it again")
	}
	return results, err
}

// patiently is eventually for what need not ever be complete.
func (s *Store) reread(ctx context.Context, results []Result, reads []Stmt, complete func([]Result) bool) ([]Result, error) {
	ctx = context.WithoutCancel(ctx) // what the batch wrote is written
	for n := 0; n < maxRereads && !complete(results); n++ {
		time.Sleep(time.Millisecond << n)
		var err error
		if results, err = s.readBatch(ctx, reads...); err != nil {
			return nil, err
		}
	}
	return results, nil
}
