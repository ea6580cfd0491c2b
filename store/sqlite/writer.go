package sqlite

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// A writer owns the one writing connection: batches wait in a line with a single
// committer.
type writer struct {
	file file
	line *group.Line

	// The committer's. Nil until first used and after a failed commit.
	session *session
}

func newWriter(f file) *writer {
	w := &writer{file: f}
	w.line = group.NewLine(1, w.commit)
	return w
}

func (w *writer) batch(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	return w.line.Do(ctx, stmts)
}

func (w *writer) close() {
	w.line.Close()
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
	if err := w.session.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, b := range batches {
		if err := w.runAll(b); err != nil {
			w.undo(err)
			return err
		}
	}
	if err := w.session.control("COMMIT"); err != nil {
		w.disconnect() // see the package comment
		return err
	}
	return nil
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
		w.session, err = dial(dsn(w.file.path))
	}
	return err
}

func (w *writer) disconnect() {
	if w.session != nil {
		w.session.close()
		w.session = nil
	}
}
