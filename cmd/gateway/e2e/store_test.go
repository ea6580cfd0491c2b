//go:build linux

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	ledgers "github.com/eventgateway/gateway/infra/test/ledger"
	"github.com/eventgateway/gateway/infra/test/servers"
)

// A store is a database other than a SQLite file: its part of a configuration, and direct
// access for the tests.
type store struct {
	name string
	yaml string   // appended to the configuration
	env  []string // environment variables for yaml
	open func(testing.TB) *ledger

	requests func() int // how many the gateway has sent to a D1 database; nil if they are not counted
}

// ownFile stands for SQLite in tables of stores.
func ownFile(testing.TB) *store { return nil }

func onPostgres(t testing.TB) *store { return postgresStore(servers.Postgres(t)) }
func onMySQL(t testing.TB) *store    { return mysqlStore(servers.MySQL(t)) }
func onD1(t testing.TB) *store       { h := servers.D1(t); return apiStore(h, h.API) }
func onProxy(t testing.TB) *store    { h := servers.D1(t); return proxyStore(h, h.Endpoint) }

// onCountedD1 is onProxy with a counter of requests before it.
func onCountedD1(t testing.TB) *store {
	h := servers.D1(t)
	f := servers.NewFaults(t, h.Endpoint)
	st := proxyStore(h, f.URL)
	st.requests = func() int { return f.Counts().Calls }
	return st
}

// A place is a kind of store.
type place struct {
	name string
	on   func(testing.TB) *store
}

// everyServer returns the places for a test. The two ways to D1 differ in their address and in the
// form of their answers, which store/hosted tests, so only make torture uses both.
func everyServer() []place {
	places := []place{{"PostgreSQL", onPostgres}, {"MySQL", onMySQL}, {"D1 behind its proxy", onProxy}}
	if os.Getenv("GATEWAY_TEST_WHOLE") != "" {
		places = append(places, place{"D1", onD1})
	}
	return places
}

// ownPostgres starts a server for one test, with a database.
func ownPostgres(t *testing.T, o servers.PostgresOptions) (s *servers.PostgresServer, address string) {
	t.Helper()
	s, err := servers.StartPostgres(o)
	servers.Check(t, err)
	t.Cleanup(func() { endOwn(t, s) })
	address, err = s.NewDatabase("gateway")
	check(t, err)
	return s, address
}

// endOwn ends a server of one test. If the test failed, it shows the end of what the server said: it may have
// ended by itself.
func endOwn(t *testing.T, s interface {
	Log() string
	Stop() error
}) {
	if t.Failed() {
		t.Logf("the database server said:\n%s", s.Log())
	}
	_ = s.Stop()
}

// ownMySQL starts a server for one test, with a database.
func ownMySQL(t *testing.T, o servers.MySQLOptions) (s *servers.MySQLServer, address string) {
	t.Helper()
	s, err := servers.StartMySQL(o)
	servers.Check(t, err)
	t.Cleanup(func() { endOwn(t, s) })
	address, err = s.NewDatabase("gateway")
	check(t, err)
	return s, address
}

func postgresStore(address string) *store {
	return &store{
		name: "PostgreSQL",
		yaml: `
database: {driver: postgres, url: "${DATABASE_URL}"}
`,
		env: []string{"DATABASE_URL=" + address},
		open: func(t testing.TB) *ledger {
			l := openSQL(t, "pgx", address)
			// Without statistics the planner takes minutes for some of the queries.
			if _, err := l.db.Exec("ANALYZE"); err != nil {
				t.Fatal(err)
			}
			return l
		},
	}
}

func mysqlStore(address string) *store {
	return &store{
		name: "MySQL",
		yaml: `
database: {driver: mysql, url: "${DATABASE_URL}"}
`,
		env:  []string{"DATABASE_URL=" + address},
		open: func(t testing.TB) *ledger { return openSQL(t, "mysql", mysqlDSN(t, address)) },
	}
}

// mysqlDSN converts an address into the form of the driver.
func mysqlDSN(t testing.TB, address string) string {
	t.Helper()
	rest, isURL := strings.CutPrefix(address, "mysql://")
	if !isURL || strings.Contains(rest, "@unix(") {
		return rest
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("the address of the MySQL server is not a URL")
	}
	password, _ := u.User.Password()
	return fmt.Sprintf("%s:%s@tcp(%s)%s?%s", u.User.Username(), password, u.Host, u.Path, u.RawQuery)
}

// apiStore is a D1 database with its REST API at a base URL, which may be the URL of a proxy
// of the test.
func apiStore(h servers.Hosted, base string) *store {
	return &store{
		name: "D1",
		yaml: `
database: {driver: hosted_sql, account_id: "${D1_ACCOUNT}", database_id: "${D1_DATABASE}", api_token: "${D1_TOKEN}"}
`,
		env:  []string{"D1_ACCOUNT=" + h.Account, "D1_DATABASE=" + h.Database, "D1_TOKEN=" + h.Token, "GATEWAY_HOSTED_SQL_API=" + base},
		open: func(t testing.TB) *ledger { return openD1(t, h) },
	}
}

// proxyStore is a D1 database behind the Worker at an address.
func proxyStore(h servers.Hosted, endpoint string) *store {
	return &store{
		name: "D1 behind its proxy",
		yaml: `
database: {driver: hosted_sql, hosted_sql_endpoint: "${D1_ENDPOINT}", api_token: "${D1_TOKEN}"}
`,
		env:  []string{"D1_ENDPOINT=" + endpoint, "D1_TOKEN=" + h.Token},
		open: func(t testing.TB) *ledger { return openD1(t, h) },
	}
}

// openD1 queries a D1 database through its REST API.
func openD1(t testing.TB, h servers.Hosted) *ledger {
	return &ledger{t: t, ask: ledgers.D1(h), integer: "INT"}
}
