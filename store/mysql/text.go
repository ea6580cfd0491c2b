package mysql

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// maxRows is how many rows one statement has; the rest goes into further ones.
const maxRows = 250

// A part is a piece of a batch that is run as one statement: a whole statement, or
// one with some of its rows.
type part struct {
	stmt int // whose it is
	sql  string
	args []any
	size int // at most so many bytes when the arguments are filled in
}

// parts are what a batch is made of, none longer than a packet may be.
func parts(stmts []store.Stmt, packet int) (all []part, err error) {
	for i, s := range stmts {
		if s.Rows == nil {
			p := part{stmt: i, sql: s.SQL, args: s.Args}
			p.size = len(p.sql) + len(rowCount) + size(s.Args)
			all = append(all, p)
		} else {
			all = append(all, rowParts(i, s, packet)...)
		}
		for _, p := range all {
			if p.size > packet {
				return nil, fmt.Errorf("%s: %w", s.Name, core.Refuse(core.TooLarge,
					"too large for the database: about %d bytes where its max_allowed_packet leaves %d", p.size, packet))
			}
		}
	}
	return all, nil
}

// rowParts are a statement with Rows, cut where it becomes too long.
func rowParts(i int, s store.Stmt, packet int) (all []part) {
	before, again, after := cut(s.SQL)
	fixed := len(before) + len(after) + len(rowCount)
	for rows := s.Rows; len(rows) > 0; {
		n, bytes := 0, fixed
		for n < len(rows) && n < maxRows {
			more := len(again) + size(rows[n])
			if n > 0 && (bytes+more > packet || again == "") {
				break
			}
			n, bytes = n+1, bytes+more
		}
		p := part{stmt: i, sql: before + strings.Repeat(again, n-1) + after, size: bytes}
		for _, row := range rows[:n] {
			p.args = append(p.args, row...)
		}
		all, rows = append(all, p), rows[n:]
	}
	return all
}

// cut takes a text apart at the marks: what is repeated for each row after the
// first, and what comes before and after. Without marks there is one row.
func cut(sql string) (before, again, after string) {
	before, rest, ok := strings.Cut(sql, store.MySQLRow)
	if !ok {
		return sql, "", ""
	}
	again, after, _ = strings.Cut(rest, store.MySQLRow)
	return before, again, after
}

// size is at most how many bytes arguments take in a text.
func size(args []any) int {
	n := 0
	for _, a := range args {
		n += 24 // an integer, or quotes and what comes before them
		if text, ok := a.(string); ok {
			n += len(text)
			for i := range len(text) {
				switch text[i] {
				case 0, '\n', '\r', '\x1a', '\'', '"', '\\':
					n++
				}
			}
		}
	}
	return n
}
