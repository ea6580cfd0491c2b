//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A gateway is a folder with a configuration and a database, and the process that serves it,
// if one runs.
type gateway struct {
	t     testing.TB
	dir   string
	port  int
	env   []string
	life  int    // number of starts
	store *store // nil for a file in the folder
	*process
}

// plainConfig has one open source and one handler, for tests that need no more.
const plainConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources: {app: {type: event}}
handlers: {ok: {source: app, url: "${RECEIVER}/ok"}}
`

// newGateway prepares a gateway and does not start it. The configuration may refer to ${PORT},
// and to ${RECEIVER} if to is not nil.
func newGateway(t testing.TB, config string, to *receiver.Receiver) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: t.TempDir(), port: ports.ForServer(t)}
	g.env = []string{"PORT=" + strconv.Itoa(g.port)}
	if to != nil {
		g.env = append(g.env, "RECEIVER="+to.URL())
	}
	g.configure(config)
	return g
}

// newGatewayOn prepares a gateway on a database that may be shared. A nil store means a file
// in its folder.
func newGatewayOn(t testing.TB, st *store, config string, to *receiver.Receiver) *gateway {
	t.Helper()
	if st == nil {
		return newGateway(t, config, to)
	}
	g := newGateway(t, config+st.yaml, to)
	g.store = st
	g.env = append(g.env, st.env...)
	return g
}

// ledger opens the gateway's database.
func (g *gateway) ledger() *ledger {
	g.t.Helper()
	if g.store != nil {
		return g.store.open(g.t)
	}
	return openLedger(g.t, g.database())
}

func (g *gateway) configure(config string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "gateway.yaml"), []byte(config), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateway) command(args ...string) command {
	return command{args: args, dir: g.dir, env: slices.Clone(g.env)}
}

// launch starts the process and returns at once. The configuration may refer to ${LIFE}, the
// number of the start.
func (g *gateway) launch() {
	g.t.Helper()
	g.life++
	c := g.command("start")
	c.env = append(c.env, "LIFE="+strconv.Itoa(g.life))
	g.process = spawn(g.t, c)
}

// start starts the process and returns the time until it answered /health.
func (g *gateway) start() time.Duration {
	g.t.Helper()
	began := time.Now()
	g.launch()
	g.awaitReady()
	return time.Since(began)
}

// awaitReady waits until a launched gateway answers /health.
func (g *gateway) awaitReady() {
	g.t.Helper()
	wait.For(g.t, 30*time.Second, "gateway ready", func() bool {
		if g.ended() {
			g.t.Fatalf("gateway ended before it was ready:\n%s", g.log)
		}
		return g.healthy()
	})
}

func (g *gateway) url(path string) string {
	return "http://127.0.0.1:" + strconv.Itoa(g.port) + path
}

func (g *gateway) healthy() bool {
	status, _, err := g.health()
	return err == nil && status == http.StatusOK
}

// health asks /health on a new connection: a connection to an earlier process would fail.
func (g *gateway) health() (status int, body string, err error) {
	a, err := fetch(oneShot, request{method: http.MethodGet, url: g.url("/health")})
	return a.status, a.body, err
}

// awaitIdle waits until every job is finished, or until the limit; the checks of the database
// follow. A job that was delivered before a kill is delivered again, and the last outcomes are
// not stored yet.
func (g *gateway) awaitIdle(limit time.Duration) {
	wait.Until(limit, func() bool {
		_, body, err := g.health()
		return err == nil && strings.Contains(body, `"queue_depth":0}`)
	})
}

// run runs a command in the gateway's folder, and requires that it succeeds.
func (g *gateway) run(args ...string) string {
	g.t.Helper()
	r := run(g.t, g.command(args...))
	if r.code != 0 {
		g.t.Fatalf("gateway %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// runJSON runs a command with --json and decodes its output.
func (g *gateway) runJSON(into any, args ...string) {
	g.t.Helper()
	out := g.run(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		g.t.Fatalf("gateway %s --json: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// database returns the path of the database file, in the folder that the configuration names.
func (g *gateway) database() string {
	if moved := filepath.Join(g.dir, "data", "gateway.db"); exists(moved) {
		return moved
	}
	return filepath.Join(g.dir, "gateway.db")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// send posts an event, requires 202, and returns the event's id.
func (g *gateway) send(path, body string, headers ...string) string {
	g.t.Helper()
	a := g.post(path, body, headers...)
	if a.status != http.StatusAccepted || a.eventID() == "" {
		g.t.Fatalf("POST %s = %d %q, event id %q, want 202 and an id", path, a.status, a.body, a.eventID())
	}
	return a.eventID()
}

// post posts a body. The headers are name, value, name, value.
func (g *gateway) post(path, body string, headers ...string) answer {
	g.t.Helper()
	a, err := fetch(pooled, request{method: http.MethodPost, url: g.url(path), body: body, headers: headers})
	if err != nil {
		g.t.Fatalf("POST %s: %v", path, err)
	}
	return a
}

// A request and its answer, with the parts that the tests need.
type request struct {
	method, url, body string
	headers           []string
}

type answer struct {
	status int
	body   string
	header http.Header
}

func (a answer) eventID() string { return a.header.Get("X-Gateway-Event-Id") }

var (
	pooled  = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	oneShot = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
)

func fetch(c *http.Client, r request) (answer, error) {
	return fetchUntil(context.Background(), c, r)
}

// fetchUntil closes the connection when ctx ends.
func fetchUntil(ctx context.Context, c *http.Client, r request) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(r.headers); i += 2 {
		req.Header.Set(r.headers[i], r.headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, strings.TrimSpace(string(body)), resp.Header}, err
}

// A job as "jobs list --json" shows it.
type job struct {
	ID          string  `json:"id"`
	EventID     string  `json:"event_id"`
	Handler     string  `json:"handler"`
	Status      string  `json:"status"`
	Attempt     int     `json:"attempt"`
	MaxAttempts int     `json:"max_attempts"`
	LastError   *string `json:"last_error"`
}

// jobs lists up to 1000 jobs, newest first.
func (g *gateway) jobs(flags ...string) []job {
	g.t.Helper()
	var list struct {
		Jobs []job `json:"jobs"`
	}
	g.runJSON(&list, append([]string{"jobs", "list", "--limit", "1000"}, flags...)...)
	return list.Jobs
}

// events lists the ids of up to 1000 events, newest first.
func (g *gateway) events() []string {
	g.t.Helper()
	var list struct {
		Events []struct {
			ID string `json:"id"`
		} `json:"events"`
	}
	g.runJSON(&list, "events", "list", "--limit", "1000")
	ids := make([]string, len(list.Events))
	for i, e := range list.Events {
		ids[i] = e.ID
	}
	return ids
}
