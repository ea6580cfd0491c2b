package hosted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// MaxRow is the largest number of bytes that the values of one row may have. D1 allows 2,000,000
// for a row, both as it is stored and as it is read. A claim reads an event and its job in one
// row, so the rest is for the error, the lane and the ids of the job.
const MaxRow = 1_950_000

// MaxPayload is the largest payload in bytes whose event always fits into a row. The remaining
// 50,000 bytes of MaxRow are for the headers, ids and names of the event.
const MaxPayload = 1_900_000

// Limits of D1 for one statement.
const (
	maxParams = 100
	maxSQL    = 100_000
)

var errTooLarge = core.Refuse(core.TooLarge, "event too large for the database")

// fits checks a statement against D1's limits before it is sent or joins others.
func fits(s store.Stmt) error {
	if len(s.SQL) > maxSQL {
		return fmt.Errorf("%s: %d bytes of SQL; D1 takes %d", s.Name, len(s.SQL), maxSQL)
	}
	for _, row := range rowsOf(s) {
		if len(row) > maxParams {
			return fmt.Errorf("%s: %d parameters; D1 takes %d", s.Name, len(row), maxParams)
		}
		size := 0
		for _, v := range row {
			switch v := v.(type) {
			case nil:
				size++
			case int64:
				size += 9
			case string:
				if !utf8.ValidString(v) {
					return core.Refuse(core.Invalid, "Invalid UTF-8") // JSON would carry another text
				}
				size += len(v) + 4
			default:
				return fmt.Errorf("%s: a parameter is a %T", s.Name, v)
			}
		}
		if size > MaxRow {
			return fmt.Errorf("%s: %w", s.Name, errTooLarge)
		}
	}
	return nil
}

// rowsOf returns the rows of parameters of a statement. The statement runs once for each row.
func rowsOf(s store.Stmt) [][]any {
	if s.Rows != nil {
		return s.Rows
	}
	return [][]any{s.Args}
}

type request struct {
	Batch []query `json:"batch"`
}

type query struct {
	SQL    string `json:"sql"`
	Params []any  `json:"params,omitempty"`
}

// encode makes the body of a request. counts[i] is the number of its queries that belong to
// stmts[i].
func encode(stmts []store.Stmt) (body []byte, counts []int, err error) {
	var r request
	counts = make([]int, len(stmts))
	for i, s := range stmts {
		before := len(r.Batch)
		r.Batch = appendQueries(r.Batch, s)
		counts[i] = len(r.Batch) - before
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), counts, nil
}

// appendQueries adds the queries of a statement. If its text marks a part that repeats for each
// row (store.D1Row), one query carries as many rows as have maxParams parameters together.
// Otherwise each row becomes a query of its own.
func appendQueries(all []query, s store.Stmt) []query {
	rows := rowsOf(s)
	head, rest, repeats := strings.Cut(s.SQL, store.D1Row)
	again, tail, _ := strings.Cut(rest, store.D1Row)
	for len(rows) > 0 {
		n := 1
		if repeats {
			n = min(len(rows), max(1, maxParams/max(1, len(rows[0]))))
		}
		all = append(all, query{SQL: head + strings.Repeat(again, n-1) + tail, Params: params(slices.Concat(rows[:n]...))})
		rows = rows[n:]
	}
	return all
}

// params converts parameters to the types that D1 binds correctly: numbers become text. See the
// package comment.
func params(row []any) []any {
	out := make([]any, len(row))
	for i, v := range row {
		if n, ok := v.(int64); ok {
			v = strconv.FormatInt(n, 10)
		}
		out[i] = v
	}
	return out
}
