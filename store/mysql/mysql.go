// Package mysql is the store's connection to MySQL 8.0 and MariaDB 10.6 or later,
// through go-sql-driver/mysql. It imports core, store, store/group and the driver.
//
// The idea to know: a batch is one text. "BEGIN; …; COMMIT" goes to the server as
// one query of several statements with the values filled in, and one result set
// comes back for each statement, so a transition is one round trip and no lock
// waits for the network. If a statement fails, the server runs none of those after
// it, the result sets that came tell which one it was, and a ROLLBACK follows. What
// is longer than the server's max_allowed_packet is sent in several texts of one
// transaction.
//
// Values are written by the driver, as binary strings in a connection that speaks
// utf8mb4 and whose SQL mode is set: no character set or mode of the server changes
// what is stored or where a string ends.
//
// Accept and Settle share commits: the rows of all that wait go into one statement
// each. Of 100 rows, settling one costs 29 µs joined with a UNION ALL of them, 28 µs
// with JSON_TABLE, which would have to escape bytes that are not UTF-8, and 55 to
// 80 µs as a statement of its own (MariaDB 10.11, the change itself included).
// INSERTs that read nothing else have VALUES lists.
//
// There is one committer: two were not faster with 32 callers, and meet each other
// in the unique indexes. Claims should not be many at once either: on InnoDB one
// claimer takes more than twice what eight do. The worker has one.
//
// READ COMMITTED, since at REPEATABLE READ locking reads lock gaps, claims deadlock
// and MariaDB was seen to hand out a row twice. Reading one state, a batch of reads
// alone runs in a snapshot. Deadlocks and lock timeouts are retried here. Some are left:
// a claim looks for what it took before by its due time, and keeps the index entries of
// others who took in that lane in the same millisecond, if these are just settling.
//
// There are no partial indexes: generated columns that are null outside the index's
// condition stand in for them, so finished jobs lie at one end of jobs_waiting, out of
// the way. Where a plan could depend on statistics, the index or the order of a join
// is pinned.
//
// Durability is the server's: innodb_flush_log_at_trx_commit = 1 (the default)
// cannot be asked for by a connection. store.Check tells if it is not.
//
// Tested on MariaDB; the folder mysql8 has the statements run by an engine with
// MySQL 8's parser.
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
// Refusals of kind Invalid say what is wrong with the URL, the user's rights or the
// server; those of kind Unavailable mean that the server cannot be reached now.
func Open(ctx context.Context, url string, maxConnections int) (store.Conn, error) {
	a, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
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
	c.line = group.NewLine(min(committers, max(1, maxConnections)), group.MergedCommit(commitTimeout, c.run))
	return c, nil
}

// committers is how many groups are written at the same time.
const committers = 1

// commitTimeout bounds a commit that callers share. Each has its own bound as well.
const commitTimeout = 15 * time.Second

// Bounds of sending a batch again after a conflict. A batch whose answer is lost is not sent
// again: the pool replaces connections that ended while they were idle.
const (
	maxTries   = 10
	firstPause = 2 * time.Millisecond
	maxPause   = 512 * time.Millisecond
)

type conn struct {
	pool  *pool
	line  *group.Line
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

// once runs a batch on one connection. One that turns out to be broken before
// anything was sent is replaced.
func (c *conn) once(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	for {
		s, err := c.pool.take(ctx)
		if err == nil && isSchema(stmts) {
			s, err = c.pool.exchange(ctx, s)
		}
		if err != nil {
			return nil, store.Unsent(err) // nor has an earlier round sent anything
		}
		fresh := s.fresh()
		results, err := s.run(ctx, stmts)
		c.pool.put(s)
		if fresh || !errors.Is(err, errNothingSent) {
			return results, err
		}
	}
}
