// Package postgres is the store's connection to PostgreSQL 14 and later, through
// pgx. It imports core, store, store/group and the driver.
//
// The idea to know: a batch is one message. All its statements go out together
// and the answers come back together, so a transition costs one round trip. The
// server takes what comes up to the end of the message for one transaction and
// commits it there; BEGIN and COMMIT would be two statements more, and an error
// between them would leave the connection in need of a ROLLBACK. Only reads of
// several statements have them, to see one state.
//
// # Shared commits
//
// Batches of rows that wait for a commit become one batch: the rows for the same
// text are put together, so that a hundred accepts are one INSERT of a hundred
// events and one of their jobs. At most two commits are written at a time.
// Through HTTP, with syncs of a millisecond, one committer accepted 5,700 events/s
// from 32 callers and 9,300 from 100, two 6,900 and 10,600, four 7,100 and 9,700;
// without the slow syncs 9,800 and 11,900, 9,600 and 11,400, 7,600 and 9,600: four
// write smaller groups, which cost the server half as much again for each event.
//
// Inserts go in the order of the unique keys (see the dialect), so that arrivals
// that meet in both orders wait in line and not in a circle: the server takes a
// second to notice a deadlock. One that happens all the same is retried.
//
// # Plans
//
// A table that was never analysed must not change a plan, so the planner is told
// to do without scans, hashes and merges. Plans are made once for all arguments:
// making them each time took 1.0 ms more to take and settle ten jobs (1.9 to 3.0)
// and 0.15 ms to accept an event (0.40 to 0.54). Every few seconds they are
// made anew, for the reason at planFor.
//
// These are settings of the session. Behind a pooler there is no session, so there
// they are set for each transaction, by one statement more, and nothing is
// prepared. A pooler gives itself away: the number of the process that serves us
// is not the one we were told when we connected. Where the URL asks for exec or
// simple_protocol it is taken for one too.
//
// # Durability
//
// A commit is on stable storage when it is answered: where the server, database or
// role has synchronous_commit off, the same settings turn it on. Any other value
// stays, since each of them at least waits for the server's own disk.
package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

type conn struct {
	pool   *pgxpool.Pool
	line   *group.Line
	mode   mode
	closed atomic.Bool
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

// commitTimeout bounds a commit that several callers share. Each of them gives up
// by its own time.
const commitTimeout = 10 * time.Second

// commit writes a group in one transaction. See group.Commit.
func (c *conn) commit(batches []*group.Batch) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	m := group.Merge(batches)
	results, err := c.run(ctx, m.Stmts)
	if err == nil {
		m.Share(results)
	}
	return err
}

// Bounds of trying again after a conflict. A deadlock takes the server a second
// to notice, so ten of them are more than anybody waits for.
const (
	maxTries   = 10
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// run runs a batch, again if a conflict undid it, and once more if the connection
// turns out to be lost, unless it would then do twice as much.
func (c *conn) run(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	twice := repeatable(stmts)
	if !twice {
		ctx = context.WithValue(ctx, onceOnly{}, true)
	}
	pause, redialled, sent := firstPause, false, false
	give := func(err error) error {
		if sent {
			return classify(err)
		}
		return core.Untouched(classify(err))
	}
	for try := 1; ; try++ {
		results, err := c.once(ctx, stmts)
		sent = sent || err != nil && !isUnsent(err) && !conflict(err) // a conflict leaves no trace
		switch {
		case err == nil:
			return results, nil
		case c.closed.Load():
			return nil, give(errClosed)
		case ctx.Err() != nil || try == maxTries:
			return nil, give(err)
		case conflict(err):
			if err := sleep(ctx, pause/2+rand.N(pause)); err != nil {
				return nil, give(err)
			}
			pause = min(2*pause, maxPause)
		case isLost(err) && !redialled && (twice || pgconn.SafeToRetry(err)):
			redialled = true
			c.pool.Reset() // a server that restarts ends all connections; the idle ones would fail next
		default:
			return nil, give(err)
		}
	}
}

// onceOnly marks the context of a batch that is not repeatable.
type onceOnly struct{}

// repeatable tells whether a batch that may have taken effect can be sent again
// without a thought.
func repeatable(stmts []store.Stmt) bool {
	return !slices.ContainsFunc(stmts, func(s store.Stmt) bool { return s.Once })
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the connections. It waits for batches under way; later ones fail.
func (c *conn) Close() error {
	c.closed.Store(true)
	c.line.Close()
	c.pool.Close()
	return nil
}

var errClosed = unavailable(errors.New("it is closed"))
