package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
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
	path     string
	requests chan *request
	quit     chan struct{}
	done     chan struct{}
	once     sync.Once

	// Owned by the goroutine. The connection is nil until first used and after a
	// failed commit.
	db    *sql.DB
	conn  *sql.Conn
	cache *stmtCache
}

type request struct {
	stmts   []store.Stmt
	results []store.Result
	err     error
	done    chan struct{}
}

func newWriter(path string) *writer {
	w := &writer{path: path, requests: make(chan *request, maxJoined), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

var errClosed = &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: errors.New("it is closed")}

// batch hands statements to the writer and waits. A caller that gives up first
// does not learn whether they took effect.
func (w *writer) batch(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	r := &request{stmts: stmts, done: make(chan struct{})}
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
			w.commitTogether(w.join(r))
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
	if err := w.connect(); err != nil {
		return err
	}
	if err := w.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, r := range group {
		if err := w.runAll(r); err != nil {
			w.undo(err)
			return err
		}
	}
	if err := w.control("COMMIT"); err != nil {
		w.disconnect() // see the package comment
		return err
	}
	return nil
}

// undo rolls back. SQLite rolls back by itself on some errors, and then the
// statement fails, which is as good.
func (w *writer) undo(cause error) {
	if err := w.control("ROLLBACK"); err != nil || core.IsKind(cause, core.Unavailable) {
		w.disconnect()
	}
}

func (w *writer) runAll(r *request) error {
	r.results = make([]store.Result, len(r.stmts))
	for i, s := range r.stmts {
		st, err := w.cache.prepare(s.SQL)
		if err != nil {
			return named(s, err)
		}
		run := exec
		if s.Reads {
			run = query
		}
		if r.results[i], err = run(st, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) control(sql string) error {
	st, err := w.cache.prepare(sql)
	if err != nil {
		return classify(err)
	}
	_, err = exec(st, store.Stmt{Name: sql})
	return err
}

func (w *writer) connect() error {
	if w.conn != nil {
		return nil
	}
	db, err := sql.Open("sqlite", dsn(w.path))
	if err != nil {
		return classify(err)
	}
	c, err := db.Conn(context.Background())
	if err != nil {
		db.Close()
		return classify(err)
	}
	w.db, w.conn, w.cache = db, c, newStmtCache(c.PrepareContext)
	return nil
}

func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	w.cache.close()
	w.conn.Close()
	w.db.Close()
	w.db, w.conn, w.cache = nil, nil, nil
}

// A stmtCache keeps prepared statements by their text. Texts are constant but
// for the few combinations of filters, so it needs no bound of its own.
type stmtCache struct {
	mu      sync.Mutex
	prepper func(context.Context, string) (*sql.Stmt, error)
	stmts   map[string]*sql.Stmt
}

func newStmtCache(prepper func(context.Context, string) (*sql.Stmt, error)) *stmtCache {
	return &stmtCache{prepper: prepper, stmts: map[string]*sql.Stmt{}}
}

func (c *stmtCache) prepare(text string) (*sql.Stmt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st, ok := c.stmts[text]; ok {
		return st, nil
	}
	st, err := c.prepper(context.Background(), text)
	if err != nil {
		return nil, err
	}
	c.stmts[text] = st
	return st, nil
}

func (c *stmtCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.stmts {
		st.Close()
	}
	clear(c.stmts)
}
