//go:build linux

package e2e

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
)

// Secrets that must never be printed.
const (
	rightPassword = "right-Pa55word"
	wrongPassword = "wrong-Pa55word"
	wrongToken    = "wrong-t0ken-of-somebody"
)

// A refusal is a start that fails because of its database.
type refusal struct {
	name  string
	store *store
	want  []string // parts of the error on standard error
}

func (f refusal) check(t *testing.T, secrets ...string) {
	t.Helper()
	g := newGatewayOn(t, f.store, plainConfig, receiver.New(t))
	g.env = append(g.env, "GATEWAY_DATABASE_WAIT=0s") // otherwise it waits for a database that cannot be reached
	began := time.Now()
	got := run(t, g.command("start"))
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("refused after %v, want within seconds", took)
	}
	t.Log(strings.TrimSpace(got.stderr))
	if got.code != 1 || got.stdout != "" {
		t.Errorf("exit code %d, standard output %q, want 1 and nothing", got.code, got.stdout)
	}
	sentences := sentencesOf(got.stderr)
	if len(sentences) != 1 || !strings.HasPrefix(sentences[0], "gateway: ") {
		t.Errorf("standard error =\n%swant one line from \"gateway: \" on", got.stderr)
	}
	for _, want := range f.want {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("standard error =\n%swant %q in it", got.stderr, want)
		}
	}
	// Neither secrets nor a stack, nor the text for senders of events.
	for _, never := range append(secrets, rightPassword, wrongPassword, wrongToken, "goroutine ", ".go:", "SQLSTATE", "database unavailable") {
		if strings.Contains(got.stderr, never) {
			t.Errorf("standard error =\n%swant it without %q", got.stderr, never)
		}
	}
}

// sentencesOf returns the lines that are not log lines about the configuration.
func sentencesOf(stderr string) []string {
	var all []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); !aboutConfig.MatchString(line) {
			all = append(all, line)
		}
	}
	return all
}

// TestRefusedByPostgres: one sentence describes the mistake in a database or its address, and
// helps to correct it.
func TestRefusedByPostgres(t *testing.T) {
	t.Parallel()
	s, admin := ownPostgres(t, servers.PostgresOptions{TCP: true, Settings: []string{"hba_file=" + passwordsOverTCP(t)}})
	execSQL(t, "pgx", admin, "CREATE ROLE app LOGIN PASSWORD '"+rightPassword+"'")
	at := func(user, password, database string) *store {
		return postgresStore(as(t, s.TCP(database), user, password))
	}
	unused := ports.Refusing(t)
	for _, f := range []refusal{
		{"unreachable", postgresStore(fmt.Sprintf("postgres://app:%s@%s/gateway?sslmode=disable", rightPassword, unused)),
			[]string{unused + " cannot be reached", "connection refused", "database.url"}},
		{"wrong password", at("app", wrongPassword, "gateway"),
			[]string{`user "app"`, "check the user and the password in database.url"}},
		{"unknown user", at("stranger", wrongPassword, "gateway"),
			[]string{`user "stranger"`, "check the user and the password in database.url"}},
		{"unknown database", at("app", rightPassword, "elsewhere"),
			[]string{`no database "elsewhere"`, "create it, or correct its name in database.url"}},
		{"no right to create tables", at("app", rightPassword, "gateway"),
			[]string{"permission denied for schema public", "GRANT", "CREATE"}},
		{"no URL at all", postgresStore("postgres://app:" + wrongPassword + "@127.0.0.1:port/gateway"),
			[]string{"database.url"}},
	} {
		t.Run(f.name, func(t *testing.T) { f.check(t) })
	}
}

// passwordsOverTCP returns a pg_hba.conf that asks for passwords on TCP only.
func passwordsOverTCP(t *testing.T) string {
	t.Helper()
	// t.TempDir is closed to other users, and the server does not run as root.
	dir, err := os.MkdirTemp("", "gateway-e2e-hba-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	chmod(t, dir, 0o755)
	path := filepath.Join(dir, "pg_hba.conf")
	write(t, path, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
	chmod(t, path, 0o644)
	return path
}

// TestRefusedByMySQL is the same for MySQL.
func TestRefusedByMySQL(t *testing.T) {
	t.Parallel()
	s, admin := ownMySQL(t, servers.MySQLOptions{TCP: true})
	execSQL(t, "mysql", mysqlDSN(t, admin),
		"CREATE USER app@'127.0.0.1' IDENTIFIED BY '"+rightPassword+"'",
		"GRANT ALL ON *.* TO app@'127.0.0.1'",
		"CREATE USER reader@'127.0.0.1' IDENTIFIED BY '"+rightPassword+"'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON gateway.* TO reader@'127.0.0.1'",
		"CREATE USER guest@'127.0.0.1' IDENTIFIED BY '"+rightPassword+"'")
	at := func(user, password, database string) *store {
		return mysqlStore(as(t, s.TCP(database), user, password))
	}
	unused := ports.Refusing(t)
	for _, f := range []refusal{
		{"unreachable", mysqlStore(fmt.Sprintf("mysql://app:%s@%s/gateway", rightPassword, unused)),
			[]string{unused + " cannot be reached", "database.url"}},
		{"wrong password", at("app", wrongPassword, "gateway"),
			[]string{`user "app"`, "wrong user or password", "database.url"}},
		{"unknown user", at("stranger", wrongPassword, "gateway"),
			[]string{`user "stranger"`, "wrong user or password", "database.url"}},
		{"unknown database", at("app", rightPassword, "elsewhere"),
			[]string{`no database "elsewhere"`, "create it, or correct the name"}},
		{"no right to the database", at("guest", rightPassword, "gateway"),
			[]string{`user "guest"`, `"gateway"`, "grant"}},
		{"no right to create tables", at("reader", rightPassword, "gateway"),
			[]string{"may not create tables", "grant it SELECT, INSERT, UPDATE, DELETE, CREATE, INDEX"}},
		{"no URL at all", mysqlStore("mysql://app:" + wrongPassword + "@127.0.0.1:port/gateway"),
			[]string{"database.url"}},
	} {
		t.Run(f.name, func(t *testing.T) { f.check(t) })
	}
}

// TestRefusedByHosted is the same for D1, by its API and by its proxy.
func TestRefusedByHosted(t *testing.T) {
	t.Parallel()
	h := servers.D1(t)
	with := func(change func(*servers.Hosted)) servers.Hosted { other := h; change(&other); return other }
	badToken := with(func(h *servers.Hosted) { h.Token = wrongToken })
	weak := with(func(o *servers.Hosted) { o.Token = h.WithoutRights() })
	elsewhere := with(func(h *servers.Hosted) { h.Database = "ffffffff-0000-4000-8000-ffffffffffff" })
	unused := "http://" + ports.Refusing(t)
	for _, f := range []refusal{
		{"API: unreachable", apiStore(h, unused), []string{"the database at " + unused + " cannot be reached", "connection refused"}},
		{"API: wrong token", apiStore(badToken, h.API), []string{"Cloudflare refuses database.api_token", "D1 Edit"}},
		{"API: token without rights", apiStore(weak, h.API), []string{"Cloudflare refuses database.api_token", "D1 Edit"}},
		{"API: unknown database", apiStore(elsewhere, h.API),
			[]string{"no D1 database " + elsewhere.Database, "check database.database_id and database.account_id"}},
		{"proxy: unreachable", proxyStore(h, unused), []string{"the database at " + unused + " cannot be reached", "database.hosted_sql_endpoint"}},
		{"proxy: wrong token", proxyStore(badToken, h.Endpoint), []string{"the proxy at " + h.Endpoint + " refuses database.api_token", "API_TOKEN"}},
		{"proxy: not there", proxyStore(h, h.API+"/nothing"), []string{"no D1 proxy at", "check database.hosted_sql_endpoint"}},
	} {
		t.Run(f.name, func(t *testing.T) { f.check(t, h.Token) })
	}
}

// as returns an address with another user and password.
func as(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func execSQL(t *testing.T, driver, address string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
