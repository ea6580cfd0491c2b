package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// A writer owns the one writing connection: batches wait in a line with a single
// committer.
type writer struct {
	file file
	line *group.Line

	checkpointer *checkpointer

	// The committer's. Nil until first used and after a failed commit.
	session *session
	lazy    bool // the session does not sync
	pages   int  // written since the checkpointer was woken
}

func newWriter(f file) *writer {
	w := &writer{file: f, checkpointer: newCheckpointer(f)}
	w.line = group.NewLine(1, w.commit)
	return w
}

func (w *writer) batch(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	return w.line.Do(ctx, stmts)
}

func (w *writer) close() {
	w.line.Close()
	w.checkpointer.close()
	w.disconnect()
}

// commit writes a group in one transaction. See group.Commit.
func (w *writer) commit(batches []*group.Batch) error {
	if err := w.file.check(); err != nil {
		return err
	}
	if err := w.connect(); err != nil {
		return err
	}
	if err := w.sync(!lazy(batches)); err != nil {
		w.disconnect() // it may sync, or not
		return err
	}
	if err := w.session.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, b := range batches {
		if err := w.runAll(b); err != nil {
			w.undo(err)
			w.relieve(err)
			return err
		}
	}
	if err := w.session.control("COMMIT"); err != nil {
		w.disconnect() // see the package comment
		w.relieve(err)
		return err
	}
	w.checkpoint()
	return nil
}

// lazy tells whether nothing is lost with a group.
func lazy(batches []*group.Batch) bool {
	for _, b := range batches {
		if slices.ContainsFunc(b.Stmts, func(s store.Stmt) bool { return !s.Reads && !s.Lazy }) {
			return false
		}
	}
	return true
}

// sync says whether commits are on the disk before they are answered. If not, they are
// once a later one is: the WAL has one end.
func (w *writer) sync(full bool) error {
	if w.lazy == !full {
		return nil
	}
	level := "NORMAL"
	if full {
		level = "FULL"
	}
	w.lazy = !full
	return w.session.pragma("synchronous = " + level)
}

// checkpoint wakes the checkpointer once there is enough to do, or what it could not do
// may succeed now, and does what it left.
func (w *writer) checkpoint() {
	w.pages += w.session.written()
	if w.checkpointer.owed.CompareAndSwap(true, false) || w.pages >= checkpointAt {
		w.checkpointer.wake()
		w.pages = 0
	}
	if w.checkpointer.rest.CompareAndSwap(true, false) {
		_, _, _ = move(w.session) // the next one moves what this one does not
	}
}

// relieve has pages moved if the database takes no more. On a full disk the WAL may have
// all the room there is, and gives it back only if it begins anew.
func (w *writer) relieve(err error) {
	if core.IsKind(err, core.Unavailable) {
		w.checkpointer.wake()
	}
}

func (w *writer) runAll(b *group.Batch) (err error) {
	for i, s := range b.Stmts {
		if b.Results[i], err = w.session.run(s); err != nil {
			return err
		}
	}
	return nil
}

// undo rolls back. SQLite rolls back by itself on some errors, and then the
// statement fails, which is as good.
func (w *writer) undo(cause error) {
	if err := w.session.control("ROLLBACK"); err != nil || core.IsKind(cause, core.Unavailable) {
		w.disconnect()
	}
}

func (w *writer) connect() (err error) {
	if w.session == nil {
		w.session, err = dial(dsn(w.file.path, fmt.Sprintf("wal_autocheckpoint(%d)", checkpointIn)))
	}
	return err
}

func (w *writer) disconnect() {
	if w.session != nil {
		w.session.close()
		w.session, w.lazy = nil, false
	}
}
