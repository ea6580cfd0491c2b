package servers_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// A kind of SQL server, for tests that are the same for each.
type kind struct {
	name   string
	fresh  func(testing.TB) string
	start  func(dir string, tcp bool, settings, env []string) (server, error)
	open   func(*testing.T, string) conn
	synced string // a query whose answer says that commits are synced
	exists string // a query for whether a database exists, "0" or "1"
	limit  string // a query for the number of connections allowed

	version string // a query for the version, as people know it
	oldest  string // oldest supported version in the manual
}

// A conn is a connection that ends with the test.
type conn interface {
	exec(statement string) error
	one(query string) (string, error)
}

type server interface {
	URL(database string) string
	TCP(database string) string
	NewDatabase(name string) (string, error)
	Kill()
	Restart() error
	Stop() error
	Log() string
}

var kinds = []kind{
	{
		name: "PostgreSQL", fresh: servers.Postgres, open: openPostgres,
		start: func(dir string, tcp bool, settings, env []string) (server, error) {
			s, err := servers.StartPostgres(servers.PostgresOptions{Dir: dir, TCP: tcp, Settings: settings, Env: env})
			return s, err
		},
		synced: "SELECT current_setting('fsync') || current_setting('synchronous_commit')",
		exists: "SELECT CAST(COUNT(*) AS CHAR(1)) FROM pg_database WHERE datname = '%s'",
		limit:  "SELECT current_setting('max_connections')",

		version: "SELECT 'PostgreSQL ' || current_setting('server_version')",
		oldest:  "PostgreSQL 14",
	},
	{
		name: "MariaDB", fresh: servers.MySQL, open: openMySQL,
		start: func(dir string, tcp bool, settings, env []string) (server, error) {
			s, err := servers.StartMySQL(servers.MySQLOptions{Dir: dir, TCP: tcp, Settings: settings, Env: env})
			return s, err
		},
		synced: "SELECT IF(@@innodb_flush_log_at_trx_commit = 1, 'onon', 'off')",
		exists: "SELECT CAST(COUNT(*) AS CHAR(1)) FROM information_schema.schemata WHERE schema_name = '%s'",
		limit:  "SELECT @@max_connections",

		version: "SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), VERSION())",
		oldest:  "MariaDB 10.6, MySQL 8.0",
	},
}

func each(t *testing.T, test func(*testing.T, kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

type postgres struct{ *pgx.Conn }

func openPostgres(t *testing.T, url string) conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return postgres{c}
}

func (p postgres) exec(statement string) error {
	_, err := p.Exec(context.Background(), statement)
	return err
}

func (p postgres) one(query string) (v string, err error) {
	err = p.QueryRow(context.Background(), query, pgx.QueryExecModeSimpleProtocol).Scan(&v)
	return v, err
}

type mariadb struct{ *sql.Conn }

func openMySQL(t *testing.T, url string) conn {
	t.Helper()
	config, err := mysql.ParseDSN(mysqlDSN(url))
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = &mysql.NopLogger{} // that a killed server is gone is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mariadb{c}
}

// mysqlDSN turns the addresses that the package makes into the driver's own.
func mysqlDSN(url string) string {
	dsn := strings.TrimPrefix(url, "mysql://")
	if user, rest, _ := strings.Cut(dsn, "@"); strings.HasPrefix(rest, "127.") {
		host, database, _ := strings.Cut(rest, "/")
		return user + "@tcp(" + host + ")/" + database
	}
	return dsn
}

func (m mariadb) exec(statement string) error {
	_, err := m.ExecContext(context.Background(), statement)
	return err
}

func (m mariadb) one(query string) (v string, err error) {
	err = m.QueryRowContext(context.Background(), query).Scan(&v)
	return v, err
}

func execAll(t *testing.T, c conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func wantOne(t *testing.T, c conn, query, want string) {
	t.Helper()
	if got, err := c.one(query); err != nil || got != want {
		t.Errorf("%s = %s, %v, want %s", query, got, err, want)
	}
}

func TestDatabasesAreFreshAndApart(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		var gone string
		kept := k.fresh(t)
		t.Run("first", func(t *testing.T) {
			gone = k.fresh(t)
			execAll(t, k.open(t, gone), "CREATE TABLE apart (id INT)")
		})
		t.Run("at once", func(t *testing.T) {
			for _, name := range []string{"second", "third", "fourth"} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					execAll(t, k.open(t, k.fresh(t)), "CREATE TABLE apart (id INT)")
				})
			}
		})
		for url, want := range map[string]string{gone: "0", kept: "1"} {
			name := regexp.MustCompile(`gateway_test_\w+`).FindString(url)
			wantOne(t, k.open(t, kept), fmt.Sprintf(k.exists, name), want)
		}
	})
}

// TestVersions logs the versions of the servers, and requires that they are supported.
func TestVersions(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		got, err := k.open(t, k.fresh(t)).one(k.version)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the tests run on %s", got)
		product, number, _ := strings.Cut(got, " ")
		_, least, _ := strings.Cut(k.oldest, product+" ")
		least, _, _ = strings.Cut(least, ",")
		if older(t, number, least) {
			t.Errorf("%s is older than %s", got, k.oldest)
		}
	})
}

// older compares versions as far as both go.
func older(t *testing.T, version, least string) bool {
	parts := func(v string) (numbers []int) {
		for _, part := range strings.Split(regexp.MustCompile(`^[\d.]+`).FindString(v), ".") {
			n, err := strconv.Atoi(part)
			if err != nil {
				t.Fatalf("%q is no version", v)
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	a, b := parts(version), parts(least)
	n := min(len(a), len(b))
	return slices.Compare(a[:n], b[:n]) < 0
}

func TestOlder(t *testing.T) {
	for versions, want := range map[[2]string]bool{
		{"14.19 (Debian 14.19-1)", "14"}: false,
		{"13.22", "14"}:                  true,
		{"10.11.6-MariaDB", "10.6"}:      false,
		{"10.5.1-MariaDB", "10.6"}:       true,
		{"9.4.0", "8.0"}:                 false,
	} {
		if got := older(t, versions[0], versions[1]); got != want {
			t.Errorf("older(%s, %s) = %v, want %v", versions[0], versions[1], got, want)
		}
	}
}

func TestCommitsAreSynced(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		c := k.open(t, k.fresh(t))
		wantOne(t, c, k.synced, "onon")
		wantOne(t, c, k.limit, "300")
	})
}

func TestKillAndRestartKeepWhatWasCommitted(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, err := k.start("", true, nil, nil)
		servers.Check(t, err)
		defer s.Stop()
		url, err := s.NewDatabase("kept")
		if err != nil {
			t.Fatal(err)
		}
		killed := k.open(t, url)
		execAll(t, killed, "CREATE TABLE kept (id INT)", "INSERT INTO kept VALUES (1)", "BEGIN", "INSERT INTO kept VALUES (2)")
		s.Kill()
		if err := killed.exec("COMMIT"); err == nil {
			t.Error("a killed server answers")
		}
		for _, after := range []string{"kill", "good order"} {
			if err := s.Restart(); err != nil {
				t.Fatalf("restart after %s: %v", after, err)
			}
			for _, address := range []string{url, s.TCP("kept")} {
				wantOne(t, k.open(t, address), "SELECT CAST(COUNT(*) AS CHAR(1)) FROM kept", "1")
			}
		}
	})
}

func TestOptions(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	settings := map[string]string{"PostgreSQL": "max_connections=20", "MariaDB": "max-connections=20"}
	each(t, func(t *testing.T, k kind) {
		// The loader complains of it in the server's log, and goes on.
		s, err := k.start("/dev/shm", false, []string{settings[k.name]}, []string{"LD_PRELOAD=/no/such.so"})
		servers.Check(t, err)
		defer s.Stop()
		if log := s.Log(); !strings.Contains(log, "/no/such.so") {
			t.Errorf("the environment did not reach the server, its log is\n%s", log)
		}
		url, err := s.NewDatabase("Odd name")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(url, "dev%2Fshm") && !strings.Contains(url, "/dev/shm/") {
			t.Errorf("URL %s, want one in /dev/shm", url)
		}
		wantOne(t, k.open(t, url), k.limit, "20")
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := s.Restart(); err == nil {
			t.Error("a stopped server was started again")
		}
	})
}

func TestStartFailsWithTheServersWords(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, err := k.start("", false, []string{"nonsense=1"}, nil)
		if err == nil {
			s.Stop()
			t.Fatal("started with a setting that does not exist")
		}
		if !strings.Contains(err.Error(), "nonsense") {
			servers.Check(t, err)
		}
	})
}

func TestGivenServer(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s, err := k.start("", true, nil, nil)
			servers.Check(t, err)
			t.Cleanup(func() { s.Stop() })
			admin, err := s.NewDatabase("admin")
			if err != nil {
				t.Fatal(err)
			}
			given := []string{admin, s.TCP("admin")}
			if k.name == "MariaDB" {
				given = append(given, mysqlDSN(s.TCP("admin")))
			}
			for _, given := range given {
				t.Setenv("GATEWAY_TEST_POSTGRES_URL", given)
				t.Setenv("GATEWAY_TEST_MYSQL_URL", given)
				url := k.fresh(t)
				if url == given {
					t.Fatalf("%s is not a database of its own", url)
				}
				execAll(t, k.open(t, url), "CREATE TABLE t (id INT)")
				if strings.HasPrefix(given, "mysql://") != strings.HasPrefix(url, "mysql://") {
					t.Errorf("given %s, got %s: another form", given, url)
				}
			}
		})
	}
}

func TestParallelTestsShareTheConnections(t *testing.T) {
	address := servers.Postgres(t)
	ctx := context.Background()
	for range 150 {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
	}
}
