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

// A writer owns the one writing connection. Batches wait in a line with a single committer, so
// the commits of this process never wait for each other's lock.
type writer struct {
	file   *file
	marker *marker // nil for a command
	line   *group.Line

	checkpointer *checkpointer

	// The committer changes these fields while it holds file.use for reading; a renewal and
	// close change them while they hold it for writing.
	session *session    // nil until the first commit and after a failed one
	begun   bool        // the session has begun a transaction, so it has opened the WAL
	lazy    bool        // the session does not sync its commits
	marked  bool        // the transaction has a mark
	log     os.FileInfo // the WAL of all sessions; nil until the first commit
	pages   int         // number of pages written since the checkpointer was woken
}

// newWriter starts the checkpointer. The connection is opened by the first commit.
func newWriter(f *file, m *marker) *writer {
	w := &writer{file: f, marker: m, checkpointer: newCheckpointer(f, m.expect)}
	w.line = group.NewLine(1, w.commit)
	return w
}

// close waits for the commits under way and closes the connections. The line is closed first:
// only a commit wakes the checkpointer, whose channel must not be used after its close.
func (w *writer) close() {
	w.line.Close()
	w.checkpointer.close()
	w.file.use.Lock()
	defer w.file.use.Unlock()
	_ = w.checkpointer.disconnect()
	w.disconnect()
}

// commit writes a group in one transaction. See group.Commit. An error of prepare is Untouched:
// no COMMIT was sent, so the callers may repeat their batches. After an error of finish the
// commit may have taken effect.
func (w *writer) commit(batches []*group.Batch) error {
	var unknown error
	// The error of finish stays out of again, which would run the transaction twice.
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
		_ = w.file.renew() // if it fails, the next commit fails with the same error
	}
	return unknown
}

// finish commits a transaction. A commit counts only if the database and the WAL are at their
// paths after it: the next start of the gateway opens the files at these paths and no others.
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
	// Only now is the mark on the disk. A note of it before the COMMIT could ask for a mark
	// that the database never got.
	if w.marked {
		w.marker.committed()
	}
	w.checkpoint()
	return nil
}

// inPlace reports an error unless the database and the log are at their paths.
func (w *writer) inPlace() error {
	if err := w.file.check(); err != nil {
		return err
	}
	return w.checkLog()
}

// checkLog reports an error unless the log that the sessions have open is at its path. It costs
// one stat(2) for each commit.
func (w *writer) checkLog() error {
	if w.log == nil {
		return nil
	}
	if now, err := os.Stat(w.file.log); err != nil || !os.SameFile(w.log, now) {
		return displaced(w.file.log)
	}
	return nil
}

// prepare begins a transaction and runs a group in it. After an error no transaction is open.
func (w *writer) prepare(batches []*group.Batch) error {
	if err := w.file.check(); err != nil {
		return err
	}
	if err := w.connect(); err != nil {
		return err
	}
	// SQLite does not change this setting inside a transaction.
	if err := w.sync(!lazy(batches)); err != nil {
		w.disconnect() // it is unknown whether the session syncs
		return err
	}
	if err := w.begin(); err != nil {
		// A session that was opened while the file was read-only stays read-only.
		w.disconnect()
		return err
	}
	if err := w.fill(batches); err != nil {
		w.undo(err)
		w.relieve(err)
		return err
	}
	return nil
}

// begin begins a transaction. The first transaction of a session opens the log. It must be the
// log that the other sessions have open: SQLite keeps one index of the log for all of them.
// IMMEDIATE takes the write lock here, where the busy timeout applies. A transaction that first
// reads and then writes can fail at once instead, because its snapshot is stale.
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

// fill runs a group in the open transaction, and adds the mark if one is due. A lazy commit
// gets no mark: a power failure may undo it, and its note would then ask for a lost mark.
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

// lazy reports whether a group may be lost in a power failure. One statement that is neither
// Lazy nor a read makes the whole group wait for the disk.
func lazy(batches []*group.Batch) bool {
	for _, b := range batches {
		if slices.ContainsFunc(b.Stmts, func(s store.Stmt) bool { return !s.Reads && !s.Lazy }) {
			return false
		}
	}
	return true
}

// sync sets whether the session's commits are on the disk before they are answered. A commit
// without a sync reaches the disk with the next synced commit at the latest: the WAL is written
// in order, and its sync includes every page before. The pragma is sent only on a change.
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

// checkpoint runs after each commit. It wakes the checkpointer if enough pages were written, or
// if the last checkpoint failed: this commit succeeded, so the next checkpoint may as well. If
// the last checkpoint left pages, the writer moves them itself. No commit of a server adds pages
// meanwhile, so the WAL can start again from its beginning.
func (w *writer) checkpoint() {
	w.pages += w.session.written()
	if w.checkpointer.owed.CompareAndSwap(true, false) || w.pages >= checkpointAt {
		w.checkpointer.wake()
		w.pages = 0
	}
	if w.checkpointer.rest.CompareAndSwap(true, false) {
		_, _, _ = move(w.session) // pages that it leaves are moved by the next checkpoint
		w.marker.expect()
	}
}

// relieve requests a checkpoint after statements or a COMMIT failed with kind Unavailable.
// On a full disk the WAL may take all the space. Its space can be used again only once all
// pages are moved and the WAL starts again from its beginning.
func (w *writer) relieve(err error) {
	if core.IsKind(err, core.Unavailable) {
		w.checkpointer.wake()
	}
}

// runAll runs the statements of a batch. One failed statement fails the whole group. If the
// database is fine, the line then writes each batch alone, and only the bad batch fails.
func (w *writer) runAll(b *group.Batch) (err error) {
	for i, s := range b.Stmts {
		if b.Results[i], err = w.session.run(s); err != nil {
			return err
		}
	}
	return nil
}

// undo rolls back. SQLite rolls back by itself on some errors. The ROLLBACK then fails and the
// connection is closed, which has the same effect. The connection is also closed if the cause
// was the file or the disk, in case the connection is damaged.
func (w *writer) undo(cause error) {
	if err := w.session.control("ROLLBACK"); err != nil || core.IsKind(cause, core.Unavailable) {
		w.disconnect()
	}
}

// connect opens the session if there is none. SQLite makes this session move pages by itself
// once the WAL has checkpointIn of them.
func (w *writer) connect() (err error) {
	if w.session == nil {
		w.session, err = dial(dsn(w.file.path, fmt.Sprintf("wal_autocheckpoint(%d)", checkpointIn)))
	}
	return err
}

// disconnect closes the session. The next commit opens a new one, which syncs, as dsn says.
// w.log stays set, since other sessions may still have that log open.
func (w *writer) disconnect() {
	if w.session != nil {
		w.session.close()
		w.session, w.begun, w.lazy = nil, false, false
	}
}
