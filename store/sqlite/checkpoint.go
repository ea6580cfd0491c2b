package sqlite

import (
	"sync/atomic"

	"github.com/eventgateway/gateway/store"
)

// When pages are moved from the WAL into the file.
const (
	// checkpointAt is after how many pages: eight megabytes. Each time, some commits
	// meet the syncs of it; with a fourth of that, one event in a hundred did.
	checkpointAt = 2000

	// checkpointIn is how many pages may be in the WAL before the writer moves them
	// itself, because the checkpointer cannot keep up: sixteen megabytes. More would be
	// room that a full disk lacks for the moving.
	checkpointIn = 2 * checkpointAt

	// rounds is how often the checkpointer looks whether all is moved: the last time, if
	// not before, it was all that was written until then.
	rounds = 3
)

// A checkpointer moves pages from the WAL into the file, beside the writer. Done by the
// writer alone, as SQLite does it, it was what those waited for longest who waited for a
// commit: 3 ms and more for a thousand pages, where a commit took a third of one.
//
// The WAL begins anew once all pages are moved and nobody reads there. If some are written
// in every round, which are a few, it is the writer who moves these.
type checkpointer struct {
	file *file
	due  chan struct{} // closed in the end
	done chan struct{}
	rest atomic.Bool // left to the writer
	owed atomic.Bool // nothing was moved, since something was wrong with the file

	moved func() // is told of each time that pages were moved

	session *session // nil until first used and after an error
}

func newCheckpointer(f *file, moved func()) *checkpointer {
	c := &checkpointer{file: f, moved: moved, due: make(chan struct{}, 1), done: make(chan struct{})}
	go c.run()
	return c
}

// wake is the writer's. It never waits.
func (c *checkpointer) wake() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// close waits for a round under way.
func (c *checkpointer) close() {
	close(c.due)
	<-c.done
}

// run has a connection of its own, from the first time on. One that fails is opened anew
// the next time: what is wrong with the file is met by the writer as well, who tells.
func (c *checkpointer) run() {
	defer close(c.done)
	for range c.due {
		_ = c.file.using(c.round)
	}
}

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

func (c *checkpointer) disconnect() (err error) {
	if c.session != nil {
		err = c.session.close()
		c.session = nil
	}
	return err
}

// moveMost moves what is in the WAL, and tells whether that is all of it: whether nothing
// was written while it was moved.
func moveMost(move func() (written, moved int64, err error)) (all bool, err error) {
	seen := int64(-1)
	for range rounds {
		written, moved, err := move()
		if err != nil || moved == written && written == seen {
			return err == nil, err
		}
		seen = written
	}
	return false, nil
}

// move moves what is in the WAL when it begins, as far as nobody reads what was there
// before. It waits for no one. It tells how many pages were in the WAL then, and how many
// of those are moved.
func move(s *session) (written, moved int64, err error) {
	r, err := s.run(store.Stmt{Name: "checkpoint", SQL: "PRAGMA wal_checkpoint(PASSIVE)", Reads: true})
	if err != nil {
		return 0, 0, err
	}
	return r.Rows[0][1].(int64), r.Rows[0][2].(int64), nil
}
