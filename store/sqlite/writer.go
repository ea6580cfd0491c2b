package sqlite

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// A writer owns the one writing connection: batches wait in a line with a single
// committer.
type writer struct {
	file   *file
	marker *marker // nil for a command
	line   *group.Line

	checkpointer *checkpointer

	// The committer's. Nil until first used and after a failed commit.
	session *session
	begun   bool        // the session has begun a transaction
	lazy    bool        // the session does not sync
	marked  bool        // the transaction has a mark
	log     os.FileInfo // the WAL of all sessions; nil until first used
	pages   int         // written since the checkpointer was woken
}

func newWriter(f *file, m *marker) *writer {
	w := &writer{file: f, marker: m, checkpointer: newCheckpointer(f, m.expect)}
	w.line = group.NewLine(1, w.commit)
	return w
}

func (w *writer) close() {
	w.line.Close()
	w.checkpointer.close()
	w.file.use.Lock()
	defer w.file.use.Unlock()
	_ = w.checkpointer.disconnect()
	w.disconnect()
}

// commit writes a group in one transaction. See group.Commit.
func (w *writer) commit(batches []*group.Batch) error {
	var unknown error
	err := w.file.again(func() error {
		if err := w.prepare(batches); err != nil {
			return err
		}
		unknown = w.finish()
		return nil
	})
	if err != nil {
		return core.Untouched(err)
	}
	if errors.Is(unknown, errDisplaced) {
		_ = w.file.renew() // the next commit tells
	}
	return unknown
}

// finish commits a transaction. A commit counts only if its files are in their places after
// it: others are not there when the gateway starts again.
func (w *writer) finish() error {
	err := w.session.control("COMMIT")
	if err != nil {
		w.disconnect() // see the package comment
		w.relieve(err)
		return err
	}
	if err := w.inPlace(); err != nil {
		return err
	}
	if w.marked {
		w.marker.committed()
	}
	w.checkpoint()
	return nil
}

// inPlace tells whether the database and the log are at their paths.
func (w *writer) inPlace() error {
	if err := w.file.check(); err != nil {
		return err
	}
	return w.checkLog()
}

func (w *writer) checkLog() error {
	if w.log == nil {
		return nil
	}
	if now, err := os.Stat(w.file.log); err != nil || !os.SameFile(w.log, now) {
		return displaced(w.file.log)
	}
	return nil
}

// prepare begins a transaction and runs a group in it. After an error there is none.
func (w *writer) prepare(batches []*group.Batch) error {
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
	if err := w.begin(); err != nil {
		w.disconnect() // a session that was opened while the file was read-only stays read-only
		return err
	}
	if err := w.fill(batches); err != nil {
		w.undo(err)
		w.relieve(err)
		return err
	}
	return nil
}

// begin begins a transaction. The first one of a session opens the log, which has to be that
// of the other sessions.
func (w *writer) begin() error {
	if err := w.session.control("BEGIN IMMEDIATE"); err != nil || w.begun {
		return err
	}
	err := w.checkLog()
	if err == nil && w.log == nil {
		w.log, err = os.Stat(w.file.log)
	}
	if err != nil {
		return displaced(w.file.log)
	}
	w.begun = true
	return nil
}

// fill runs a group in a transaction.
func (w *writer) fill(batches []*group.Batch) (err error) {
	for _, b := range batches {
		if err := w.runAll(b); err != nil {
			return err
		}
	}
	w.marked = false
	if !w.lazy {
		w.marked, err = w.marker.put(w.session)
	}
	return err
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
		w.marker.expect()
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
		w.session, w.begun, w.lazy = nil, false, false
	}
}
