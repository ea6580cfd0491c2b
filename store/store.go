package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Store implements all roles of core over one Conn. It is safe for concurrent use. All of its
// state beside the Conn is a cache or an optimization: a second process on the same database
// sees the same events and jobs.
type Store struct {
	conn          Conn
	dialect       Dialect
	sql           statements
	clock         core.Clock          // for leases shown as over, schema records and floors
	databaseClock *core.DatabaseClock // nil if the clock is not measured, see timed.go
	leases        *core.IDs           // makes the values of leases and other unique names
	floors        dueFloors           // where claims begin, by lane
	sources       knownHolds          // the held sources
	markMutex     sync.Mutex          // held while marks are written, see Mark
	writeDeadline sharedDeadline      // the context of all writes
	callers       atomic.Int64        // numbers of callers that count their rows, see counted

	definitions definitions   // known to be stored
	scanned     scanPositions // how far sweeps and purges have read
}

var _ core.Store = (*Store)(nil)

// New makes a store over a connection. The clock is read only where no time is passed in: for
// jobs shown with an expired lease, for floors, and for schema records.
func New(conn Conn, d Dialect, clock core.Clock) *Store {
	return &Store{conn: conn, dialect: d, sql: statementsOf(d), clock: clock, leases: core.NewIDs(clock)}
}

// Close closes the connection. Calls that are under way may fail.
func (s *Store) Close() error { return s.conn.Close() }

// write runs a batch to its end even if the caller's context is canceled. A batch that is on
// its way to the database may take effect anyway; a caller that got "canceled" would not know.
// The time is bounded by writeDeadline instead.
func (s *Store) write(_ context.Context, stmts ...Stmt) ([]Result, error) {
	return s.send(s.writeDeadline.context(), stmts...)
}

// read runs one statement that returns rows. Unlike write it ends with the caller's context.
func (s *Store) read(ctx context.Context, st statement, args ...any) ([][]any, error) {
	results, err := s.readBatch(ctx, st.with(args...))
	if err != nil {
		return nil, err
	}
	return results[0].Rows, nil
}

// readBatch runs statements that return rows, for at most callTimeout.
func (s *Store) readBatch(ctx context.Context, stmts ...Stmt) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.send(ctx, stmts...)
}

// onlyRow returns the row of a statement that always returns one row, such as a count. A wrong
// number of rows means that the server is not the database: with SQL over HTTP, a proxy may
// answer in its place. So the refusal is of kind Unavailable.
func onlyRow(st statement, rows [][]any) ([]any, error) {
	if len(rows) != 1 {
		return nil, core.Refuse(core.Unavailable, "the database answered %s with %d rows instead of 1", st.name, len(rows))
	}
	return rows[0], nil
}

// maxRereads bounds how often a batch's reads are repeated. The pauses between them, 1 ms
// doubled each time, add up to about one second.
const maxRereads = 10

// rereadUntil returns the results of the reads at the end of a batch, and repeats the reads until
// the results are complete. If the results stay incomplete, it returns an error of kind
// Unavailable.
//
// The reason is MariaDB (seen in 10.11). A committing transaction there releases its row locks
// a moment before readers without locks see its rows. A claim, or an INSERT that finds its key
// taken, may meet a row in that moment. Then the reads behind it in the same batch do not see
// the row, or not the row that it refers to. The moment ends when a thread of the server is
// scheduled again.
func (s *Store) rereadUntil(ctx context.Context, results []Result, reads []Stmt, complete func([]Result) bool) ([]Result, error) {
	results, err := s.reread(ctx, results, reads, complete)
	if err == nil && !complete(results) {
		return nil, core.Refuse(core.Unavailable, "the database does not show rows that were just written; send the request again")
	}
	return results, err
}

// reread is rereadUntil for results that may stay incomplete: it returns the last ones without
// an error.
func (s *Store) reread(ctx context.Context, results []Result, reads []Stmt, complete func([]Result) bool) ([]Result, error) {
	ctx = context.WithoutCancel(ctx) // the write has taken effect, so the caller needs its result
	for n := 0; n < maxRereads && !complete(results); n++ {
		time.Sleep(time.Millisecond << n)
		var err error
		if results, err = s.readBatch(ctx, reads...); err != nil {
			return nil, err
		}
	}
	return results, nil
}
