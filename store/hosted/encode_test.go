package hosted

import (
	"strings"
	"testing"

	"github.com/eventgateway/gateway/store"
)

// TestEncode: a query has as many rows as fit into 100 parameters. A statement whose text does
// not repeat a part for rows is sent once for each row.
func TestEncode(t *testing.T) {
	rows := func(n, width int) [][]any {
		all := make([][]any, n)
		for i := range all {
			all[i] = make([]any, width)
			all[i][0] = int64(i)
		}
		return all
	}
	several := "INSERT INTO t VALUES (?, ?)" + store.D1Row + ", (?, ?)" + store.D1Row + " ON CONFLICT DO NOTHING"
	for _, c := range []struct {
		stmt store.Stmt
		want []int // the number of question marks of each query
	}{
		{store.Stmt{SQL: "SELECT ?", Args: []any{"a"}}, []int{1}},
		{store.Stmt{SQL: "SELECT 1"}, []int{0}},
		{store.Stmt{SQL: "UPDATE t SET a = ?", Rows: rows(3, 1)}, []int{1, 1, 1}},
		{store.Stmt{SQL: several, Rows: rows(1, 2)}, []int{2}},
		{store.Stmt{SQL: several, Rows: rows(50, 2)}, []int{100}},
		{store.Stmt{SQL: several, Rows: rows(101, 2)}, []int{100, 100, 2}},
		{store.Stmt{SQL: several, Rows: rows(0, 2)}, nil},
	} {
		got := appendQueries(nil, c.stmt)
		if len(got) != len(c.want) {
			t.Errorf("%q with %d rows = %d queries, want %d", c.stmt.SQL, len(c.stmt.Rows), len(got), len(c.want))
			continue
		}
		for i, q := range got {
			if n := strings.Count(q.SQL, "?"); n != c.want[i] || len(q.Params) != n {
				t.Errorf("%q: query %d has %d question marks and %d parameters, want %d", c.stmt.SQL, i, n, len(q.Params), c.want[i])
			}
		}
	}
	body, counts, err := encode([]store.Stmt{{SQL: "SELECT ?, ?, ?", Args: []any{int64(1700000000000), nil, "<&>"}}, {SQL: "SELECT 1"}})
	const want = `{"batch":[{"sql":"SELECT ?, ?, ?","params":["1700000000000",null,"<&>"]},{"sql":"SELECT 1"}]}` + "\n"
	if err != nil || string(body) != want || len(counts) != 2 || counts[0] != 1 || counts[1] != 1 {
		t.Errorf("encode = %s, %v, %v, want %s", body, counts, err, want)
	}
}
