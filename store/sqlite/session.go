package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/eventgateway/gateway/core/once"
	"github.com/eventgateway/gateway/store"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A session is one connection with its prepared statements, for one goroutine at a time. It calls
// the driver without database/sql, whose pool, locks and conversions would take 5 % of the time
// of the writer. This package needs none of them.
type session struct {
	conn  driver.Conn
	stmts map[string]prepared // by text; few texts depend on a filter
	args  []driver.NamedValue // reused by each
}

type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func dial(dsn string) (*session, error) {
	c, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, classify(err)
	}
	return &session{conn: c, stmts: map[string]prepared{}}, nil
}

func (s *session) close() error {
	var errs []error
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}

func (s *session) prepare(text string) (prepared, error) {
	if st, ok := s.stmts[text]; ok {
		return st, nil
	}
	st, err := s.conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	s.stmts[text] = st.(prepared)
	return st.(prepared), nil
}

// run runs one statement. The context of the caller does not interrupt it: an interrupt can leave
// a connection unusable, and every statement of the store is short.
func (s *session) run(st store.Stmt) (store.Result, error) {
	p, err := s.prepare(st.SQL)
	if err != nil {
		return store.Result{}, named(st, err)
	}
	r, err := s.each(p, st)
	if err != nil {
		return store.Result{}, named(st, err)
	}
	return r, nil
}

// each runs a prepared statement once for each row of its arguments.
func (s *session) each(p prepared, st store.Stmt) (r store.Result, err error) {
	rows := st.Rows
	if rows == nil {
		rows = [][]any{st.Args}
	}
	for _, row := range rows {
		s.args = s.args[:0]
		for i, a := range row {
			s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
		}
		if st.Reads {
			err = query(p, s.args, st.ByteLimit(), &r)
		} else {
			var n int64
			n, err = exec(p, s.args)
			r.Changed += n
		}
		if err != nil {
			return store.Result{}, err
		}
	}
	return r, nil
}

// control runs a statement that begins or ends a transaction.
func (s *session) control(text string) error {
	_, err := s.run(store.Stmt{Name: text, SQL: text})
	return err
}

// pragma sets a pragma. It keeps no prepared statement, since a pragma may take effect while
// SQLite prepares it.
func (s *session) pragma(text string) error {
	_, err := s.conn.(driver.ExecerContext).ExecContext(context.Background(), "PRAGMA "+text, nil)
	if err != nil {
		return fmt.Errorf("pragma %s: %w", text, classify(err))
	}
	return nil
}

// written returns the number of pages that were written since the last call.
func (s *session) written() int {
	n, _, _ := s.conn.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
	return n
}

func exec(p prepared, args []driver.NamedValue) (int64, error) {
	res, err := p.ExecContext(context.Background(), args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query adds the rows of a statement to a result.
func query(p prepared, args []driver.NamedValue, limit store.ByteLimit, r *store.Result) error {
	rows, err := p.QueryContext(context.Background(), args)
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		r.Rows = append(r.Rows, values(row))
		if limit.CutRow(r.Rows[len(r.Rows)-1]) {
			r.Cut++
		}
	}
}

// values copies a row for store.Result. The values need no conversion: the schema has only
// columns for which the driver returns string, int64 or nil.
func values(row []driver.Value) []any {
	out := make([]any, len(row))
	for i, v := range row {
		out[i] = v
	}
	return out
}

const rights = "let the user who runs this own the file and its folder, and write there"

// remote is the advice for locks that fail.
const remote = "SQLite needs a file system with locks, and some network file systems have none: " +
	"put the database on a local disk, or use PostgreSQL or MySQL"

const noRoom = "make room on the disk where it is"

// failing is the advice for a disk that fails.
const failing = "look into the system's log for errors of the disk or file system"

// remedies has the advice to operators for errors of SQLite, by extended code or else by primary
// code.
var remedies = map[int]string{
	sqlite3.SQLITE_BUSY:     "end the program that holds it; if none does, " + remote,
	sqlite3.SQLITE_PROTOCOL: remote,
	sqlite3.SQLITE_FULL:     noRoom,
	sqlite3.SQLITE_READONLY: rights,
	sqlite3.SQLITE_CANTOPEN: rights,
	sqlite3.SQLITE_CORRUPT:  "restore a backup, or save what can be read with .recover of sqlite3",
	sqlite3.SQLITE_NOTADB:   "it is damaged or something else: let database.url name another file, or restore a backup",

	sqlite3.SQLITE_IOERR:                   failing,
	sqlite3.SQLITE_IOERR_LOCK:              remote,
	sqlite3.SQLITE_IOERR_UNLOCK:            remote,
	sqlite3.SQLITE_IOERR_RDLOCK:            remote,
	sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK: remote,
	sqlite3.SQLITE_IOERR_SHMOPEN:           remote,
	sqlite3.SQLITE_IOERR_SHMSIZE:           noRoom,
	sqlite3.SQLITE_IOERR_SHMLOCK:           remote,
	sqlite3.SQLITE_IOERR_SHMMAP:            remote,
}

// remedy returns the advice for an extended code, or "" if there is none.
func remedy(code int) string { return cmp.Or(remedies[code], remedies[code&0xff]) }

// missing matches the error texts of SQLite for a missing table, column or index. These errors
// have no code of their own.
var missing = once.Regexp(`no such (table|column|index)|has no column named`)

// classify turns an error of SQLite into one of the kinds that store.Conn promises. Nothing is
// sent again: SQLite itself waits for the lock of another process, as long as the busy timeout.
func classify(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	if advice := remedy(e.Code()); advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	return store.Failure{Class: classOf(e), Err: err}.Refusal()
}

func classOf(e *sqlite.Error) store.Class {
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_ERROR:
		if missing().MatchString(e.Error()) {
			return store.Mismatched
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY:
		return store.Down
	}
	return store.Rejected
}

func named(s store.Stmt, err error) error {
	return fmt.Errorf("%s: %w", s.Name, classify(err))
}
