package sqlite

import (
	"sync/atomic"

	"github.com/eventgateway/gateway/store"
)

// The start and the length of a checkpoint.
const (
	// checkpointAt is the number of pages in the WAL that starts a checkpoint: 8 MB. Some
	// commits wait for the syncs of each checkpoint. With a fourth of this number of pages,
	// 1 % of the events did.
	checkpointAt = 2000

	// checkpointIn is the number of pages after which SQLite makes the writer move the pages,
	// because the checkpointer cannot keep up: 16 MB. A larger WAL would need space that a
	// full disk lacks.
	checkpointIn = 2 * checkpointAt

	// rounds bounds how often the checkpointer moves pages in one checkpoint. The first round
	// moves most pages; each further round moves the pages written meanwhile.
	rounds = 3
)

// A checkpointer moves pages from the WAL into the database file, on a connection of its own
// beside the writer. SQLite's own way is a checkpoint by the writer after a commit. That was
// the longest wait of callers: 3 ms and more for a thousand pages, where a commit takes 0.3 ms.
//
// SQLite starts the WAL again from its beginning once all pages are moved and no reader uses
// the WAL. If the writer adds pages during each round, a few pages remain, and the writer
// moves those itself.
type checkpointer struct {
	file *file
	due  chan struct{} // holds one request; closed by close
	done chan struct{} // closed when run has ended
	rest atomic.Bool   // the last checkpoint left some pages to the writer
	owed atomic.Bool   // the last checkpoint failed; it is tried again after the next commit

	moved func() // called after each checkpoint, also after a failed one

	// session is nil until the first checkpoint and after an error. The goroutine of run
	// changes it while it holds file.use for reading, a renewal while it holds it for writing.
	session *session
}

// newCheckpointer starts the checkpointer's goroutine, which ends with close.
func newCheckpointer(f *file, moved func()) *checkpointer {
	c := &checkpointer{
		file: f, moved: moved, due: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go c.run()
	return c
}

// wake requests a checkpoint. The writer calls it, so it never waits: a request that is not
// taken yet stands for both.
func (c *checkpointer) wake() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// close waits for a checkpoint under way. No wake may follow.
func (c *checkpointer) close() {
	close(c.due)
	<-c.done
}

// run runs the checkpoints that were requested. Their errors are dropped: the writer works on
// the same file, meets the same error and reports it.
func (c *checkpointer) run() {
	defer close(c.done)
	for range c.due {
		_ = c.file.using(c.round)
	}
}

// round runs one checkpoint. After an error the connection is closed, and the next checkpoint
// opens a new one. moved is called after a failed checkpoint too, which may have moved pages: a
// mark too many costs one page, a missing mark hides lost commits.
func (c *checkpointer) round() error {
	all, err := c.move()
	if err != nil {
		_ = c.disconnect()
	}
	c.moved()
	c.owed.Store(err != nil)
	c.rest.Store(err == nil && !all)
	return err
}

// move moves pages and reports whether none is left. It moves none if the file is no longer at
// its path.
func (c *checkpointer) move() (all bool, err error) {
	if err := c.file.check(); err != nil {
		return false, err
	}
	if c.session == nil {
		if c.session, err = dial(dsn(c.file.path)); err != nil {
			return false, err
		}
	}
	return moveMost(func() (int64, int64, error) { return move(c.session) })
}

// disconnect closes the connection. The caller holds file.use.
func (c *checkpointer) disconnect() (err error) {
	if c.session != nil {
		err = c.session.close()
		c.session = nil
	}
	return err
}

// moveMost moves the pages of the WAL in up to rounds rounds. It reports true if all are moved:
// a round found no page that was written during the round before.
func moveMost(move func() (written, moved int64, err error)) (all bool, err error) {
	seen := int64(-1) // pages in the WAL at the beginning of the round before
	for range rounds {
		written, moved, err := move()
		if err != nil || moved == written && written == seen {
			return err == nil, err
		}
		seen = written
	}
	return false, nil
}

// move moves the pages that are in the WAL when it begins, except pages that a reader's
// snapshot must not see in the file yet. It waits for no lock. It returns the number of pages
// in the WAL at its beginning and how many of them are in the file now.
func move(s *session) (written, moved int64, err error) {
	r, err := s.run(store.Stmt{
		Name: "checkpoint", SQL: "PRAGMA wal_checkpoint(PASSIVE)", Reads: true,
	})
	if err != nil {
		return 0, 0, err
	}
	return r.Rows[0][1].(int64), r.Rows[0][2].(int64), nil
}
