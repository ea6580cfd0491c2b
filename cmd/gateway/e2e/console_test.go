//go:build linux

package e2e

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/manual"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// consoleConfig has an entry of each kind that the pages of the console show: handlers that
// work and fail, a queue, a workflow that waits, a schedule.
const consoleConfig = `
console: true
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
api:
  auth_token: admin-admin-admin-admin-admin
  tokens:
    - {name: dashboard, role: read, token: read-read-read-read-read-read}
    - {name: on-call, role: operate, token: operate-operate-operate-operate}
delivery: {timeout: 5s, default_retry: {max: 1}}
sources:
  app: {type: event}
  calm: {type: event}
  fresh: {type: event}
  github: {type: webhook, verify: github, secret: a-secret-of-github-for-tests}
  depot: {type: event}
  nightly: {type: cron, schedule: "0 3 1 1 *", timezone: Europe/Berlin}
handlers:
  failing: {source: app, events: [order.created], url: "${RECEIVER}/failing", circuit_breaker: off}
  mended: {source: app, events: [order.created], url: "${RECEIVER}/mended", circuit_breaker: off, lines: {key: $.customer.id, on_dead: skip}}
  rare: {source: app, events: [order.rare], url: "${RECEIVER}/rare", circuit_breaker: off}
  sent:
    {source: app, events: [order.rare], url: "${RECEIVER}/sent?key=sesame-open", circuit_breaker: off, record: all, transform: '{"number": {{ $.n }}}', headers: {X-Api-Key: a-key-of-the-receiver}}
  fine: {source: app, url: "${RECEIVER}/fine", filter: $.n > 3}
  fresh-handler: {source: fresh, url: "${RECEIVER}/fresh"}
  ordered: {source: calm, events: [order.paid], url: "${RECEIVER}/ordered", circuit_breaker: off, lines: {key: $.customer}}
  paused: {source: calm, url: "${RECEIVER}/paused"}
  fragile: {source: calm, events: [send.fragile], url: "${RECEIVER}/fragile", circuit_breaker: off}
  breaking: {source: calm, events: [breaks], url: "${RECEIVER}/breaking"}
  ci: {source: github, url: "${RECEIVER}/ci"}
  report: {source: nightly, url: "${RECEIVER}/report"}
queues:
  mail: {source: app, events: [order.created], max_attempts: 3, api_key: mail-mail-mail-mail-mail}
workflows:
  fulfil:
    source: app
    events: [order.created]
    steps:
      - {name: reserve, type: http, url: "${RECEIVER}/reserve"}
      - {name: pause, type: wait, seconds: 3600}
  ship:
    source: depot
    events: [parcel.ready]
    steps:
      - {name: check, url: "${RECEIVER}/check", result_path: $.stock, catch: [{errors: [4xx], goto: reject}]}
      - {name: route, type: choice, default: prepare, choices: [{when: '$.total > 1000', goto: approve}]}
      - {name: approve, type: callback, url: "${RECEIVER}/approve", callback_timeout: 86400, result_path: $.approval}
      - name: prepare
        type: parallel
        result_path: $.prepared
        branches:
          - {name: label, url: "${RECEIVER}/label"}
          - {name: parcels, steps: [{name: pack, type: map, items_path: $.items, iterator: {name: box, url: "${RECEIVER}/box"}}, {name: weigh, url: "${RECEIVER}/weigh"}]}
      - {name: tell, url: "${RECEIVER}/tell", end: true}
      - {name: reject, type: fail, error: out-of-stock}
`

// TestConsole tells the stories of infra/test/browser in a browser. GATEWAY_TEST_PICTURES is a folder
// that gets a picture of each page. GATEWAY_TEST_STORIES are the names of the only stories to tell, with
// commas between them.
func TestConsole(t *testing.T) {
	t.Parallel()
	chromium, modules := browserOf(t)
	g, to := newConsole(t)
	base := "http://127.0.0.1" + fmt.Sprintf(":%d", g.port)
	given := map[string]any{
		"browser": chromium, "console": base + "/console", "api": base, "receiver": to.URL(), "pictures": os.Getenv("GATEWAY_TEST_PICTURES"),
		"tokens": map[string]string{"admin": "admin-admin-admin-admin-admin", "read": "read-read-read-read-read-read", "operate": "operate-operate-operate-operate"},
	}
	given["pid"], given["file"] = g.pid(), filepath.Join(g.dir, "gateway.yaml")
	given["link"] = strings.TrimSpace(g.run("console", "--print"))
	var chapters []string
	for _, topic := range manual.Topics() {
		chapters = append(chapters, topic.Name)
	}
	given["chapters"] = chapters
	db := g.ledger()
	sent := db.column(`SELECT id FROM jobs WHERE lane = 'handler/sent'`)
	db.close()
	given["curl"] = strings.TrimSuffix(g.run("inspect", sent[0], "--attempt", "1", "--curl"), "\n")
	if only := os.Getenv("GATEWAY_TEST_STORIES"); only != "" {
		stories := strings.Split(only, ",")
		given["stories"] = stories
		tellStories(t, modules, given, len(stories))
		return
	}
	tellStories(t, modules, given, 30)

	// Below a path of a proxy, which the gateway does not know.
	target, _ := url.Parse(base)
	proxy := httptest.NewServer(http.StripPrefix("/ops/events", httputil.NewSingleHostReverseProxy(target)))
	defer proxy.Close()
	given["console"], given["pictures"] = proxy.URL+"/ops/events/console", ""
	given["stories"] = []string{"sign in and out", "an address for each view"}
	tellStories(t, modules, given, 2)
	g.stop()
}

// browserOf returns the path of a browser, and the folder of the stories.
func browserOf(t *testing.T) (chromium, modules string) {
	t.Helper()
	chromium, err := findBrowser()
	need(t, "a browser", err)
	modules, err = filepath.Abs("../../../infra/test/browser")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "node_modules/playwright-core"))
	}
	need(t, "the driver of a browser (make deps)", err)
	return chromium, modules
}

// findBrowser returns the path of a Chromium.
func findBrowser() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no chromium-headless-shell")
}

// newConsole starts a gateway with thirty orders, of which some deliveries have failed.
func newConsole(t *testing.T) (*gateway, *receiver.Receiver) {
	r := receiver.New(t)
	var mended atomic.Bool
	r.On("/failing", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	r.On("/rare", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "I am a teapot")
		}
	})
	r.On("/sent", func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Reason", "no-such-customer")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"why":"unknown"}`)
	})
	r.On("/ordered", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusConflict)
		}
	})
	failsUntilMended(r, "printer", "/label", http.StatusInternalServerError, "the printer has no paper")
	failsUntilMended(r, "fragile", "/fragile", http.StatusServiceUnavailable, "")
	failsUntilMended(r, "breaking", "/breaking", http.StatusInternalServerError, "")
	r.On("/mended", func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !mended.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	g := newGateway(t, consoleConfig, r)
	g.start()
	token := []string{"Authorization", "Bearer admin-admin-admin-admin-admin", "Content-Type", "application/json"}
	for i := range 30 {
		customer := fmt.Sprintf("c-%d", i%7)
		if i == 11 {
			customer = "c-needle"
		}
		g.send("/events/app/order.created", fmt.Sprintf(`{"n":%d,"customer":{"id":%q,"name":"Ada <b>Lovelace</b>"}}`, i, customer), token...)
	}
	g.send("/events/app/order.rare", `{"n":1}`, token...)
	for range 3 {
		g.send("/events/calm/order.paid", `{"customer":"c-stop"}`, token...)
	}
	db := g.ledger()
	defer db.close()
	wait.For(t, 30*time.Second, "the deliveries have ended", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'dead'`) == 63 && db.count(`SELECT COUNT(*) FROM steps WHERE status = 'waiting'`) == 30
	})
	mended.Store(true)
	earlierMinutes(t, db.db)
	return g, r
}

// failsUntilMended answers requests to a path with a failure, until a story mends it by a request to
// /mend- and its name.
func failsUntilMended(r *receiver.Receiver, name, path string, status int, answer string) {
	var ok atomic.Bool
	r.On("/mend-"+name, func(int, http.ResponseWriter, *http.Request) { ok.Store(true) })
	r.On(path, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !ok.Load() {
			w.WriteHeader(status)
			fmt.Fprint(w, answer)
		}
	})
}

// A toldStory is a story as stories.mjs prints it.
type toldStory struct {
	Story, Problem string
	MS             int
	Figures        string   // the durations that it measured
	Calls          []string // paths of the API that pages asked for
}

// earlierMinutes stores counts of the day before this test, as an earlier process left them: a busy day
// with a bad quarter of an hour.
func earlierMinutes(t *testing.T, db *sql.DB) {
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do := func(sql string, args ...any) {
		if _, err := c.ExecContext(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	do("BEGIN IMMEDIATE")
	now := time.Now().UTC().Truncate(time.Minute)
	for ago := 1; ago < 20*60; ago++ {
		at, n := now.Add(-time.Duration(ago)*time.Minute).UnixMilli(), 20+int(15*math.Sin(float64(ago)/90))+ago%7
		failed, dead := 0, 0
		if ago > 20 && ago < 36 {
			failed, dead = n/2, n/8
		}
		do(`INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead) VALUES
			(?, 'source/app', 'earlier', ?, 0, 0, 0), (?, 'handler/fine', 'earlier', 0, ?, ?, ?)`, at, n, at, n-dead, failed, dead)
	}
	do("COMMIT")
}

// tellStories runs stories, and expects a number of them.
func tellStories(t *testing.T, dir string, given map[string]any, want int) (all []toldStory) {
	argument, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", "stories.mjs", string(argument))
	c.Dir = dir
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var story toldStory
		if err := json.Unmarshal(lines.Bytes(), &story); err != nil {
			t.Errorf("%s: %v", lines.Bytes(), err)
			continue
		}
		all = append(all, story)
		t.Run(story.Story, func(t *testing.T) {
			t.Logf("%d ms %s", story.MS, story.Figures)
			if story.Problem != "" {
				t.Error(story.Problem)
			}
		})
	}
	if err := c.Wait(); err != nil || len(all) != want {
		t.Errorf("%d stories, want %d; %v %s", len(all), want, err, &stderr)
	}
	return all
}
