package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/doctor"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
)

// A ward is a configuration for doctor. No server runs at its port.
type ward struct {
	config string
	env    map[string]string
	ahead  time.Duration // how far this machine's clock is ahead of the right time
}

func wardOf(database string, env map[string]string) ward {
	return ward{config: "server: {host: 127.0.0.1, port: 1}\napi: {auth_token: " + strings.Repeat("x", 32) + "}\ndatabase: " + database + "\n", env: env}
}

func atURL(driver, address string) ward {
	return wardOf("{driver: "+driver+", url: \"${DATABASE}\"}", map[string]string{"DATABASE": address})
}

func hostedWard(h servers.Hosted) ward {
	return wardOf("{driver: hosted_sql, account_id: "+h.Account+", database_id: "+h.Database+", api_token: \"${TOKEN}\"}",
		map[string]string{"TOKEN": h.Token, "GATEWAY_HOSTED_SQL_API": h.API})
}

// file writes the configuration.
func (w ward) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(w.config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// app returns a run of the program with this configuration.
func (w ward) app(t *testing.T) *app {
	a := session{env: w.env}.app(&bytes.Buffer{})
	a.configFlag = w.file(t)
	return a
}

// migrate migrates the database, as start does.
func (w ward) migrate(t *testing.T) ward {
	t.Helper()
	a := w.app(t)
	cfg, err := a.loadConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.openStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

// query runs statements on the database and returns the rows of the last one.
func (w ward) query(t *testing.T, texts ...string) (rows [][]any) {
	t.Helper()
	a := w.app(t)
	cfg, err := a.loadConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := a.connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range texts {
		res, err := conn.Batch(t.Context(), store.Stmt{Name: text, SQL: text, Reads: strings.HasPrefix(text, "SELECT")})
		if err != nil {
			t.Fatal(err)
		}
		rows = res[0].Rows
	}
	return rows
}

// A diagnosis is doctor's output by the names of the checks. If several lines have one name,
// it holds all details and the last status.
type diagnosis map[string]doctorJSON

func (w ward) diagnose(t *testing.T) diagnosis {
	t.Helper()
	var out, errs bytes.Buffer
	s := session{env: w.env}.system(&out, &errs)
	s.clock = func() time.Time { return time.Now().Add(w.ahead) }
	code := run(t.Context(), []string{"doctor", "--json", "-c", w.file(t)}, s)
	var report struct {
		OK     bool
		Checks []doctorJSON
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || errs.Len() > 0 {
		t.Fatalf("doctor printed %q and %q: %v", out.String(), errs.String(), err)
	}
	d, bad := diagnosis{}, false
	for _, c := range report.Checks {
		bad = bad || c.Status == doctor.Failed
		if earlier, ok := d[c.Name]; ok {
			c.Detail = earlier.Detail + "\n" + c.Detail
		}
		d[c.Name] = c
	}
	if bad == report.OK || bad != (code == exitFailed) {
		t.Errorf("doctor exits with %d and ok %v, though a check failed is %v", code, report.OK, bad)
	}
	for _, secret := range []string{"canary", w.env["TOKEN"]} {
		if secret != "" && bytes.Contains(out.Bytes(), []byte(secret)) {
			t.Errorf("doctor tells the secret %s: %s", secret, out.String())
		}
	}
	return d
}

// expect fails the test for each check that differs from want. A wanted text is the status,
// then a colon and a part of the line.
func (d diagnosis) expect(t *testing.T, want map[string]string) {
	t.Helper()
	for name, w := range want {
		got := d[name]
		line := got.Detail
		if got.Remedy != "" {
			line += "; " + string(got.Remedy)
		}
		status, words, _ := strings.Cut(w, ": ")
		if string(got.Status) != status || !strings.Contains(line, words) {
			t.Errorf("%s = %s %q, want %s %q", name, got.Status, line, status, words)
		}
	}
}

// engines are the databases, and the server that doctor names for each. The server for mysql
// is MariaDB, or MySQL if the environment names a MySQL server.
var engines = map[string]struct {
	server string
	fresh  func(*testing.T) ward
}{
	"postgres":   {"PostgreSQL 1", func(t *testing.T) ward { return atURL("postgres", servers.Postgres(t)) }},
	"mysql":      {": M", func(t *testing.T) ward { return atURL("mysql", servers.MySQL(t)) }},
	"hosted_sql": {"hosted_sql", func(t *testing.T) ward { return hostedWard(servers.D1(t)) }},
	"proxy": {"hosted_sql", func(t *testing.T) ward {
		h := servers.D1(t)
		return wardOf("{driver: hosted_sql, hosted_sql_endpoint: "+h.Endpoint+", api_token: \"${TOKEN}\"}", map[string]string{"TOKEN": h.Token})
	}},
	"sqlite": {"SQLite 3", func(t *testing.T) ward {
		w := atURL("sqlite", filepath.Join(t.TempDir(), "gateway.db"))
		w.query(t, "CREATE TABLE other (a TEXT)") // creates the file
		return w
	}},
}

func TestDoctorOfEachDatabase(t *testing.T) {
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			w := e.fresh(t)
			for range 2 { // the first run must have left nothing behind
				w.diagnose(t).expect(t, map[string]string{
					"database": "ok: " + e.server, "schema": "skipped: no tables yet", "writable": "ok: tables", "atomic": "ok", "clock": "ok",
				})
			}
			catalog := "sqlite_master WHERE name"
			if name == "postgres" || name == "mysql" {
				catalog = "information_schema.tables WHERE table_name"
			}
			if rows := w.query(t, "SELECT count(*) AS n FROM "+catalog+" LIKE 'gateway_probe_%'"); rows[0][0] != int64(0) {
				t.Errorf("doctor left %v tables", rows[0][0])
			}

			w.migrate(t).diagnose(t).expect(t, map[string]string{
				"configuration": "warning", "security": "ok", "database": "ok: " + e.server, "schema": "ok: up to date", "writable": "ok: events",
				"atomic": "ok", "durability": "ok", "clock": "ok", "server": `skipped: "gateway start --config `,
			})
			for _, table := range []string{"events", "jobs", "attempts"} {
				if rows := w.query(t, "SELECT count(*) AS n FROM "+table); rows[0][0] != int64(0) {
					t.Errorf("doctor left %v rows in %s", rows[0][0], table)
				}
			}

			w.query(t, "DELETE FROM schema_steps WHERE number > 7")
			w.diagnose(t).expect(t, map[string]string{"schema": "warning: steps are missing", "writable": "ok: tables"})
			w.query(t, "INSERT INTO schema_steps (number, applied_at) VALUES (99, 0)")
			w.diagnose(t).expect(t, map[string]string{"schema": "failed: run the newer version", "writable": "skipped", "atomic": "skipped"})
		})
	}
}

func TestDoctorTellsTheTime(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		clock string
	}{
		{0, "ok: agrees"},
		{3 * time.Second, "ok: agrees"},
		{8 * time.Second, "warning: behind"},
		{-8 * time.Second, "warning: ahead of"},
		{2 * time.Minute, "failed: 2m0s behind this machine's; let a time service"},
	} {
		w := engines["sqlite"].fresh(t)
		w.ahead = c.ahead
		w.diagnose(t).expect(t, map[string]string{"clock": c.clock})
	}
}

// TestDoctorOfPostgres checks cases that need a server with users and settings.
func TestDoctorOfPostgres(t *testing.T) {
	s, err := servers.StartPostgres(servers.PostgresOptions{TCP: true, Settings: []string{"fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off", "track_counts=off"}})
	servers.Check(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	if _, err := s.NewDatabase("ward"); err != nil {
		t.Fatal(err)
	}
	owner := atURL("postgres", s.TCP("ward"))
	owner.query(t, "CREATE ROLE reader LOGIN PASSWORD 'canary'", "CREATE ROLE writer LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	reader := atURL("postgres", strings.Replace(s.TCP("ward"), "postgres@", "reader:canary@", 1))
	reader.diagnose(t).expect(t, map[string]string{"database": "ok: as user reader", "schema": "skipped", "writable": "failed: GRANT", "atomic": "skipped"})

	owner.migrate(t).diagnose(t).expect(t, map[string]string{"database": "ok: as user postgres", "durability": "warning: full_page_writes is off", "growth": "warning: track_counts is off"})
	settings := owner.diagnose(t)["durability"].Detail
	if !strings.HasPrefix(settings, "fsync is off: ") || strings.Contains(settings, "synchronous_commit") {
		t.Errorf("durability = %q, want fsync first, and no word of what the gateway asks for itself", settings)
	}
	owner.query(t, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer")
	reader.diagnose(t).expect(t, map[string]string{"schema": "ok", "writable": "failed: permission denied for table events", "atomic": "skipped"})
	writer := atURL("postgres", strings.Replace(s.TCP("ward"), "postgres@", "writer@", 1))
	writer.diagnose(t).expect(t, map[string]string{"schema": "ok", "writable": "ok", "atomic": "ok"})

	nobody := atURL("postgres", strings.Replace(s.TCP("ward"), "postgres@", "nobody:canary@", 1))
	nobody.diagnose(t).expect(t, map[string]string{"database": "failed: check the user and the password in database.url", "schema": "skipped", "clock": "skipped"})
	atURL("postgres", "postgres://u:canary@127.0.0.1:1/ward").diagnose(t).
		expect(t, map[string]string{"database": "failed: PostgreSQL at 127.0.0.1:1 cannot be reached"})
}

func TestDoctorOfMySQL(t *testing.T) {
	s, err := servers.StartMySQL(servers.MySQLOptions{TCP: true, Settings: []string{"innodb-flush-log-at-trx-commit=2", "log-bin=binlog", "sync-binlog=0"}})
	servers.Check(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	if _, err := s.NewDatabase("ward"); err != nil {
		t.Fatal(err)
	}
	owner := atURL("mysql", s.URL("ward"))
	owner.query(t, "CREATE USER reader@'%' IDENTIFIED BY 'canary'", "GRANT SELECT ON ward.* TO reader@'%'")
	reader := atURL("mysql", strings.Replace(s.TCP("ward"), "root@", "reader:canary@", 1))
	reader.diagnose(t).expect(t, map[string]string{"database": "ok: as user reader@%", "schema": "skipped", "writable": "failed: may not create tables", "atomic": "skipped"})

	owner.migrate(t).diagnose(t).expect(t, map[string]string{"database": "ok: as user root@localhost", "durability": "warning: sync_binlog is 0"})
	owner.diagnose(t).expect(t, map[string]string{"durability": "warning: innodb_flush_log_at_trx_commit is 2"})
	reader.diagnose(t).expect(t, map[string]string{"schema": "ok", "writable": "failed: may not write tables (INSERT)", "atomic": "skipped"})
	owner.query(t, "GRANT INSERT, UPDATE, DELETE ON ward.* TO reader@'%'")
	reader.diagnose(t).expect(t, map[string]string{"schema": "ok", "writable": "ok", "atomic": "ok"})

	// A table of another engine keeps half of a failed batch.
	owner.query(t, "ALTER TABLE events ENGINE = MyISAM")
	owner.diagnose(t).expect(t, map[string]string{"writable": "ok", "atomic": "failed: keeps half of a batch"})
	if rows := owner.query(t, "SELECT count(*) FROM events"); rows[0][0] != int64(0) {
		t.Errorf("doctor left %v events", rows[0][0])
	}

	intruder := atURL("mysql", strings.Replace(s.TCP("ward"), "root@", "reader:canary2@", 1))
	intruder.diagnose(t).expect(t, map[string]string{"database": "failed: wrong user or password", "schema": "skipped"})
	atURL("mysql", "mysql://u:canary@127.0.0.1:1/ward").diagnose(t).
		expect(t, map[string]string{"database": "failed: 127.0.0.1:1 cannot be reached"})
}

func TestDoctorOfD1(t *testing.T) {
	h := servers.D1(t)
	for _, c := range []struct {
		change func(*servers.Hosted)
		want   string
	}{
		{func(h *servers.Hosted) { h.Token = "canary" }, "failed: refuses database.api_token"},
		{func(h *servers.Hosted) { h.Token = h.WithoutRights() }, "failed: permission D1 Edit"},
		{func(h *servers.Hosted) { h.Database = "elsewhere" }, "failed: check database.database_id"},
	} {
		changed := h
		c.change(&changed)
		hostedWard(changed).diagnose(t).expect(t, map[string]string{"database": c.want, "schema": "skipped"})
	}
}

// TestDoctorOfHandlers checks each kind of answer, and no answer. The servers are on this
// machine, so all cases but the last allow private addresses.
func TestDoctorOfHandlers(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead || len(r.Header["X-Secret"]) > 0 {
			t.Errorf("doctor sends %s with %v", r.Method, r.Header)
		}
		code := map[string]int{"/fine": 200, "/post-only": 405, "/unknown-method": 501, "/moved": 308, "/broken": 500, "/busy": 503}
		w.WriteHeader(code[r.URL.Path])
	}))
	defer answers.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	w := wardOf("{url: "+filepath.Join(t.TempDir(), "gateway.db")+"}", map[string]string{"AT": answers.URL, "TLS": secure.URL})
	w.config += `sources: {app: {type: event}}
handlers:
  fine: {source: app, url: "${AT}/fine?token=canary", headers: {x-secret: canary}}
  post-only: {source: app, url: "${AT}/post-only"}
  unknown-method: {source: app, url: "${AT}/unknown-method"}
  moved: {source: app, url: "${AT}/moved"}
  broken: {source: app, url: "${AT}/broken"}
  busy: {source: app, url: "${AT}/busy"}
  absent: {source: app, url: "http://127.0.0.1:2/?token=canary"}
  nameless: {source: app, url: "http://gateway.invalid/?token=canary"}
  untrusted: {source: app, url: "${TLS}/?token=canary"}
  metadata: {source: app, url: "http://169.254.169.254/"}
  itself: {source: app, url: "http://localhost:1/_echo"}
  old-grpc: {source: app, type: grpc, url: "${TLS}"}
  grpc: {source: app, type: grpc, url: "${AT}"}
`
	allowed := w
	allowed.config = strings.Replace(w.config, "port: 1", "port: 1, allow_private_urls: true", 1)
	allowed.diagnose(t).expect(t, map[string]string{
		"security":                "warning: server.allow_private_urls",
		"handlers.fine":           "ok: answers (200 OK to HEAD)",
		"handlers.post-only":      "ok: 405 Method Not Allowed",
		"handlers.unknown-method": "ok: 501",
		"handlers.moved":          "warning: follow no redirects",
		"handlers.broken":         "failed: 500 Internal Server Error",
		"handlers.busy":           "failed: 503",
		"handlers.absent":         "failed: http://127.0.0.1:2 cannot be reached: connection refused; start the receiver",
		"handlers.nameless":       "failed: gateway.invalid is a name that does not resolve",
		"handlers.untrusted":      "failed: signed by unknown authority; have its certificate signed",
		"handlers.metadata":       "failed: an address that nothing is sent to: 169.254.169.254 may be a cloud's metadata service",
		"handlers.itself":         "skipped: it is this gateway",
		"handlers.old-grpc":       "failed: " + secure.URL + " takes no gRPC: the server offers no HTTP/2, which gRPC needs; turn HTTP/2 (ALPN h2) on",
		"handlers.grpc":           "ok: accepts connections (gRPC handlers are not called)",
	})
	w.diagnose(t).expect(t, map[string]string{
		"handlers.fine": "failed: is a loopback address (server.allow_private_urls is false); set server.allow_private_urls: true",
	})
}

// TestDoctorOfAlerts: places for alerts are checked like handlers. Of their addresses, doctor
// prints only scheme and host.
func TestDoctorOfAlerts(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead || r.URL.RawQuery != "key=canary" {
			t.Errorf("doctor sends %s to %s", r.Method, r.URL)
		}
		if r.URL.Path == "/moved/canary" {
			w.Header().Set("Location", "http://[::1/"+r.URL.Path) // not a valid address
		}
		w.WriteHeader(map[string]int{"/fine/canary": 200, "/moved/canary": 308, "/broken/canary": 500}[r.URL.Path])
	}))
	defer answers.Close()
	w := wardOf("{url: "+filepath.Join(t.TempDir(), "gateway.db")+"}", map[string]string{"AT": answers.URL, "PARROT": parrot(t)})
	w.config += `sources: {app: {type: event}}
alerts:
  - {url: "${AT}/fine/canary?key=canary", type: slack, on: [verification_failure]}
  - {url: "${AT}/moved/canary?key=canary", on: [verification_failure]}
  - {url: "${AT}/broken/canary?key=canary", on: [verification_failure]}
  - {url: "http://127.0.0.1:2/canary?key=canary", on: [verification_failure]}
  - {url: "http://gateway.invalid/canary?key=canary", on: [verification_failure]}
  - {url: "http://169.254.169.254/canary?key=canary", on: [verification_failure]}
  - {url: "http://${PARROT}/canary?key=canary", on: [verification_failure]}
  - {url: "http://localhost:1/canary", on: [verification_failure]}
`
	allowed := w
	allowed.config = strings.Replace(w.config, "port: 1", "port: 1, allow_private_urls: true", 1)
	allowed.diagnose(t).expect(t, map[string]string{
		"alerts[0]": "ok: " + answers.URL + " answers (200 OK to HEAD)",
		"alerts[1]": "failed: " + answers.URL + " gives no answer: its reply is not understood",
		"alerts[2]": "failed: 500 Internal Server Error",
		"alerts[3]": "failed: http://127.0.0.1:2 cannot be reached: connection refused",
		"alerts[4]": "failed: gateway.invalid is a name that does not resolve",
		"alerts[5]": "failed: http://169.254.169.254 is an address that nothing is sent to",
		"alerts[6]": "failed: gives no answer: its reply is not understood",
		"alerts[7]": "skipped: it is this gateway",
	})
	w.diagnose(t).expect(t, map[string]string{
		"alerts[0]": "failed: is a loopback address (server.allow_private_urls is false); set server.allow_private_urls: true",
		"alerts[5]": "failed: http://169.254.169.254 is an address that nothing is sent to",
	})
	one := wardOf("{url: "+filepath.Join(t.TempDir(), "gateway.db")+"}", map[string]string{"AT": answers.URL})
	one.config += "alerts: {url: \"${AT}/fine/canary?key=canary\", on: [verification_failure]}\n"
	one.diagnose(t).expect(t, map[string]string{"alerts[0]": "failed: is a loopback address"})
}

// parrot returns the address of a server that sends back its request.
func parrot(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			_, _ = io.WriteString(c, strings.Replace(line, "HEAD", "HTTP/1.1", 1))
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestDoctorOfTheServer(t *testing.T) {
	for _, c := range []struct {
		code         int
		answer, want string
	}{
		{200, `{"status":"ok","queue_depth":7}`, "ok: unfinished jobs: 7"},
		{200, `{"status":"ok","queue_depth":7,"config":{"state":"invalid","since":"2026-11-20T12:00:00.007"}}`,
			"warning: does not follow its newest configuration since 2026-11-20T12:00:00.007: invalid; its log says why"},
		{503, `{"status":"error","detail":"database unreachable"}`, "failed: is not well: database unreachable"},
		{200, `{"status":"ok"}`, "failed: is not a gateway: 200 OK; stop it, or set server.port"},
		{404, `not found`, "failed: is not a gateway: 404 Not Found"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/health" {
				t.Errorf("doctor asks for %s", r.URL.Path)
			}
			w.WriteHeader(c.code)
			_, _ = w.Write([]byte(c.answer))
		}))
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		w := wardOf("{url: "+filepath.Join(t.TempDir(), "gateway.db")+"}", nil)
		w.config = strings.Replace(w.config, "port: 1", "port: "+u.Port(), 1)
		w.diagnose(t).expect(t, map[string]string{"server": c.want})
		s.Close()
	}
}

func TestDoctorInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	code, stdout, stderr := session{}.run(ctx, "doctor", "-c", wardOf("{url: "+filepath.Join(t.TempDir(), "x.db")+"}", nil).file(t))
	if code != exitInterrupted || stdout != "" || stderr != "gateway: interrupted\n" {
		t.Errorf("doctor = %d, %q, %q; want %d", code, stdout, stderr, exitInterrupted)
	}
}

// TestDoctorOnATerminal: the output has marks and colours, and no text that steers the
// terminal.
func TestDoctorOnATerminal(t *testing.T) {
	var out bytes.Buffer
	a := session{terminal: true}.app(&out)
	err := a.printChecks([]doctor.Check{
		{Name: "clock", Status: doctor.OK, Detail: "right"},
		{Name: "handlers.世界", Status: doctor.Failed, Detail: "said \x1b[2J\nand went", Remedy: "call it"},
		{Name: "atomic", Status: doctor.Skipped, Blocked: true},
	})
	want := "\x1b[32m✓\x1b[0m  clock          right\n\x1b[31m✗\x1b[0m  handlers.世界  said \\x1b[2J\\nand went; call it\n"
	if got := out.String(); got != want || err == nil || core.IsKind(err, core.Invalid) {
		t.Errorf("printChecks = %q, %v, want %q and an error", got, err, want)
	}
}
