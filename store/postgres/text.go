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
	integers []bool // for each column of a row source, whether its values are integers
}

// texts caches translated statements for the whole process. It is not bounded: the texts are
// constant except for the filters of listings, which have a few dozen combinations.
var texts sync.Map // from the store's text (string) to text

// translate replaces the question marks of a statement with $1, $2 and so on. No statement of
// the store has a question mark within quotes.
func translate(sql string) text {
	if t, ok := texts.Load(sql); ok {
		return t.(text)
	}
	var t text
	var out strings.Builder
	// The dialect writes ?::bigint[] or ?::text[] for the columns of a row source, so the text
	// after a question mark tells the type.
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

// args returns the arguments of a statement. A statement with Rows has one array for each
// column. With literal, arrays are text: pgx then does not know the types of parameters,
// because it does not prepare the statement.
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
