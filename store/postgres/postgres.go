// Package postgres is the store's connection to PostgreSQL 14 and later, through
// pgx. It imports core, store, store/group and the driver.
//
// The idea to know: a batch is one message. All its statements are sent together and the
// results come back together, so a transition costs one round trip. The server runs the
// statements up to the end of the message in one transaction and commits it there. BEGIN and
// COMMIT would be two statements more, and an error between them would leave the connection
// in need of a ROLLBACK. Only batches that read with several statements have BEGIN and COMMIT,
// to see one state of the database.
//
// # Shared commits
//
// Batches of rows that wait for a commit become one batch: rows for the same statement are put
// together, so that a hundred accepts are one INSERT of a hundred events and one INSERT of
// their jobs. At most two commits are written at a time, and only one while a commit of little
// work takes less than a millisecond: see store/group.
//
// Through HTTP, with syncs of a millisecond, one committer accepted 5,700 events/s from 32
// callers and 9,300 from 100, two 6,900 and 10,600, four 7,100 and 9,700. Where syncs are free,
// committers that write at the same time only write smaller groups, and compete for the
// processors: one accepted 7,900 and 9,700 events/s, two 5,000 and 9,100, and each event cost
// the server 78 and 193 µs. So did deliveries: 3,900 a second from 32 callers instead of 3,300.
//
// Acks of queue consumers share commits too, although each consumer gets the exact number of its
// own: the UPDATE returns the number of the caller with each row. With 8 consumers of 10 messages,
// that is 0.7 of the server's processor time for a message, and 1.2 times as many messages.
//
// Inserts go in the order of the unique keys (see the dialect), so that inserts of the same
// keys wait for each other and do not deadlock: the server takes one second to notice a
// deadlock. The store retries the deadlocks that remain.
//
// # Rows
//
// A statement on rows gets each of its columns as an array, so one prepared text serves any number
// of rows. The functions that unpack the arrays are in a list of columns and not in FROM: for groups of
// some ten events, the server needs a fifteenth less processor time. With a single row, an INSERT
// or UPDATE gets the values themselves (text.go). That matters where there are few events a second:
// accepting, taking and settling one took the server 0.56 ms and takes 0.45.
//
// Jobs without keys are inserted without ON CONFLICT, which takes a lock for each row, looks for its
// keys twice and writes one more record of the WAL. Outcomes without a failure are settled in the
// statement that inserts their attempts: its UPDATE returns the rows of the INSERT. Together they
// save the server 6 % of its part of an event.
//
// # Plans
//
// A table that was never analysed must not change a plan, so the planner may use neither
// sequential scans nor hash or merge joins. Plans are made once for all arguments: a plan for
// each execution took 1.0 ms more to take and settle ten jobs (1.9 to 3.0 ms) and 0.15 ms more
// to accept an event (0.40 to 0.54 ms). They are made anew every few seconds, for the reason
// at planLifetime.
//
// These are settings of the session. Behind a pooler a session does not last, so the settings
// are part of each transaction, which costs one statement more, and no statement is prepared.
// The driver detects a pooler by the number of the server process: the number in the greeting
// of the connection is not the number of the process that runs its statements. If the URL asks
// for the execution mode exec or simple_protocol, the driver assumes a pooler as well.
//
// # Durability
//
// A commit is on stable storage when it is answered: if the server, the database or the role
// sets synchronous_commit to off, the settings of the session turn it on. Any other value
// stays, since each of them waits at least for the server's own disk.
//
// # Errors
//
// [store.Retry] has the retries. This package maps SQLSTATEs to classes (errors.go), and
// checks connections that were idle before they are used (liveness.go).
package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// A conn is a [store.Conn]. Its fields do not change after Open, except closed.
type conn struct {
	pool   *pgxpool.Pool
	line   *group.Line // of batches that may share a commit
	mode   mode
	retry  store.Retry
	closed atomic.Bool // set before the pool is closed, so that errors of the pool can be named
}

// Batch runs statements. See store.Conn.
func (c *conn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	if group.Mergeable(stmts) {
		return c.line.Do(ctx, stmts)
	}
	return c.run(ctx, stmts)
}

// commitTimeout bounds a commit that several callers share, with its retries. It is the bound
// that the store sets for each batch as well.
const commitTimeout = 10 * time.Second

// run runs a batch, with the retries that are safe.
func (c *conn) run(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	if !store.Repeatable(stmts) {
		ctx = context.WithValue(ctx, onceOnly{}, true)
	}
	return c.retry.Do(ctx, stmts, c.once)
}

// onceOnly marks the context of a batch that is not repeatable, for usable.
type onceOnly struct{}

// Close closes the connections. It waits for batches under way; later ones fail.
func (c *conn) Close() error {
	c.closed.Store(true)
	c.line.Close()
	c.pool.Close()
	return nil
}
