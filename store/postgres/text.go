package postgres

import (
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/eventgateway/gateway/store"
)

// A text is a statement with the parameters of PostgreSQL.
type text struct {
	sql      string
	ofOne    string // for a single row: see ofOne
	integers []bool // for each column of a row source, whether its values are integers
}

// texts caches translated statements for the whole process. It is not bounded: the texts are
// constant except for the filters of listings, which have a few dozen combinations.
var texts sync.Map // from the store's text (string) to text

// translate translates a statement.
func translate(sql string) text {
	if t, ok := texts.Load(sql); ok {
		return t.(text)
	}
	t := text{sql: numbered(sql), ofOne: numbered(ofOne(sql))}
	// The dialect writes ?::bigint[] or ?::text[] for the columns of a row source, so the text
	// after a question mark tells the type.
	for _, after := range strings.Split(sql, "?")[1:] {
		t.integers = append(t.integers, strings.HasPrefix(after, "::bigint[]"))
	}
	texts.Store(sql, t)
	return t
}

// ofOne is a statement for a single row: each parameter is a value and not an array. Then the server
// calls no functions, and needs no join to find a row by its key: accepting, taking and settling
// one event takes it four fifths of the time. A DELETE stays as it is, since the planner would
// begin some of them with a table that it has to read last.
func ofOne(sql string) string {
	if strings.HasPrefix(sql, "DELETE") {
		return sql
	}
	return asValues.Replace(sql)
}

// asValues replaces the columns of a row source, as the dialect writes them.
var asValues = strings.NewReplacer("unnest(?::text[])", "?::text", "unnest(?::bigint[])", "?::bigint")

// numbered replaces the question marks of a statement with $1, $2 and so on. No statement of the
// store has a question mark within quotes.
func numbered(sql string) string {
	var out strings.Builder
	for i, part := range strings.Split(sql, "?") {
		if i > 0 {
			out.WriteString("$" + strconv.Itoa(i))
		}
		out.WriteString(part)
	}
	return out.String()
}

// with returns the text and the arguments for a statement. Of several rows, each column is an array.
// With literal, arrays are text: pgx then does not know the types of parameters, because it does
// not prepare the statement. A single row is an array too then: if the planner saw its values, it
// would choose an index by a status among them, and read all of it.
func (t text) with(s store.Stmt, literal bool) (sql string, args []any) {
	switch {
	case s.Rows == nil:
		return t.sql, s.Args
	case len(s.Rows) == 1 && !literal && t.ofOne != t.sql:
		return t.ofOne, s.Rows[0]
	}
	args = make([]any, len(t.integers))
	for i, integer := range t.integers {
		c := &column{rows: s.Rows, at: i, integer: integer}
		if args[i] = c; literal {
			args[i] = c.literal()
		}
	}
	return t.sql, args
}

// A column is one column of rows. It implements the interface by which pgx encodes an array,
// so that the values go from the rows to the wire without a copy.
type column struct {
	rows    [][]any
	at      int
	integer bool
}

// Dimensions describes an array of one dimension. PostgreSQL counts elements from 1.
func (c *column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c.rows)), LowerBound: 1}}
}

// Index returns an element; nil stands for NULL.
func (c *column) Index(i int) any { return c.rows[i][c.at] }

// IndexType returns a value of the type of the elements, from which pgx chooses the encoding.
func (c *column) IndexType() any {
	if c.integer {
		return int64(0)
	}
	return ""
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// literal is the array in the text format of PostgreSQL, in which every text is quoted:
// https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
func (c *column) literal() string {
	var b strings.Builder
	for i := range c.rows {
		b.WriteByte("{,"[min(i, 1)])
		switch v := c.Index(i).(type) {
		case nil:
			b.WriteString("NULL")
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case string:
			b.WriteByte('"')
			_, _ = quoted.WriteString(&b, v)
			b.WriteByte('"')
		}
	}
	b.WriteByte('}')
	return b.String()
}
