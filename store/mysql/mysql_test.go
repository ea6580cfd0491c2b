package mysql

import (
	"context"
	"database/sql"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/memory"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

func TestMain(m *testing.M) {
	memory.Use()
	os.Exit(m.Run())
}

// pooled is the size of the pool in tests, which is the configuration's default.
const pooled = 10

func opened(tb testing.TB, url string) *conn {
	tb.Helper()
	c, err := Open(context.Background(), url, pooled)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return c.(*conn)
}

// migrated returns a migrated store over a connection.
func migrated(tb testing.TB, c store.Conn) core.Store {
	tb.Helper()
	s := over(c)
	if err := s.Migrate(context.Background()); err != nil {
		tb.Fatalf("Migrate: %v", err)
	}
	return s
}

// over returns a store over a connection to a migrated database.
func over(c store.Conn) core.Store {
	return store.New(storetest.Weakened(c), store.MySQL, core.SystemClock)
}

// onShelf returns a function that returns connections to migrated and empty databases, and uses both again
// until t ends.
func onShelf(t *testing.T) func(t *testing.T) *conn {
	servers.MySQL(t) // without a server the test is skipped here: only its own goroutine may do it
	var shelf storetest.Shelf[*conn]
	return func(sub *testing.T) *conn {
		c := shelf.Take(sub, func() *conn {
			c := opened(t, servers.MySQL(t))
			migrated(sub, c)
			return c
		})
		sub.Cleanup(func() { // when no write of the check is under way any more
			c.line.Close()
			c.line = c.newLine()
		})
		storetest.Empty(sub, c)
		return c
	}
}

// admin runs statements over a connection of its own.
func admin(tb testing.TB, url string, statements ...string) {
	tb.Helper()
	c, err := parseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

var sampled = storetest.Options{Sampled: true}

func TestStore(t *testing.T) {
	open := onShelf(t)
	storetest.Run(t, func(sub *testing.T) core.Store { return over(open(sub)) }, sampled)
}

func TestFaults(t *testing.T) {
	open := onShelf(t)
	storetest.RunFaults(t, func(sub *testing.T, f *storetest.Fault) core.Store {
		return over(storetest.Faulty(open(sub), f))
	}, sampled)
}

func TestMigrations(t *testing.T) {
	storetest.RunMigrations(t, store.MySQL, func(t *testing.T) func() store.Conn {
		url := servers.MySQL(t)
		return func() store.Conn { return opened(t, url) }
	})
}

func TestGuards(t *testing.T) { storetest.Guards(t) }

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) core.Store { return migrated(b, opened(b, servers.MySQL(b))) })
}

func TestShapes(t *testing.T) {
	storetest.Shapes(t, store.MySQL, func(t *testing.T) store.Conn { return opened(t, servers.MySQL(t)) })
}
