package boot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// minimal is a configuration whose database is never opened, since tests replace it.
const minimal = `
database: {driver: hosted_sql, hosted_sql_endpoint: "https://d1.example"}
sources:
  app: {type: event}
`

// logbook collects the log of a function.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newTest makes a function that is packaged with a configuration.
func newTest(t *testing.T, part gateway.Part, yaml string, variables map[string]string) (*function, *logbook) {
	t.Helper()
	all := map[string]string{"LAMBDA_TASK_ROOT": t.TempDir(), "AWS_REGION": "eu-west-1"}
	maps.Copy(all, variables)
	write(t, filepath.Join(all["LAMBDA_TASK_ROOT"], "gateway.yaml"), yaml)
	log := &logbook{}
	lookup := func(name string) (string, bool) { v, ok := all[name]; return v, ok }
	return newFunction(part, system{lookup: lookup, clock: time.Now, out: log}), log
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withStore assembles a function with a SQLite file that has the schema of this version.
func withStore(t *testing.T, f *function) *assembly {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := store.New(conn, store.SQLite, time.Now).Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.drive = func(config.Database) (func(context.Context) (store.Conn, error), store.Dialect, error) {
		return func(context.Context) (store.Conn, error) { return conn, nil }, store.SQLite, nil
	}
	a, err := f.ready(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// post returns the event of a POST request to a function's URL.
func post(path, body string) []byte {
	e, _ := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": path, "body": body,
		"headers":        map[string]string{"content-type": "application/json"},
		"requestContext": map[string]any{"http": map[string]any{"method": "POST", "path": path, "sourceIp": "192.0.2.1"}},
	})
	return e
}

// reply is the answer of a function.
type reply struct {
	StatusCode int
	Headers    map[string]string
	Body       string
}

func (s *server) ask(t *testing.T, event []byte) (r reply) {
	t.Helper()
	text, err := s.Invoke(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEventsComeIn(t *testing.T) {
	f, log := newTest(t, gateway.IntakeRoutes, minimal, nil)
	withStore(t, f)
	s := &server{f}
	for path, want := range map[string]int{"/events/app/order.created": 202, "/api/queues": 404, "/health": 405, "/webhooks/none": 404} {
		if r := s.ask(t, post(path, `{"a":1}`)); r.StatusCode != want || r.Headers["X-Frame-Options"] != "DENY" {
			t.Errorf("POST %s = %+v, want %d as routes say it; log: %s", path, r, want, log)
		}
	}
	if n, err := f.assembled.Store.Depth(context.Background()); err != nil || n != 0 {
		t.Errorf("Depth = %d, %v", n, err)
	}
}

func TestEnvironmentsThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		env        map[string]string
		want       string
	}{
		{"SQLite", "database: {driver: sqlite}", nil, "database.driver: sqlite is a file on the disk of one machine"},
		{"the default, which is SQLite", "sources: {}", nil, "use hosted_sql or postgres"},
		{"MySQL", `database: {driver: mysql, url: "u:p@tcp(h)/d"}`, nil, "database.driver: mysql is not built into the functions; use hosted_sql or postgres"},
		{"a mistake", minimal + "handlrs: {}", nil, `handlrs`},
		{"no file", minimal, map[string]string{"GATEWAY_CONFIG": "other.yaml"}, "other.yaml"},
		{"an object store", minimal, map[string]string{"GATEWAY_CONFIG": "s3://bucket/gateway.yaml"}, "http://, https://"},
		{"plain http", minimal, map[string]string{"GATEWAY_CONFIG": "http://example.com/gateway.yaml"}, "must be https://"},
		{"nobody to nudge", minimal, map[string]string{"GATEWAY_NUDGE": "https://example.com"}, `GATEWAY_NUDGE: "https://example.com" is neither the name nor the ARN`},
		{"a way to stay that there is not", minimal, map[string]string{"GATEWAY_LINGER": "never"}, `GATEWAY_LINGER: "never" is neither due nor always`},
		{"a variable that is not set", minimal + "api: {auth_token: '${NONE}'}", nil, "NONE is not set"},
	} {
		f, log := newTest(t, gateway.IntakeRoutes, tt.yaml, tt.env)
		f.wake = f.newNudger
		if err := f.begin(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: begin = %v, want %q in it", tt.name, err, tt.want)
		}
		if s := (&server{f}); s.ask(t, post("/events/a", "{}")).StatusCode != 500 {
			t.Errorf("%s: a request is not answered 500", tt.name)
		}
		if !strings.Contains(log.String(), "the function is not ready") {
			t.Errorf("%s: the log does not say why: %s", tt.name, log)
		}
	}
}

func TestConfigurationsBelongToTheEnvironment(t *testing.T) {
	f, _ := newTest(t, gateway.IntakeRoutes, minimal+"server: {max_inbound: 7}", map[string]string{"GATEWAY_ENV": "live"})
	write(t, filepath.Join(f.env("LAMBDA_TASK_ROOT"), "gateway.live.yaml"), "database: {max_connections: 50}\nsources: {shop: {type: event}}")
	c, err := f.loadConfig(context.Background())
	if err != nil || c.Database.MaxConnections != 2 || len(c.Sources) != 2 || c.Server.MaxInbound != 7 {
		t.Errorf("loadConfig = %+v, %v, want both files' and 2 connections", c, err)
	}
	path := filepath.Join(t.TempDir(), "elsewhere.yaml")
	write(t, path, minimal)
	f, _ = newTest(t, gateway.IntakeRoutes, "broken", map[string]string{"GATEWAY_CONFIG": path})
	if _, err := f.loadConfig(context.Background()); err != nil {
		t.Errorf("loadConfig of an absolute path = %v", err)
	}
}

// TestDatabaseThatIsAway: an environment that starts without its database answers 503. It
// serves as soon as the database is back.
func TestDatabaseThatIsAway(t *testing.T) {
	f, log := newTest(t, gateway.IntakeRoutes, minimal, nil)
	a := withStore(t, f)
	there, away := a.database.open, true
	opened := 0
	a.database.open = func(ctx context.Context) (store.Conn, error) {
		if opened++; away {
			return nil, core.Refuse(core.Unavailable, "the database cannot be reached")
		}
		return there(ctx)
	}
	now := time.Now()
	a.database.clock = func() time.Time { return now }
	if err := f.begin(context.Background()); err != nil {
		t.Fatalf("begin = %v, want the environment to come up", err)
	}
	if !strings.Contains(log.String(), "the next invocation tries again") {
		t.Errorf("the log says nothing of it: %s", log)
	}
	s := &server{f}
	for range 3 {
		if r := s.ask(t, post("/events/app/a", "{}")); r.StatusCode != 503 || r.Headers["Retry-After"] == "" {
			t.Errorf("%+v, want 503 and when to come back", r)
		}
	}
	if opened != 1 {
		t.Errorf("asked %d times within a moment, want once", opened)
	}
	away, now = false, now.Add(time.Second)
	if r := s.ask(t, post("/events/app/a", "{}")); r.StatusCode != 202 {
		t.Errorf("%+v, want the event accepted once the database is back", r)
	}
}

// schema is a connection to a database whose schema is at the given step.
type schema struct {
	store.Conn
	steps  int // number of finished steps
	closed bool
}

func (s *schema) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results, err := s.Conn.Batch(ctx, stmts...)
	if len(stmts) == 1 && strings.Contains(stmts[0].SQL, "schema_steps") && err == nil {
		results = []store.Result{{Rows: numbers(s.steps)}}
	}
	return results, err
}

func (s *schema) Close() error { s.closed = true; return nil }

func TestSchemas(t *testing.T) {
	f, _ := newTest(t, gateway.IntakeRoutes, minimal, nil)
	a := withStore(t, f)
	conn, err := a.database.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, want, err := store.New(conn, store.SQLite, time.Now).Schema(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	old := &schema{Conn: conn, steps: want - 3}
	a.database.open = func(context.Context) (store.Conn, error) { return old, nil }
	says := fmt.Sprintf("database schema is at step %d, this version needs %d: run `gateway migrate up`", want-3, want)
	if err := f.begin(context.Background()); err == nil || err.Error() != says {
		t.Errorf("begin = %v, want %q", err, says)
	}
	if r := (&server{f}).ask(t, post("/events/app/a", "{}")); r.StatusCode != 500 || strings.Contains(r.Body, "schema") {
		t.Errorf("%+v, want 500 without the reason", r)
	}
	if !old.closed {
		t.Error("the connection is left open")
	}
	old.steps = want + 1
	a.database.at = time.Time{}
	if err := f.begin(context.Background()); err != nil {
		t.Errorf("begin with a newer schema = %v, want none", err)
	}
}

// TestNothingIsMigrated: with an empty database, a function says that the schema is missing,
// and does not create it.
func TestNothingIsMigrated(t *testing.T) {
	f, _ := newTest(t, gateway.IntakeRoutes, minimal, nil)
	a, err := f.ready(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "empty.db"))
	if err != nil {
		t.Fatal(err)
	}
	a.database.open = func(context.Context) (store.Conn, error) { return conn, nil }
	if err := f.begin(context.Background()); err == nil || !strings.Contains(err.Error(), "schema is at step 0") {
		t.Errorf("begin = %v, want a refusal of step 0", err)
	}
}

// TestTermination: terminate stores alerts that were only counted, if one may be sent by then.
func TestTermination(t *testing.T) {
	yaml := minimal + "  hooks: {type: webhook, verify: github, secret: s}\nalerts: {type: generic, url: 'https://example.com/', on: [verification_failure]}\n"
	f, _ := newTest(t, gateway.IntakeRoutes, yaml, nil)
	f.terminate() // while the function is not assembled
	now := time.Now()
	f.clock = func() time.Time { return now }
	a := withStore(t, f)
	for i, want := range []int{1, 1, 2} {
		if i < 2 {
			(&server{f}).ask(t, post("/webhooks/hooks", "{}"))
		} else {
			now = now.Add(2 * time.Minute)
			f.terminate()
		}
		if n, err := a.Store.Depth(context.Background()); err != nil || n != want {
			t.Errorf("step %d: %d alerts, %v, want %d", i, n, err, want)
		}
	}
}

// TestPanics: a panic in a tick fails its invocation and does not end the environment.
func TestPanics(t *testing.T) {
	f, log := newTest(t, gateway.Deliveries, minimal, nil)
	withStore(t, f)
	tick := &ticking{f, func(context.Context, *assembly, invocation) (any, error) { panic("oops") }}
	if _, err := tick.Invoke(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Errorf("Invoke = %v, want the panic as an error", err)
	}
	if !strings.Contains(log.String(), "boot_test.go") {
		t.Errorf("no stack in the log: %s", log)
	}
	tick.tick = func(context.Context, *assembly, invocation) (any, error) { return nil, errors.New("no") }
	if _, err := tick.Invoke(context.Background(), nil); err == nil || err.Error() != "no" {
		t.Errorf("Invoke = %v, want the tick's error", err)
	}
}

// numbers returns n rows with the numbers from 1 to n.
func numbers(n int) (rows [][]any) {
	for i := range n {
		rows = append(rows, []any{int64(i + 1)})
	}
	return rows
}

// TestConfigurationsFromURLsGainNoPowers: a function with a configuration from a URL refuses
// the same fields as the program does, and names the field in its error.
func TestConfigurationsFromURLsGainNoPowers(t *testing.T) {
	text := minimal + "server: {allow_private_urls: true}\napi: {auth_token: s3cret-s3cret-s3cret-s3cret}\n"
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer there.Close()
	env := map[string]string{"GATEWAY_CONFIG": there.URL + "/gateway.yaml"}
	f, _ := newTest(t, gateway.IntakeRoutes, minimal, env)
	err := f.begin(t.Context())
	for _, want := range []string{"server.allow_private_urls: cannot be switched on", "api.auth_token: contains a secret"} {
		if err == nil || core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("begin = %v, want %q in it, and no secret", err, want)
		}
	}
	env["GATEWAY_CONFIG_ALLOW"] = "server.allow_private_urls,api.auth_token"
	f, _ = newTest(t, gateway.IntakeRoutes, minimal, env)
	if c, err := f.loadConfig(t.Context()); err != nil || !c.Server.AllowPrivateURLs {
		t.Errorf("loadConfig = %v, want what the environment allows", err)
	}
	text = "server: {}"
	f, _ = newTest(t, gateway.IntakeRoutes, minimal, env)
	if err := f.begin(t.Context()); err == nil || !strings.Contains(err.Error(), "database.driver") {
		t.Errorf("begin = %v, want the default database refused", err)
	}
}
