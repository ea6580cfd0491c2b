// Package mysql is the store's connection to MySQL 8.0 and MariaDB 10.6 or later,
// through go-sql-driver/mysql. It imports core, store, store/group and the driver.
//
// The idea to know: a batch is one text. "BEGIN; …; COMMIT" goes to the server as one query
// of several statements with the values filled in, and one result set comes back for each
// statement that reads or whose changes are counted, see [store.Stmt.Uncounted]. So a transition is
// one round trip, and no lock waits for the network. If a statement fails, the server runs no later
// statement of the text. The number of result sets tells which statement failed, or which few it may
// be, and a ROLLBACK follows. A batch that is longer than the server's
// max_allowed_packet is sent in several texts of one transaction.
//
// The driver writes the values into the text. The character set of the connection is binary, and it
// sets the SQL mode, so no character set or mode of the server changes the stored bytes or the end of a
// string. Statements of the schema are sent as utf8mb4.
//
// Accept and Settle share commits: the rows of all batches that wait go into one statement
// for each text. With 100 rows, one settled job cost 29 µs joined with a UNION ALL of the
// rows, and 28 µs with JSON_TABLE, which would have to escape bytes that are not UTF-8. As a
// statement of its own it cost 55 to 80 µs (MariaDB 10.11, with the change itself). A single row
// is a statement without a row source, see [OfOne], and so are the rows of an UPDATE, see [Keyed]. INSERTs
// that read no table have VALUES lists. MariaDB also reads such a list behind UNION ALL, in place of
// the SELECTs: its part of an event was 0.98, and of a message in a queue 1.02.
//
// There is one committer: two were not faster with 32 callers, and block each other in the
// unique indexes. Concurrent claims block each other too: on InnoDB one claimer takes more
// than twice as many jobs as eight claimers together. The worker has one.
//
// The isolation level is READ COMMITTED: at REPEATABLE READ, locking reads lock gaps, claims
// deadlock, and in tests MariaDB handed out a row twice. A batch that only reads runs in a
// snapshot, to see one state. [store.Retry] repeats a batch after a deadlock or a lock
// timeout. Some deadlocks remain: a claim reads its own jobs back by their due time. It
// thereby locks the index entries of jobs that other claims took in that lane in the same
// millisecond, while their workers may be settling them.
//
// There are no partial indexes. In their place stand generated columns that are null outside
// of the index's condition, so finished jobs are at one end of jobs_waiting, where no claim
// reads. jobs_lists replaces four partial indexes, see store/doc.go. Where a plan could depend on
// statistics, the index or the order of a join is pinned.
//
// Durability depends on the server: a connection cannot set innodb_flush_log_at_trx_commit.
// store.Check warns if it is not 1, the default.
//
// All tests run on MariaDB. The folder mysql8 runs the statements on an engine with the parser
// of MySQL 8.
package mysql

import (
	"context"
	"errors"
	"time"

	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// Open connects to the database at a URL, mysql://user:password@host:3306/db or
// mysql://user@unix(/path)/db with the driver's parameters after a question mark
// (tls=true), or to one in the driver's own form, user:password@tcp(host:3306)/db.
// It keeps at most maxConnections connections. It does not change the schema.
//
// A refusal of kind Invalid names the mistake in the URL, the right that the user lacks, or the
// requirement that the server does not meet. A refusal of kind Unavailable means that the
// server cannot be reached now.
func Open(ctx context.Context, url string, maxConnections int) (store.Conn, error) {
	a, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	// The first connection proves that the server can be reached and is new enough.
	p, err := newPool(a, max(1, maxConnections))
	if err != nil {
		return nil, err
	}
	s, err := p.take(ctx)
	if err != nil {
		return nil, a.explain(err)
	}
	if err := checkVersion(s.version); err != nil {
		p.put(s)
		p.close()
		return nil, err
	}
	p.put(s)
	c := &conn{pool: p, retry: store.Retry{Classify: failure, Tries: maxTries, FirstPause: firstPause, MaxPause: maxPause}}
	c.line = c.newLine()
	return c, nil
}

func (c *conn) newLine() *group.Line {
	return group.NewLine(committers, group.MergedCommit(commitTimeout, c.run))
}

// committers is how many groups are written at the same time: see the package comment.
const committers = 1

// commitTimeout bounds a commit that several callers share, with its retries. Each caller has a
// bound of its own, 10 s as a rule, and gives up by that.
const commitTimeout = 15 * time.Second

// Bounds of sending a batch again after a conflict. A batch whose answer is lost is not sent
// again: the pool replaces connections that ended while they were idle.
const (
	maxTries   = 10
	firstPause = 2 * time.Millisecond
	maxPause   = 512 * time.Millisecond
)

// A conn is a [store.Conn]. Its fields do not change after Open.
type conn struct {
	pool  *pool
	line  *group.Line // of batches that may share a commit
	retry store.Retry
}

// Batch runs statements. See store.Conn.
func (c *conn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	switch {
	case len(stmts) == 0:
		return nil, nil
	case group.Mergeable(stmts):
		return c.line.Do(ctx, stmts)
	}
	return c.run(ctx, stmts)
}

// run runs a batch, with the retries that are safe.
func (c *conn) run(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	return c.retry.Do(ctx, stmts, c.once)
}

// Close closes the connections. It waits for batches under way; later ones fail.
func (c *conn) Close() error {
	c.line.Close()
	c.pool.close()
	return nil
}

// once runs a batch on one connection. If the connection had ended before anything was sent, the
// next one is used, until one is new: a server that restarted has ended all idle connections.
func (c *conn) once(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	for {
		s, err := c.pool.take(ctx)
		if err == nil && isSchema(stmts) {
			s, err = c.pool.exchange(ctx, s)
		}
		if err != nil {
			return nil, store.Unsent(err) // earlier rounds of the loop sent nothing either
		}
		fresh := s.fresh()
		results, err := s.run(ctx, stmts)
		c.pool.put(s)
		if fresh || !errors.Is(err, errNothingSent) {
			return results, err
		}
	}
}
