package mysql

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/once"
	"github.com/eventgateway/gateway/store"
)

// maxRows is how many rows one statement has at most. Further rows go into further statements.
const maxRows = 250

// A part is one statement of the text that is sent: a whole statement of the batch, or a
// statement with some of its rows.
type part struct {
	stmt int // the index of the statement in its batch
	sql  string
	args []any
	size int // upper bound of the bytes, with the arguments filled in
}

// parts cuts the statements of a batch into parts, each short enough for a packet. It refuses
// a batch with a row that is too large by itself.
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

// rowParts cuts a statement with Rows into parts of up to maxRows rows and up to packet bytes.
func rowParts(i int, s store.Stmt, packet int) (all []part) {
	if len(s.Rows) == 1 {
		if one := ofOne(s.SQL); one.sql != "" {
			args := one.args(s.Rows[0])
			return []part{{stmt: i, sql: one.sql, args: args, size: len(one.sql) + len(rowCount) + size(args)}}
		}
	}
	if len(s.Rows) > 1 {
		if all := keyedParts(i, s, packet); all != nil {
			return all
		}
	}
	before, again, after := cut(s.SQL)
	fixed := len(before) + len(after) + len(rowCount)
	for rows := s.Rows; len(rows) > 0; {
		// The first row always fits here; parts refuses it if it does not. A text without
		// marks has one row for each part.
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

// cut splits a text at the marks. The middle part is repeated for each row after the first. A
// text without marks has no middle part, and holds one row.
func cut(sql string) (before, again, after string) {
	before, rest, ok := strings.Cut(sql, store.MySQLRow)
	if !ok {
		return sql, "", ""
	}
	again, after, _ = strings.Cut(rest, store.MySQLRow)
	return before, again, after
}

// A single is a statement for one row without a row source: values of the row stand where the statement
// names a column of it.
type single struct {
	sql     string // empty if the row source has to stay
	columns []int  // of each question mark, the column whose value it is
}

// args are the arguments of the statement for a row.
func (s single) args(row []any) []any {
	args := make([]any, len(s.columns))
	for i, c := range s.columns {
		args[i] = row[c]
	}
	return args
}

// singles caches the results of OfOne for the whole process, by the store's text. It is not bounded: the
// texts are constant except for the filters of listings, which have a few dozen combinations.
var singles sync.Map

func ofOne(sql string) single {
	if s, ok := singles.Load(sql); ok {
		return s.(single)
	}
	var s single
	s.sql, s.columns = OfOne(sql)
	singles.Store(sql, s)
	return s
}

// OfOne returns a statement for a single row: a question mark stands where the statement names a column of
// its row source, and columns has the column of each. The text is empty if the row source has to stay: if
// nothing is joined to it, or the join is not an inner one.
//
// The server makes a table of a row source. To settle one job takes it 170 µs without the table and 380 with
// it (MariaDB 10.11). Further rows cost more in statements of their own, so that the two are even at about
// eight rows; but already with three, queues and workflows were slower.
func OfOne(sql string) (text string, columns []int) {
	head, names, tail := source(sql)
	if names == nil {
		return "", nil
	}
	text = ofSource().ReplaceAllStringFunc(head+tail, func(column string) string {
		columns = append(columns, names.of(column))
		return "?"
	})
	return text, columns
}

// source returns the text before a row source, its columns, and the text behind it: that begins with the table
// that is joined with it. names is nil if the text has no row source, or it is not joined with a table.
func source(sql string) (head string, names columnNames, tail string) {
	before, _, after := cut(sql)
	begin := sourceBegin().FindStringSubmatchIndex(before)
	rest, joined := strings.CutPrefix(after, sourceEnd)
	if begin == nil || !joined {
		return "", nil, ""
	}
	return before[:begin[0]], strings.Split(before[begin[2]:begin[3]], ", "), rest
}

// columnNames are the columns of a row source, as "? AS name".
type columnNames []string

// of is the position of a column that a statement names as r.name, or -1.
func (n columnNames) of(reference string) int {
	return slices.Index(n, "? AS "+reference[len("r."):])
}

// The row source as store.MySQL writes it. sourceBegin ends the text before the first mark, and sourceEnd begins
// the text after the second one.
var sourceBegin = once.Regexp(`\(SELECT (\? AS \w+(?:, \? AS \w+)*)$`)

const sourceEnd = ") AS r STRAIGHT_JOIN "

// ofSource finds the columns of the row source in a statement.
var ofSource = once.Regexp(`\br\.\w+`)

// size is an upper bound of the bytes that arguments take in a text.
func size(args []any) int {
	n := 0
	for _, a := range args {
		n += 24 // an integer, or the quotes of a text and a _binary before them
		if text, ok := a.(string); ok {
			n += len(text)
			for i := range len(text) {
				switch text[i] { // the driver escapes these with a backslash
				case 0, '\n', '\r', '\x1a', '\'', '"', '\\':
					n++
				}
			}
		}
	}
	return n
}
