// Package sqlite is the store's connection to a SQLite file, through
// modernc.org/sqlite. It imports core, store and the driver.
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
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Open opens the database file at path, creating it (readable by its owner only)
// if there is none. The folder must exist. It does not change the schema.
func Open(path string) (store.Conn, error) {
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	readers, err := sql.Open("sqlite", dsn(path, "query_only(1)"))
	if err != nil {
		return nil, classify(err)
	}
	readers.SetMaxOpenConns(maxReaders)
	readers.SetMaxIdleConns(maxReaders)
	c := &conn{
		path:    path,
		writer:  newWriter(path),
		readers: readers,
		cache:   newStmtCache(readers.PrepareContext),
	}
	// Looking into it proves that the file is a database. It takes no lock, so that
	// a command that only reads need not wait for a busy server.
	look := store.Stmt{Name: "open", SQL: "SELECT 1 FROM sqlite_master LIMIT 1", Reads: true}
	if _, err := c.Batch(context.Background(), look); err != nil {
		c.Close()
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return c, nil
}

const maxReaders = 4

type conn struct {
	path    string
	writer  *writer
	readers *sql.DB
	cache   *stmtCache
}

// Batch runs statements. See store.Conn.
func (c *conn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	for _, s := range stmts {
		if !s.Reads {
			return c.writer.batch(ctx, stmts)
		}
	}
	return c.readBatch(ctx, stmts)
}

func (c *conn) readBatch(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(stmts) == 1 {
		st, err := c.cache.prepare(stmts[0].SQL)
		if err != nil {
			return nil, named(stmts[0], err)
		}
		r, err := query(st, stmts[0])
		return []store.Result{r}, err
	}
	return c.readTogether(stmts)
}

// readTogether reads several statements from one state of the database.
func (c *conn) readTogether(stmts []store.Stmt) ([]store.Result, error) {
	tx, err := c.readers.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, classify(err)
	}
	defer tx.Rollback()
	results := make([]store.Result, len(stmts))
	for i, s := range stmts {
		st, err := tx.PrepareContext(context.Background(), s.SQL)
		if err != nil {
			return nil, named(s, err)
		}
		if results[i], err = query(st, s); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Close closes the file. Batches under way fail.
func (c *conn) Close() error {
	return errors.Join(c.writer.close(), c.readers.Close())
}

// dsn is the driver's name for the file, with the settings every connection gets.
func dsn(path string, pragmas ...string) string {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout(5000)") // first: the others may meet a lock
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", "cache_size(-4096)")            // KiB; the operating system caches the file as well
	q.Add("_pragma", "journal_size_limit(67108864)") // bytes
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + escaped + "?" + q.Encode()
}

// prepareFile makes sure that the file exists with sane rights, and says in plain
// words what SQLite would call error 14.
func prepareFile(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return core.Refuse(core.Unavailable, "database folder %s does not exist", dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		var pe *os.PathError
		errors.As(err, &pe)
		return core.Refuse(core.Unavailable, "database file %s cannot be opened: %v", path, pe.Err)
	}
	return f.Close()
}

// classify turns a driver's error into one of the kinds that store.Conn promises.
func classify(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY:
		return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: err}
	}
	return err
}

func named(s store.Stmt, err error) error {
	return fmt.Errorf("%s: %w", s.Name, classify(err))
}

// query runs a statement that returns rows.
func query(st *sql.Stmt, s store.Stmt) (store.Result, error) {
	rows, err := st.QueryContext(context.Background(), s.Args...)
	if err != nil {
		return store.Result{}, named(s, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return store.Result{}, named(s, err)
	}
	var r store.Result
	ptrs := make([]any, len(columns))
	for rows.Next() {
		row := make([]any, len(columns))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return store.Result{}, named(s, err)
		}
		r.Rows = append(r.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return store.Result{}, named(s, err)
	}
	return r, nil
}

// exec runs a statement that changes rows.
func exec(st *sql.Stmt, s store.Stmt) (store.Result, error) {
	res, err := st.ExecContext(context.Background(), s.Args...)
	if err != nil {
		return store.Result{}, named(s, err)
	}
	n, err := res.RowsAffected()
	return store.Result{Changed: n}, err
}
