package postgres

import (
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/eventgateway/gateway/store"
)

// A text is a statement as PostgreSQL spells it.
type text struct {
	sql      string
	integers []bool // of the columns of a row source: whether its values are integers
}

// texts keeps what has been translated. There are few texts: they are constant
// but for the filters of listings.
var texts sync.Map // of string to text

// translate numbers the question marks of a statement. No statement has one
// within quotes.
func translate(sql string) text {
	if t, ok := texts.Load(sql); ok {
		return t.(text)
	}
	var t text
	var out strings.Builder
	parts := strings.Split(sql, "?")
	for i, part := range parts {
		if i > 0 {
			out.WriteString("$" + strconv.Itoa(i))
			t.integers = append(t.integers, strings.HasPrefix(part, "::bigint[]"))
		}
		out.WriteString(part)
	}
	t.sql = out.String()
	texts.Store(sql, t)
	return t
}

// args are the arguments of a statement: of one with Rows, each column as an
// array. literal wants arrays as text, for when the driver does not ask the
// server what type a parameter has.
func (t text) args(s store.Stmt, literal bool) []any {
	if s.Rows == nil {
		return s.Args
	}
	args := make([]any, len(t.integers))
	for i, integer := range t.integers {
		c := &column{rows: s.Rows, at: i, integer: integer}
		if args[i] = c; literal {
			args[i] = c.literal()
		}
	}
	return args
}

// A column is one column of rows, as the driver reads an array. Values are not
// copied: they go from the rows to the wire.
type column struct {
	rows    [][]any
	at      int
	integer bool
}

// Dimensions makes it an array of one dimension.
func (c *column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c.rows)), LowerBound: 1}}
}

// Index is an element; nil stands for NULL.
func (c *column) Index(i int) any { return c.rows[i][c.at] }

// IndexType is a value of the type of the elements.
func (c *column) IndexType() any {
	if c.integer {
		return int64(0)
	}
	return ""
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// literal is the array as PostgreSQL writes one as text:
// https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
func (c *column) literal() string {
	var b strings.Builder
	for i := range c.rows {
		b.WriteByte(",{"[bit(i == 0)])
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

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
