package sqlite

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Bounds of what shares a commit: enough to make the sync negligible, little
// enough that a commit never takes long or much memory.
const (
	maxJoined      = 256     // batches
	maxJoinedBytes = 4 << 20 // of text in their arguments
)

// A writer owns the one writing connection. Batches reach it through a channel.
type writer struct {
	file     file
	requests chan *request
	quit     chan struct{}
	done     chan struct{}
	once     sync.Once

	// Owned by the goroutine. Nil until first used and after a failed commit.
	session *session
}

type request struct {
	ctx     context.Context // of a caller that may stop waiting
	stmts   []store.Stmt
	results []store.Result
	err     error
	done    chan struct{}
}

func newWriter(f file) *writer {
	w := &writer{file: f, requests: make(chan *request, maxJoined), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

var errClosed = &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: errors.New("it is closed")}

// batch hands statements to the writer and waits. A caller that gives up first
// does not learn whether they took effect.
func (w *writer) batch(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	r := &request{ctx: ctx, stmts: stmts, results: make([]store.Result, len(stmts)), done: make(chan struct{})}
	select {
	case w.requests <- r:
	case <-ctx.Done():
		return nil, givenUp(ctx)
	case <-w.done:
		return nil, errClosed
	}
	select {
	case <-r.done:
		return r.results, r.err
	case <-ctx.Done():
		return nil, givenUp(ctx)
	case <-w.done:
		return nil, errClosed
	}
}

// givenUp is the error of a caller that waited for the writer in vain.
func givenUp(ctx context.Context) error {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: ctx.Err()}
}

func (w *writer) close() error {
	w.once.Do(func() { close(w.quit) })
	<-w.done
	return nil
}

func (w *writer) run() {
	defer close(w.done)
	defer w.disconnect()
	for {
		select {
		case <-w.quit:
			return
		case r := <-w.requests:
			// Whoever is about to ask gets in line first: with that, twice as many share
			// a commit under load. Nobody is waited for.
			runtime.Gosched()
			if group := awaited(w.join(r)); len(group) > 0 {
				w.commitTogether(group)
			}
		}
	}
}

// join collects what else is waiting. It never waits for more.
func (w *writer) join(first *request) []*request {
	group, bytes := []*request{first}, first.size()
	for len(group) < maxJoined && bytes < maxJoinedBytes {
		select {
		case r := <-w.requests:
			group = append(group, r)
			bytes += r.size()
		default:
			return group
		}
	}
	return group
}

// size is how much text the arguments hold.
func (r *request) size() int {
	n := 0
	for _, s := range r.stmts {
		for _, a := range s.Args {
			if text, ok := a.(string); ok {
				n += len(text)
			}
		}
	}
	return n
}

// awaited leaves out requests that nobody waits for any more. Written later, a
// claim would lease jobs to no one.
func awaited(group []*request) []*request {
	return slices.DeleteFunc(group, func(r *request) bool { return r.ctx.Err() != nil })
}

// commitTogether runs batches in one transaction. If one of them is refused by
// the database, all are undone and each is run in a transaction of its own, so
// that only the bad one fails; if the database itself is the trouble, all fail.
func (w *writer) commitTogether(group []*request) {
	err := w.transact(group)
	if err != nil && len(group) > 1 && !core.IsKind(err, core.Unavailable) {
		for i := range group {
			w.commitTogether(group[i : i+1])
		}
		return
	}
	for _, r := range group {
		if err != nil {
			r.results, r.err = nil, err
		}
		close(r.done)
	}
}

func (w *writer) transact(group []*request) error {
	if err := w.file.check(); err != nil {
		return err
	}
	if err := w.connect(); err != nil {
		return err
	}
	if err := w.session.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, r := range group {
		if err := w.runAll(r); err != nil {
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

func (w *writer) runAll(r *request) (err error) {
	for i, s := range r.stmts {
		if r.results[i], err = w.session.run(s); err != nil {
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
