//go:build linux

package e2e

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// followsWithin bounds the delay with which /health follows real intake, both when the
// database stops taking events and when it takes them again.
const followsWithin = 5 * time.Second

// faultSenders is the number of senders during a fault. It leaves some senders for new
// requests while others are blocked by the fault.
const faultSenders = 4

// A fault is a way in which a running database fails.
type fault struct {
	name string

	// begin makes the fault and returns the function that ends it.
	begin func(t *testing.T) (end func())
}

// testFault checks a gateway on a database during a fault. While no event is accepted, /health
// says so. Once events are accepted again, /health says that. No accepted event is lost.
func testFault(t *testing.T, st *store, f fault) {
	r := receiver.New(t)
	testFaultOf(t, newGatewayOn(t, st, outageConfig, r), r, f)
}

func testFaultOf(t *testing.T, g *gateway, r *receiver.Receiver, f fault) {
	g.env = append(g.env, "GATEWAY_LOG=error")
	g.start()
	l := newLoad(g, r, pooled)
	l.pause = 20 * time.Millisecond
	l.start(faultSenders)
	wait.For(t, 20*time.Second, "events accepted and delivered", l.grows(5))
	h := watch(g)

	end := sync.OnceFunc(f.begin(t))
	defer end()
	l.awaitSilence(t, followsWithin)
	if status, body := h.now(); status != 503 {
		t.Errorf("no event was accepted for %v, and /health = %d %s, want 503", followsWithin, status, body)
	}
	if g.ended() {
		t.Fatalf("the gateway ended:\n%s", g.log)
	}
	accepts := l.accepts()
	end()
	wait.For(t, 30*time.Second, "events accepted after the fault", accepts)
	if !wait.Until(followsWithin, func() bool { status, _ := h.now(); return status == 200 }) {
		status, body := h.now()
		t.Errorf("events are accepted for %v, and /health = %d %s, want 200", followsWithin, status, body)
	}
	l.end()
	l.settle(outageLease + 20*time.Second)
	g.awaitIdle(outageLease + 20*time.Second) // also jobs whose take was committed but not answered, until their leases end
	g.stop()
	accepted, delivered := l.counts()
	t.Logf("accepted %d, delivered %d; posts without 202: %v", accepted, delivered, l.misses)
	if lost := l.missing(); len(lost) > 0 || len(l.alien) > 0 {
		t.Errorf("lost %d accepted events, delivered %d of what was never sent, want 0", len(lost), len(l.alien))
	}
	for what, n := range l.misses {
		if what != "503" {
			t.Errorf("posts that ended in %s: %d, want only 202 and 503", what, n)
		}
	}
	db := g.ledger()
	db.check(1)
	db.holds(l.acceptedIDs())
}

// awaitSilence returns when no event was accepted for the time d.
func (l *load) awaitSilence(t *testing.T, d time.Duration) {
	t.Helper()
	last, _ := l.counts()
	since := time.Now()
	wait.For(t, 40*time.Second, "no event is accepted", func() bool {
		if n, _ := l.counts(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > d
	})
}

// A healthWatch asks /health repeatedly.
type healthWatch struct{ last atomic.Pointer[answer] }

func watch(g *gateway) *healthWatch {
	h := &healthWatch{}
	h.last.Store(&answer{status: 200})
	ctx, stop := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ; ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
			if status, body, err := g.health(); err == nil {
				h.last.Store(&answer{status: status, body: body})
			}
		}
	})
	g.t.Cleanup(func() { stop(); asking.Wait() })
	return h
}

func (h *healthWatch) now() (status int, body string) {
	a := h.last.Load()
	return a.status, a.body
}

// held runs statements on their own connection, which stays open until the fault ends.
func held(db *sql.DB, statements ...string) func(*testing.T) func() {
	return func(t *testing.T) func() {
		t.Helper()
		c, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if _, err := c.ExecContext(context.Background(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		return func() {
			_ = c.Raw(func(any) error { return driver.ErrBadConn }) // the pool does not keep the connection
			_ = c.Close()
		}
	}
}

// changed runs one statement, and another one when the fault ends.
func changed(db *sql.DB, begin, end string) func(*testing.T) func() {
	exec := func(t *testing.T, statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	return func(t *testing.T) func() {
		exec(t, begin)
		return func() { exec(t, end) }
	}
}

// TestPostgresFaults: operators lock and change tables of a running PostgreSQL database.
func TestPostgresFaults(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ name, begin, end string }{
		{"a table is missing", `ALTER TABLE events RENAME TO elsewhere`, `ALTER TABLE elsewhere RENAME TO events`},
		{"a column is missing", `ALTER TABLE jobs RENAME COLUMN last_error TO elsewhere`, `ALTER TABLE jobs RENAME COLUMN elsewhere TO last_error`},
		{"a table is locked", `LOCK TABLE jobs IN EXCLUSIVE MODE`, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			st := onPostgres(t)
			db := st.open(t).db
			begin := changed(db, f.begin, f.end)
			if f.end == "" {
				begin = held(db, "BEGIN", f.begin)
			}
			testFault(t, st, fault{f.name, begin})
		})
	}
}

// TestPostgresServerFaults: faults of the server of a PostgreSQL database.
func TestPostgresServerFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		begin func(s *servers.PostgresServer, db *sql.DB) func(*testing.T) func()
	}{
		{"a synchronous standby is away", func(_ *servers.PostgresServer, db *sql.DB) func(*testing.T) func() {
			set := func(t *testing.T, to string) {
				for _, s := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + to + "'", "SELECT pg_reload_conf()"} {
					if _, err := db.Exec(s); err != nil {
						t.Errorf("%s: %v", s, err)
					}
				}
			}
			return func(t *testing.T) func() {
				set(t, "nobody")
				return func() { set(t, "") }
			}
		}},
		{"the server is frozen", func(s *servers.PostgresServer, _ *sql.DB) func(*testing.T) func() {
			return func(*testing.T) func() { s.Freeze(); return s.Thaw }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, address := ownPostgres(t, servers.PostgresOptions{Settings: []string{"fsync=off"}})
			st := postgresStore(address)
			testFault(t, st, fault{tt.name, tt.begin(s, openSQL(t, "pgx", address).db)})
		})
	}
}

// An entrance has what occupy needs to know of a server.
type entrance struct {
	room       int    // the connections that the hog can have beside that of db
	shut, open string // refuse new connections of the gateway, and permit them again
	taken      string // the id of a connection of the gateway
	end        string // ends the connection with an id
}

// occupy opens connections until the hog has all that the server permits, and ends those of the
// gateway. The gateway would replace each of them at once, so it is shut out meanwhile. A connection
// counts until its process has ended, and while it is refused, so a refusal of the hog does not show
// that the hog has all. The connections are closed when the fault ends.
func occupy(t *testing.T, db, hog *sql.DB, e entrance) func() {
	t.Helper()
	var taken []*sql.Conn
	open := changed(db, e.shut, e.open)(t)
	wait.For(t, 40*time.Second, "the hog has all connections", func() bool {
		for c, err := hog.Conn(t.Context()); err == nil; c, err = hog.Conn(t.Context()) {
			taken = append(taken, c)
		}
		var id sql.NullInt64
		if db.QueryRow(e.taken).Scan(&id) == nil {
			_, _ = db.Exec(e.end, id.Int64) // the connection may have ended by itself
		}
		return len(taken) == e.room
	})
	open()
	return func() {
		hog.SetMaxIdleConns(-1)
		for _, c := range taken {
			_ = c.Close()
		}
	}
}

// TestPostgresConnectionsTaken: other programs have all connections of the server.
func TestPostgresConnectionsTaken(t *testing.T) {
	t.Parallel()
	_, address := ownPostgres(t, servers.PostgresOptions{Settings: []string{"fsync=off", "max_connections=20"}})
	admin := openSQL(t, "pgx", address).db
	// The server keeps some connections for superusers.
	for _, statement := range []string{"CREATE ROLE gateway LOGIN", "CREATE ROLE others LOGIN", "ALTER DATABASE gateway OWNER TO gateway"} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	as := func(user string) string { return strings.Replace(address, "postgres@", user+"@", 1) }
	st := postgresStore(address)
	st.env = []string{"DATABASE_URL=" + as("gateway")}
	testFault(t, st, fault{"connections taken", func(t *testing.T) func() {
		return occupy(t, admin, openSQL(t, "pgx", as("others")).db, entrance{
			room:  20 - 3 - 1, // without those for superusers and that of admin
			shut:  `ALTER ROLE gateway CONNECTION LIMIT 0`,
			open:  `ALTER ROLE gateway CONNECTION LIMIT -1`,
			taken: `SELECT pid FROM pg_stat_activity WHERE usename = 'gateway'`,
			end:   `SELECT pg_terminate_backend($1)`,
		})
	}})
}

// TestPostgresDiskFull: the disk of the tables is full, and the disk of the log is not.
func TestPostgresDiskFull(t *testing.T) {
	t.Parallel()
	disk := onDisk(t, "size=24m")
	s, err := servers.StartPostgres(servers.PostgresOptions{Settings: []string{"fsync=off"}})
	servers.Check(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	address, err := s.NewDatabaseAt("gateway", filepath.Join(disk, "tables"))
	if err != nil {
		t.Fatal(err)
	}
	st, ballast := postgresStore(address), filepath.Join(disk, "ballast")
	testFault(t, st, fault{"disk full", func(t *testing.T) func() {
		db := st.open(t)
		wait.For(t, 20*time.Second, "the row of the purger's turns, which needs no new page any more", func() bool {
			return db.count(`SELECT COUNT(*) FROM turns`) > 0
		})
		fill(t, ballast)
		return func() { remove(t, ballast) }
	}})
}

// TestMySQLDiskFull: the disk of the tables is full, and the disk of the log is not.
func TestMySQLDiskFull(t *testing.T) {
	t.Parallel()
	disk, home := onDisk(t, "size=48m"), t.TempDir()
	_, address := ownMySQL(t, servers.MySQLOptions{Dir: home})
	folders, err := filepath.Glob(filepath.Join(home, "*", "data", "gateway"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders of the database = %v, %v, want one", folders, err)
	}
	check(t, os.CopyFS(filepath.Join(disk, "tables"), os.DirFS(folders[0])))
	check(t, os.RemoveAll(folders[0]))
	check(t, os.Symlink(filepath.Join(disk, "tables"), folders[0]))
	ballast := filepath.Join(disk, "ballast")
	// InnoDB keeps room for rollbacks in tables of 1 MiB and more. In a smaller one the rollback of a large
	// event may find none, and then InnoDB ends the server, as it did in 15 of 278 runs, six at a time.
	admin := openSQL(t, "mysql", mysqlDSN(t, address)).db
	grown := changed(admin, `INSERT INTO events (id, source, type, payload, content_type, headers, created_at)
		SELECT CONCAT(LEFT(id, 20), LPAD(seq, 6, '0')), 'grown', 'grown', REPEAT(MD5(seq), 400), '', '', created_at
		FROM (SELECT MAX(id) id, MAX(created_at) created_at FROM events) newest, seq_1_to_100`, `DELETE FROM events WHERE source = 'grown'`)
	testFault(t, mysqlStore(address), fault{"disk full", func(t *testing.T) func() {
		shrink := grown(t)
		fill(t, ballast)
		return func() {
			remove(t, ballast)
			shrink()
		}
	}})
}

// TestMySQLFaults: operators lock and change tables of a running MariaDB database.
func TestMySQLFaults(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ name, begin, end string }{
		{"a table is missing", `RENAME TABLE events TO elsewhere`, `RENAME TABLE elsewhere TO events`},
		{"a column is missing", `ALTER TABLE jobs RENAME COLUMN last_error TO elsewhere`, `ALTER TABLE jobs RENAME COLUMN elsewhere TO last_error`},
		{"a table is locked", `LOCK TABLES jobs READ`, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			st := onMySQL(t)
			db := st.open(t).db
			begin := changed(db, f.begin, f.end)
			if f.end == "" {
				begin = held(db, f.begin)
			}
			testFault(t, st, fault{f.name, begin})
		})
	}
}

// TestMySQLServerFaults: faults of the server of a MariaDB database.
func TestMySQLServerFaults(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the server is frozen", "all connections are taken"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, address := ownMySQL(t, servers.MySQLOptions{Settings: []string{"max-connections=20"}})
			admin := openSQL(t, "mysql", mysqlDSN(t, address)).db
			// The server keeps a connection for users with all rights.
			for _, statement := range []string{"CREATE USER gateway@localhost", "GRANT ALL ON gateway.* TO gateway@localhost"} {
				if _, err := admin.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			st := mysqlStore(address)
			st.env = []string{"DATABASE_URL=" + strings.Replace(address, "root@", "gateway@", 1)}
			testFault(t, st, fault{name, func(t *testing.T) func() {
				if name == "the server is frozen" {
					s.Freeze()
					return s.Thaw
				}
				return occupy(t, admin, openSQL(t, "mysql", mysqlDSN(t, address)).db, entrance{
					room:  20 + 1 - 1, // with that for users with all rights, without that of admin
					shut:  `ALTER USER gateway@localhost ACCOUNT LOCK`,
					open:  `ALTER USER gateway@localhost ACCOUNT UNLOCK`,
					taken: `SELECT id FROM information_schema.processlist WHERE user = 'gateway'`,
					end:   `KILL ?`,
				})
			}})
		})
	}
}
