package hosted

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // the driver of a twin

	"github.com/eventgateway/gateway/infra/test/servers"
)

// A twin answers as D1 does, over HTTP, from a database in the memory of this process. The mutations of
// guards run on it, see [storetest.Guards]: there are more than 200, and each runs the suite until a test
// fails. D1's engine takes a minute for what a twin does in a few seconds. That the suite passes with all
// guards is shown on D1's engine too; a mutation changes no more than one condition.
//
// Its SQLite is another version than D1's, and the limits of D1 are left out.
type twin struct {
	mu   sync.Mutex // one batch at a time, as in D1
	conn *sql.Conn
}

// newTwin starts a twin with an empty database. It answers until the process ends, as several tests may use
// the database one after the other.
func newTwin(tb testing.TB) servers.Hosted {
	tb.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := db.Conn(context.Background()) // each connection would have a database of its own
	if err != nil {
		tb.Fatal(err)
	}
	url := httptest.NewServer(&twin{conn: conn}).URL
	return servers.Hosted{API: url, Account: "account", Database: "database", Endpoint: url, Token: "token"}
}

func (t *twin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked request
	err := json.NewDecoder(r.Body).Decode(&asked)
	var results []any
	if err == nil {
		results, err = t.batch(asked.Batch)
	}
	answer := map[string]any{"success": err == nil, "result": results}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		answer["errors"] = []any{map[string]any{"code": 7500, "message": err.Error() + ": SQLITE_ERROR"}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// batch runs queries in one transaction.
func (t *twin) batch(queries []query) (results []any, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx := context.Background()
	tx, err := t.conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, q := range queries {
		rows, changes, err := run(tx, q)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", q.SQL, err), tx.Rollback())
		}
		results = append(results, map[string]any{
			"success": true, "meta": map[string]any{"changes": changes}, "results": map[string]any{"rows": rows},
		})
	}
	return results, tx.Commit()
}

// run runs a query, and returns its rows and the number of rows that it changed.
func run(tx *sql.Tx, q query) (all [][]any, changes int64, err error) {
	rows, err := tx.Query(q.SQL, q.Params...)
	if err != nil {
		return nil, 0, err
	}
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		err = rows.Scan(into...)
		all = append(all, row)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, 0, err
	}
	// After a SELECT or a change of the schema that is the number of an earlier statement.
	switch verb, _, _ := strings.Cut(q.SQL, " "); verb {
	case "INSERT", "UPDATE", "DELETE", "WITH":
		err = tx.QueryRow("SELECT changes()").Scan(&changes)
	}
	return all, changes, err
}
