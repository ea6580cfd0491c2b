package postgres

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/memory"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// TestMain runs more tests at once than there are processors, because most of the time they wait
// for the server's disk.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	memory.Use()
	os.Exit(m.Run())
}

// pool is the size of the pool in tests, which is the configuration's default.
const pool = 10

var schemas atomic.Int64

// inSchema returns the address of a new schema in a database. To make a schema takes a tenth of
// the time of making a database.
func inSchema(tb testing.TB, url string) string {
	tb.Helper()
	name := fmt.Sprintf("s%d", schemas.Add(1))
	exec(tb, url, "CREATE SCHEMA "+name)
	return url + "&search_path=" + name
}

// exec runs statements over a connection of its own.
func exec(tb testing.TB, url string, statements ...string) {
	tb.Helper()
	pc, err := pgx.Connect(context.Background(), url)
	if err != nil {
		tb.Fatal(err)
	}
	defer pc.Close(context.Background())
	for _, s := range statements {
		if _, err := pc.Exec(context.Background(), s, pgx.QueryExecModeSimpleProtocol); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

// opened opens a database, and closes it after the test.
func opened(tb testing.TB, url string) *conn {
	tb.Helper()
	c, err := Open(context.Background(), url, pool)
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
	return store.New(storetest.Weakened(c), store.Postgres, core.SystemClock)
}

// onShelf returns a function that returns connections to migrated and empty schemas of one database,
// and uses both again: a new session of PostgreSQL costs more than most checks, a process and
// everything that it remembers of tables and statements.
func onShelf(t *testing.T, url string) func(t *testing.T) *conn {
	var shelf storetest.Shelf[*conn]
	return func(sub *testing.T) *conn {
		c := shelf.Take(sub, func() *conn {
			c := opened(t, inSchema(t, url))
			migrated(t, c)
			return c
		})
		sub.Cleanup(func() { c.rest(sub) })
		storetest.Empty(sub, c)
		return c
	}
}

// rest returns when nothing of a check is under way any more, and leaves few sessions open: the
// server has 300, for all shelves.
func (c *conn) rest(t *testing.T) {
	c.line.Close()
	c.line = c.newLine()
	for end := time.Now().Add(20 * time.Second); c.pool.Stat().AcquiredConns() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a session is still in use after the check")
		}
	}
	if c.pool.Stat().TotalConns() > 3 {
		c.pool.Reset()
	}
}

// suite runs the checks of a store on schemas of a database.
func suite(t *testing.T, url string, o storetest.Options) {
	open := onShelf(t, url)
	storetest.Run(t, func(sub *testing.T) core.Store { return over(open(sub)) }, o)
}

var sampled = storetest.Options{Sampled: true}

func TestStore(t *testing.T) {
	suite(t, servers.Postgres(t), sampled)
}

// TestStoreBehindPooler runs the suite, as a second protocol, in the mode for poolers, in which
// nothing outlives a transaction.
func TestStoreBehindPooler(t *testing.T) {
	suite(t, servers.Postgres(t)+"&default_query_exec_mode=exec", storetest.Options{Slow: true, SecondFace: true})
}

// TestStoreInText runs the suite, as a second protocol, with the arguments written into the text of
// the statements, for servers and poolers that support no other mode.
func TestStoreInText(t *testing.T) {
	suite(t, servers.Postgres(t)+"&default_query_exec_mode=simple_protocol", storetest.Options{Slow: true, SecondFace: true})
}

func TestFaults(t *testing.T) {
	open := onShelf(t, servers.Postgres(t))
	storetest.RunFaults(t, func(sub *testing.T, f *storetest.Fault) core.Store {
		return over(storetest.Faulty(open(sub), f))
	}, sampled)
}

func TestMigrations(t *testing.T) {
	url := servers.Postgres(t)
	storetest.RunMigrations(t, store.Postgres, func(t *testing.T) func() store.Conn {
		own := inSchema(t, url)
		return func() store.Conn { return opened(t, own) }
	})
}

func TestGuards(t *testing.T) { storetest.Guards(t) }

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) core.Store { return migrated(b, opened(b, servers.Postgres(b))) })
}

func TestShapes(t *testing.T) {
	storetest.Shapes(t, store.Postgres, func(t *testing.T) store.Conn { return opened(t, servers.Postgres(t)) })
}
