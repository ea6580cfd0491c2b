package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/store"
)

const (
	// begin begins a transaction that writes, snapshot one that reads from one state of the
	// database.
	begin    = "BEGIN"
	snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"

	// rowCount follows a statement of which the number of changed rows is needed: for a text of several
	// statements the driver returns either the rows or these numbers, and never both.
	rowCount = "; SELECT ROW_COUNT()"
)

// settings are sent on every new connection. The SQL mode is strict, so that no value is cut. It
// has no NO_BACKSLASH_ESCAPES or ANSI_QUOTES, which change the meaning of quotes. A wait for a
// lock ends after 5 s, before callers give up after 10 s. Without materialization, a NOT EXISTS
// is evaluated for each row by an index; with it, the server may read the whole other table
// first, if statistics make that look cheaper.
//
// The last statement returns the facts that dial needs.
const settings = `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; ` +
	`SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, ` +
	`completion_type = 0, sql_select_limit = DEFAULT, sql_safe_updates = 0, innodb_lock_wait_timeout = 5, lock_wait_timeout = 5, ` +
	`optimizer_switch = 'materialization=off'; ` +
	`SELECT VERSION(), @@max_allowed_packet, @@wait_timeout`

// A session is one connection, used by one goroutine at a time, so it needs no lock. It calls
// the driver itself, which can send several statements in one text and read the result of each.
type session struct {
	conn    driver.Conn
	version string
	packet  int       // how many bytes a text may have
	until   time.Time // the connection is closed after this time
	used    bool      // a batch was sent on it
	broken  bool      // it must not be used again
	schema  bool      // it is one of pool.exchange
}

// maxAge is how long a connection lives. Then new connections spread over all servers behind
// one name, also over a server that came back.
const maxAge = 3 * time.Minute

// dial opens a connection and applies the settings.
func dial(ctx context.Context, connector driver.Connector) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, store.Unavailable(err)
	}
	s := &session{conn: c}
	results, err := s.query(ctx, settings, nil)
	if err != nil {
		c.Close()
		return nil, store.Unavailable(err)
	}
	s.used = false // the settings are no batch
	if len(results) != 1 || len(results[0]) != 1 {
		c.Close()
		return nil, store.Unavailable(errors.New("the server answers as neither MySQL nor MariaDB does"))
	}
	row := results[0][0]
	s.version, _ = row[0].(string)
	packet, _ := row[1].(int64)
	wait, _ := row[2].(int64)
	s.packet = int(packet) - 1024 // room for BEGIN, COMMIT and the protocol
	// The server closes a connection that is idle for wait_timeout: half of it is safe.
	s.until = time.Now().Add(min(maxAge, time.Duration(wait)*time.Second/2))
	return s, nil
}

// fresh reports whether no batch was sent on the connection yet.
func (s *session) fresh() bool { return !s.used }

// usable reports whether the connection may be used again. ResetSession reads from the socket
// without waiting, to see if the server has closed it. It sends nothing.
func (s *session) usable(ctx context.Context) bool {
	return !s.broken && time.Now().Before(s.until) && s.conn.(driver.SessionResetter).ResetSession(ctx) == nil
}

// run runs a batch in one transaction, which it rolls back after an error.
func (s *session) run(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	if isSchema(stmts) {
		return s.runSchema(ctx, stmts)
	}
	all, err := parts(stmts, s.packet)
	if err != nil {
		return nil, err
	}
	b := &batch{session: s, stmts: stmts, results: make([]store.Result, len(stmts))}
	b.first, b.last = frame(stmts, len(all))
	for len(all) > 0 && err == nil {
		n := fitting(all, s.packet)
		err = b.send(ctx, all[:n], n == len(all))
		all = all[n:]
	}
	if err != nil {
		s.undo(err)
		return nil, err
	}
	return b.results, nil
}

// frame returns the statements that begin and end the transaction of a batch. A single
// statement needs none: it is a transaction by itself.
func frame(stmts []store.Stmt, parts int) (first, last string) {
	if parts == 1 {
		return "", ""
	}
	if store.ReadsOnly(stmts) {
		return snapshot, "COMMIT"
	}
	return begin, "COMMIT"
}

// fitting is how many of the parts go into one packet. It is at least one.
func fitting(all []part, packet int) (n int) {
	bytes := 0
	for n < len(all) && (n == 0 || bytes+all[n].size <= packet) {
		bytes += all[n].size
		n++
	}
	return n
}

// A batch is a batch that runs on a session, in one packet or several.
type batch struct {
	*session
	stmts       []store.Stmt
	results     []store.Result // filled in by send
	first, last string         // see frame; first is empty once it was sent
}

// returns reports whether a part has a result set: the rows that it reads, or how many it changed.
func (b *batch) returns(p part) bool { return !b.stmts[p.stmt].Uncounted }

// send sends parts as one text and reads the result sets. With end, the text ends the transaction.
func (b *batch) send(ctx context.Context, all []part, end bool) error {
	var text strings.Builder
	var args []driver.NamedValue
	add := func(sql string) {
		if text.Len() > 0 && sql != "" {
			text.WriteString("; ")
		}
		text.WriteString(sql)
	}
	// Build the text: the parts, with their row counts, between begin and commit.
	add(b.first)
	b.first = ""
	var returning []part
	for _, p := range all {
		add(p.sql)
		if b.returns(p) {
			returning = append(returning, p)
			if !b.stmts[p.stmt].Reads {
				text.WriteString(rowCount)
			}
		}
		for _, a := range p.args {
			args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: b.bound(a)})
		}
	}
	if end {
		add(b.last)
	}
	// BEGIN, COMMIT and the other parts return no result set, so the sets match these parts one by one.
	sets, err := b.read(ctx, text.String(), args, func(set int) (limit store.ByteLimit) {
		if set < len(returning) {
			limit = b.stmts[returning[set].stmt].ByteLimit()
		}
		return limit
	})
	if err == nil && len(sets) != len(returning) {
		b.broken = true
		err = fmt.Errorf("%d results of %d statements", len(sets), len(returning))
	}
	if err != nil {
		return b.named(all, len(sets), err)
	}
	// Add the sets up: several parts may belong to one statement.
	for i, p := range returning {
		r := &b.results[p.stmt]
		if b.stmts[p.stmt].Reads {
			r.Rows = append(r.Rows, sets[i].rows...)
			r.Cut += sets[i].cut
		} else {
			r.Changed += sets[i].rows[0][0].(int64)
		}
	}
	return nil
}

// named adds the name of the statement that failed. If statements without a result set stand before it, one
// of them may have failed instead, and named adds their names too.
func (b *batch) named(all []part, seen int, err error) error {
	var names []string
	for _, p := range all {
		if seen == 0 {
			names = append(names, b.stmts[p.stmt].Name)
		}
		if b.returns(p) {
			seen--
		}
	}
	if seen >= 0 {
		names = append(names, "commit")
	}
	return fmt.Errorf("%s: %w", strings.Join(slices.Compact(names), " or "), err)
}

// bound converts a value for the driver, so that the server applies no character set to a text. The driver
// writes bytes as a _binary string. Where the character set of the connection is binary, each string is one.
func (s *session) bound(v any) driver.Value {
	if text, ok := v.(string); ok && s.schema {
		return []byte(text)
	}
	return v
}

// undo rolls back the transaction that an error left open. It has a deadline of its own, since
// the context of the batch may have ended.
func (s *session) undo(cause error) {
	if s.broken = s.broken || endsConnection(cause); s.broken {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	if _, err := s.query(ctx, "ROLLBACK", nil); err != nil {
		s.broken = true
	}
}

// query sends a text and returns the rows of all result sets.
func (s *session) query(ctx context.Context, text string, args []driver.NamedValue) (rows [][][]any, err error) {
	sets, err := s.read(ctx, text, args, func(int) store.ByteLimit { return store.ByteLimit{} })
	for _, set := range sets {
		rows = append(rows, set.rows)
	}
	return rows, err
}

// A set is the rows of one statement. The last rows may be cut.
type set struct {
	rows [][]any
	cut  int
}

// read sends a text and reads all result sets. A statement that returns no rows has no set. With
// an error it returns the sets before the error. limit gives the byte limit of each set.
func (s *session) read(ctx context.Context, text string, args []driver.NamedValue, limit func(set int) store.ByteLimit) (sets []set, err error) {
	rows, err := s.conn.(driver.QueryerContext).QueryContext(ctx, text, args)
	s.used = true
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for len(rows.Columns()) > 0 {
		set, err := readAll(rows, limit(len(sets)))
		if err != nil {
			return sets, err
		}
		sets = append(sets, set)
		if err := rows.(driver.RowsNextResultSet).NextResultSet(); err == io.EOF {
			break
		} else if err != nil {
			return sets, err
		}
	}
	return sets, nil
}

// readAll reads the rows of one result set.
func readAll(rows driver.Rows, limit store.ByteLimit) (set set, err error) {
	dest := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(dest); err {
		case nil:
			row := values(dest)
			if limit.CutRow(row) {
				set.cut++
			}
			set.rows = append(set.rows, row)
		case io.EOF:
			return set, nil
		default:
			return set, err
		}
	}
}

// values copies a row into the types of store.Result: string, int64 or nil.
func values(row []driver.Value) []any {
	out := make([]any, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case []byte: // in the buffer of the driver, which it reuses
			out[i] = string(v)
		case uint64:
			out[i] = int64(v)
		default:
			out[i] = v
		}
	}
	return out
}
