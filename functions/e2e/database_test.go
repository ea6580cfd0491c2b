//go:build linux

package e2e

import (
	"database/sql"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/eventgateway/gateway/infra/test/ledger"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wire"
)

// A database belongs to one test. It has the configuration for the functions, and direct
// access for the test's own queries.
type database struct {
	t    testing.TB
	yaml string
	env  []string   // environment variables for yaml
	wire *wire.Wire // between the functions and the server
	ask  ledger.Ask
	exec func(statement string)
}

// A place is a kind of database server.
type place struct {
	name string
	make func(testing.TB) *database
}

var places = []place{{"PostgreSQL", onPostgres}, {"D1", onD1}, {"D1 behind its proxy", onProxy}}

// everywhere runs a test on each place in parallel. The two ways to D1 differ only in their
// address, so a short run uses one of them.
func everywhere(t *testing.T, test func(*testing.T, *database)) {
	if testing.Short() {
		onEach(t, test)
		return
	}
	on(t, places, test)
}

// onEach is everywhere with one way to D1, for tests that are the same for both.
func onEach(t *testing.T, test func(*testing.T, *database)) {
	on(t, []place{{"PostgreSQL", onPostgres}, {"D1 behind its proxy", onProxy}}, test)
}

func on(t *testing.T, places []place, test func(*testing.T, *database)) {
	t.Parallel()
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p.make(t))
		})
	}
}

func onPostgres(t testing.TB) *database {
	address := servers.Postgres(t)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w, seen := wirePostgres(t, address)
	return &database{
		t:    t,
		yaml: `database: {driver: postgres, url: "${DATABASE_URL}"}`,
		env:  []string{"DATABASE_URL=" + seen},
		wire: w,
		ask:  ledger.SQL(db),
		exec: func(statement string) {
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		},
	}
}

// wirePostgres puts a wire in front of a server, and returns the URL that leads through the
// wire.
func wirePostgres(t testing.TB, address string) (*wire.Wire, string) {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("the address of the PostgreSQL server is not a URL")
	}
	q := u.Query()
	network, target := "tcp", u.Host
	if dir := q.Get("host"); dir != "" {
		network, target = "unix", filepath.Join(dir, ".s.PGSQL."+q.Get("port"))
	} else if u.Port() == "" {
		target = net.JoinHostPort(u.Hostname(), "5432")
	}
	w := wire.New(t, network, target)
	host, port, _ := net.SplitHostPort(w.Addr())
	q.Del("host")
	q.Del("port")
	u.Host, u.RawQuery = net.JoinHostPort(host, port), q.Encode()
	return w, u.String()
}

func onD1(t testing.TB) *database {
	h := servers.D1(t)
	w, api := wireHTTP(t, h.API)
	db := hosted(t, h)
	db.wire = w
	db.yaml = `database: {driver: hosted_sql, account_id: "${D1_ACCOUNT}", database_id: "${D1_DATABASE}", api_token: "${D1_TOKEN}"}`
	db.env = []string{"D1_ACCOUNT=" + h.Account, "D1_DATABASE=" + h.Database, "D1_TOKEN=" + h.Token, "GATEWAY_HOSTED_SQL_API=" + api}
	return db
}

func onProxy(t testing.TB) *database {
	h := servers.D1(t)
	w, endpoint := wireHTTP(t, h.Endpoint)
	db := hosted(t, h)
	db.wire = w
	db.yaml = `database: {driver: hosted_sql, hosted_sql_endpoint: "${D1_ENDPOINT}", api_token: "${D1_TOKEN}"}`
	db.env = []string{"D1_ENDPOINT=" + endpoint, "D1_TOKEN=" + h.Token}
	return db
}

func hosted(t testing.TB, h servers.Hosted) *database {
	db := &database{t: t, ask: ledger.D1(h)}
	db.exec = func(statement string) {
		if _, err := db.ask(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db
}

func wireHTTP(t testing.TB, address string) (*wire.Wire, string) {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	w := wire.New(t, "tcp", u.Host)
	u.Host = w.Addr()
	return w, u.String()
}

// column returns the values of a query with one column.
func (db *database) column(query string) []string {
	db.t.Helper()
	all, err := db.ask(query)
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	return all
}

// count returns the number that a query asks for.
func (db *database) count(query string) int {
	db.t.Helper()
	all := db.column(query)
	n, err := strconv.Atoi(strings.Join(all, " "))
	if err != nil {
		db.t.Fatalf("%s: %q, want one number", query, all)
	}
	return n
}

// sound checks the invariants that hold in every database.
func (db *database) sound() {
	db.t.Helper()
	for _, i := range ledger.Invariants() {
		if n := db.count(i.SQL); n != 0 {
			db.t.Errorf("%s: %d, want 0", i.Name, n)
		}
	}
}

// finished reports whether each job is completed or dead.
func (db *database) finished() bool {
	return db.count(`SELECT COUNT(*) FROM jobs WHERE status NOT IN ('completed', 'dead')`) == 0
}
