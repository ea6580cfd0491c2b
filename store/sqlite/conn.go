// Package sqlite is the store's connection to a SQLite file, through
// modernc.org/sqlite. It imports core, store, store/group and the driver.
//
// The idea to know: one goroutine writes. SQLite has one writer at a time
// anyway; giving it one owner means no lock is ever contended inside the
// process, and that every batch which arrives while a commit is being synced
// joins the next commit. Reads go to a few query-only connections beside it.
//
// Settings, and why: WAL, so that readers never wait; synchronous=FULL, so that
// a commit is on the disk before it is answered (in WAL mode NORMAL loses the
// newest commits with the power); a busy timeout for the moments when a command
// of the program writes from another process. They are in the connection string
// because a pragma sent later reaches only one connection of a pool.
//
// After a failed commit or sync the writer's connection is closed and opened
// anew, never told to commit again: what a failed sync left in the page cache is
// unknown, and asking twice may report success for pages that are not there.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Open opens the database file at path, creating it (readable by its owner only)
// if there is none. The folder must exist. It does not change the schema.
func Open(path string) (store.Conn, error) {
	if err := errors.Join(Examine(path), checkNames(path)); err != nil {
		return nil, err
	}
	return openFile(path, nil)
}

// Open opens the locked database for a server. It refuses one that lacks commits.
func (l *Lock) Open() (store.Conn, error) {
	c, err := openFile(l.path, newMarker(l))
	if err != nil {
		return nil, err
	}
	if err := reaches(l.path, l.note.mark); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func openFile(path string, m *marker) (store.Conn, error) {
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	f, err := identify(path)
	if err != nil {
		return nil, err
	}
	c := &conn{file: f, readers: newReaders()}
	f.renew = c.renew
	c.writer = newWriter(f, m)
	// Looking into it proves that the file is a database. It takes no lock, so that
	// a command that only reads need not wait for a busy server.
	look := store.Stmt{Name: "open", SQL: "SELECT 1 FROM sqlite_master LIMIT 1", Reads: true}
	if _, err := c.Batch(context.Background(), look); err != nil {
		c.Close()
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	if f.info, err = os.Stat(path); err != nil { // it has a size now
		c.Close()
		return nil, store.Unavailable(err)
	}
	return c, nil
}

// maxReaders is how many batches are read at the same time.
const maxReaders = 4

var errClosed = store.Unavailable(store.ErrClosed)

type conn struct {
	file    *file
	writer  *writer
	readers *readers
	closed  atomic.Bool
	seen    sighting // under use
}

// Batch runs statements. See store.Conn.
func (c *conn) Batch(ctx context.Context, stmts ...store.Stmt) (results []store.Result, err error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	if !store.ReadsOnly(stmts) {
		return c.writer.line.Do(ctx, stmts)
	}
	err = c.file.again(func() (err error) {
		results, err = c.readBatch(ctx, stmts)
		return err
	})
	return results, err
}

func (c *conn) readBatch(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.closed.Load() {
		return nil, errClosed
	}
	s, err := c.readers.take(ctx)
	if err != nil {
		return nil, store.Unavailable(err)
	}
	if c.closed.Load() { // meanwhile
		c.readers.give(s)
		return nil, errClosed
	}
	results, err := c.read(&s, stmts)
	if err != nil && s != nil && core.IsKind(err, core.Unavailable) {
		s.close() // what is wrong with the file may be wrong with the connection
		s = nil
	}
	c.readers.give(s)
	return results, err
}

// read reads from one state of the database.
func (c *conn) read(s **session, stmts []store.Stmt) (results []store.Result, err error) {
	if err := c.file.check(); err != nil {
		return nil, err
	}
	if *s == nil {
		if *s, err = dial(dsn(c.file.path, "query_only(1)")); err != nil {
			return nil, err
		}
	}
	if len(stmts) > 1 || len(stmts[0].Rows) > 1 {
		if err := (*s).control("BEGIN"); err != nil {
			return nil, err
		}
		defer (*s).control("ROLLBACK")
	}
	results = make([]store.Result, len(stmts))
	for i, st := range stmts {
		if results[i], err = (*s).run(st); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Close closes the file. It waits for batches under way; later ones fail.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.writer.close()
	return c.readers.close()
}

// readers are the connections for reading, at most maxReaders. The one that was used
// last is used next: each keeps pages of its own in memory, and who reads one thing after
// the other needs them once.
type readers struct {
	free chan struct{} // one for each that may be taken
	mu   sync.Mutex
	idle []*session // those of them that are open
}

func newReaders() *readers {
	r := &readers{free: make(chan struct{}, maxReaders)}
	for range maxReaders {
		r.free <- struct{}{}
	}
	return r
}

// take waits for a connection. It is nil if it is not open yet.
func (r *readers) take(ctx context.Context) (s *session, err error) {
	select {
	case <-r.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.idle) - 1; last >= 0 {
		s, r.idle = r.idle[last], r.idle[:last]
	}
	return s, nil
}

// give takes a connection back, or nil for one that is not open.
func (r *readers) give(s *session) {
	if s != nil {
		r.mu.Lock()
		r.idle = append(r.idle, s)
		r.mu.Unlock()
	}
	r.free <- struct{}{}
}

// drop closes the connections, of which none is used.
func (r *readers) drop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.idle {
		errs = append(errs, s.close())
	}
	r.idle = nil
	return errors.Join(errs...)
}

// close closes the connections once their reads have ended. Callers that wait for a connection find
// none that is open.
func (r *readers) close() error {
	for range maxReaders {
		<-r.free
	}
	err := r.drop()
	for range maxReaders {
		r.free <- struct{}{}
	}
	return err
}
