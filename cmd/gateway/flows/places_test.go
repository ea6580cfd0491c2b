package flows_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/eventgateway/gateway/infra/test/memory"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/hosted"
	"github.com/eventgateway/gateway/store/mysql"
	"github.com/eventgateway/gateway/store/postgres"
	"github.com/eventgateway/gateway/store/sqlite"
)

func TestMain(m *testing.M) {
	memory.Use()
	os.Exit(m.Run())
}

// A place is a kind of database. Open connects to a fresh, empty database.
type place struct {
	name    string
	dialect store.Dialect
	open    func(testing.TB) store.Conn
}

var (
	onSQLite   = place{"sqlite", store.SQLite, openSQLite}
	everywhere = []place{
		onSQLite,
		{"postgres", store.Postgres, openPostgres},
		{"mysql", store.MySQL, openMySQL},
		{"hosted_sql", store.D1, openD1},
	}
)

func openSQLite(t testing.TB) store.Conn {
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	return opened(t, conn, err)
}

func openPostgres(t testing.TB) store.Conn {
	conn, err := postgres.Open(context.Background(), servers.Postgres(t), 4)
	return opened(t, conn, err)
}

func openMySQL(t testing.TB) store.Conn {
	conn, err := mysql.Open(context.Background(), servers.MySQL(t), 4)
	return opened(t, conn, err)
}

func openD1(t testing.TB) store.Conn {
	h := servers.D1(t)
	conn, err := hosted.Open(context.Background(), hosted.Options{
		API: h.API, AccountID: h.Account, DatabaseID: h.Database, APIToken: h.Token,
	})
	return opened(t, conn, err)
}

func opened(t testing.TB, conn store.Conn, err error) store.Conn {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// shared returns the place with one database for a test and its subtests, one after the other.
// They begin by emptying it, which takes less time than making one.
func (p place) shared(t testing.TB) place {
	conn := p.open(t)
	p.open = func(testing.TB) store.Conn { return conn }
	return p
}

// query reads the database without the store.
func (w *world) query(sql string, args ...any) [][]any {
	w.t.Helper()
	results, err := w.conn.Batch(context.Background(), store.Stmt{Name: "query", SQL: sql, Args: args, Reads: true})
	if err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return results[0].Rows
}
