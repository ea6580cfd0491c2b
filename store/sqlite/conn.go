// Package sqlite is the store's connection to a SQLite file, through
// modernc.org/sqlite. It imports core, store, store/group and the driver.
//
// The idea to know: one goroutine writes. SQLite has one writer at a time anyway. With one
// goroutine that owns the writing connection, no lock is contended inside the process, and
// every batch that arrives during the sync of a commit joins the next commit. Reads use a few
// query-only connections. SQLite computes in this process, so reads of many rows leave a
// processor to everything else (maxWalks).
//
// Settings, and why: WAL, so that readers never wait; synchronous=FULL, so that a commit is on
// the disk before it is answered (in WAL mode, NORMAL loses the newest commits when the power
// fails); syncs by fdatasync, as in the builds of SQLite for Linux, since fsync also writes the
// times of the file; a busy timeout for the moments in which a command of the program writes from another
// process. All but fdatasync are in the connection string, so that each new connection has them.
//
// After a failed commit or sync the writer closes its connection and opens a new one. It never
// repeats the COMMIT: the content of the page cache after a failed sync is unknown, and a
// second sync may report success for pages that are not on the disk.
//
// # Files
//
// This driver is longer than the others. A database server does for the other drivers the work
// that this package has to do for a file:
//
//   - conn.go: opening, and the readers. session.go: one connection, and the classes of errors.
//   - writer.go: the commits. SQLite refuses a second writer, so batches wait in a line here.
//   - checkpoint.go: moves pages out of the WAL. SQLite lets a commit do this work, and the
//     callers of that commit wait for it. A goroutine beside the writer keeps that wait away.
//   - file.go, renew.go: another program may move, delete or replace the file while it is in
//     use. Commits into a file that has no name any more would be lost.
//   - lock.go, inode.go: only one gateway may serve a file, under any of the file's names.
//     The files inode_*.go have the commands of each operating system.
//   - marks.go: detects a database that lost its WAL, and with it accepted events.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"

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

// Open opens the locked database for a server. It refuses a database that lacks commits.
func (l *Lock) Open() (store.Conn, error) {
	c, err := openFile(l.path, newMarker(l))
	if err != nil {
		return nil, err
	}
	mark, err := c.Batch(context.Background(), readMark)
	switch {
	case err != nil:
		err = fmt.Errorf("read the database %s: %w", l.path, err)
	case rowMark(mark[0]) < l.note.mark:
		err = behind(l.path)
	default:
		return c, nil
	}
	c.Close()
	return nil, err
}

// openFile opens the database, with a marker for a server and with nil for a command. A command
// must not put marks: the note belongs to the process that holds the lock.
func openFile(path string, m *marker) (store.Conn, error) {
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	// For the whole process. An error says that the system has no fdatasync: macOS and Windows.
	_, _ = sqlite.Fdatasync(true)
	f, err := identify(path)
	if err != nil {
		return nil, err
	}
	c := &conn{file: f, readers: newReaders(), walks: make(chan struct{}, maxWalks())}
	f.renew = c.renew
	c.writer = newWriter(f, m)
	// A read proves that the file is a database. It takes no write lock, so a command that
	// only reads need not wait for a busy server.
	look := store.Stmt{Name: "open", SQL: "SELECT 1 FROM sqlite_master LIMIT 1", Reads: true}
	if _, err := c.Batch(context.Background(), look); err != nil {
		c.Close()
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	// The first session may have given an empty file its header. file.check compares with
	// this size to detect a file that was emptied.
	if f.info, err = os.Stat(path); err != nil {
		c.Close()
		return nil, store.Unavailable(err)
	}
	return c, nil
}

// maxReaders is how many batches that only read run at the same time. Each connection keeps a
// page cache of its own, so this number also bounds the memory: 4 MiB each, see dsn.
const maxReaders = 4

// maxWalks returns how many batches that walk run at the same time. One processor is left for everything
// else: a statement that computes holds a processor of Go for up to 10 ms before another goroutine
// gets it, and an event that is accepted needs one several times.
func maxWalks() int { return max(1, min(maxReaders, runtime.GOMAXPROCS(0)-1)) }

// errClosed is the answer to a batch that arrives after Close.
var errClosed = store.Unavailable(store.ErrClosed)

// A conn is a [store.Conn]: it sends batches that write to the writer, and batches that only
// read to one of the readers. Its methods may be called at the same time.
type conn struct {
	file    *file
	writer  *writer
	readers *readers
	walks   chan struct{} // has an element for each batch that walks; see maxWalks
	closed  atomic.Bool
	seen    sighting // of another file at the path; guarded by file.use
}

// Batch runs statements. See store.Conn.
func (c *conn) Batch(
	ctx context.Context, stmts ...store.Stmt,
) (results []store.Result, err error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	if !store.ReadsOnly(stmts) {
		return c.writer.line.Do(ctx, stmts)
	}
	if slices.ContainsFunc(stmts, func(s store.Stmt) bool { return s.Walks }) {
		select {
		case c.walks <- struct{}{}:
			defer func() { <-c.walks }()
		case <-ctx.Done():
			return nil, store.Unavailable(ctx.Err())
		}
	}
	// A read has no effect, so it can be repeated on the new file after a renewal.
	err = c.file.again(func() (err error) {
		results, err = c.readBatch(ctx, stmts)
		return err
	})
	return results, err
}

// readBatch reads on a connection that no other batch uses. It runs under file.use.
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
	if c.closed.Load() { // while this batch waited
		c.readers.give(s)
		return nil, errClosed
	}
	results, err := c.read(&s, stmts)
	if err != nil && s != nil && core.IsKind(err, core.Unavailable) {
		s.close() // the next read opens a new connection, in case this one is damaged
		s = nil
	}
	c.readers.give(s)
	return results, err
}

// read runs the statements in one snapshot of the database. It opens *s if it is nil, and
// leaves it open after an error: readBatch decides whether the connection is used again.
func (c *conn) read(s **session, stmts []store.Stmt) (results []store.Result, err error) {
	if err := c.file.check(); err != nil {
		return nil, err
	}
	if *s == nil {
		if *s, err = dial(dsn(c.file.path, "query_only(1)")); err != nil {
			return nil, err
		}
	}
	// A single statement has a snapshot of its own. Several need a transaction.
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

// Close closes the file. It waits for batches under way; later ones fail. A second call does
// nothing.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.writer.close()
	return c.readers.close()
}

// readers is the pool of at most maxReaders connections for reading. The connection that was
// used last is used next: each connection has a page cache of its own, so reads one after the
// other fill one cache only.
type readers struct {
	free chan struct{} // has an element for each connection that may be taken

	mu   sync.Mutex // guards idle
	idle []*session // open connections that no batch uses
}

// newReaders makes a pool whose connections are all still to be opened, by the reads that take
// them.
func newReaders() *readers {
	r := &readers{free: make(chan struct{}, maxReaders)}
	for range maxReaders {
		r.free <- struct{}{}
	}
	return r
}

// take waits for a connection. The session is nil if the connection is not open yet. The caller
// must return it with give.
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

// give returns a connection to the pool; nil stands for a connection that is not open.
func (r *readers) give(s *session) {
	if s != nil {
		r.mu.Lock()
		r.idle = append(r.idle, s)
		r.mu.Unlock()
	}
	r.free <- struct{}{}
}

// drop closes all idle connections. The caller makes sure that no batch uses another one: it
// holds file.use for writing, or has taken every element of free.
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

// close waits for the reads under way and closes the connections. Callers that wait in take get
// a connection that is not open, and find the conn closed.
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
