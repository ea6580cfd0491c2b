package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
)

const measured = `
server: {max_body_size: 1024}
api: {auth_token: an-auth-token-of-24-bytes, metrics_auth_token: a-metrics-token-of-24-bytes}
sources: {shop: {type: event}, hooks: {type: webhook}, topic: {type: sns, skip_verify: true}, strict: {type: webhook, verify: github, secret: a-secret-of-24-bytes}}
handlers: {billing: {source: shop, url: 'https://handler.example/'}}
queues: {work: {source: hooks}, locked: {source: hooks, api_key: a-queue-key-of-24-bytes}}
workflows: {fulfil: {source: shop, steps: [{name: reserve, url: 'https://handler.example/'}]}}
alerts: [{url: 'https://chat.example/', type: slack, on: [dlq]}]`

// scrape returns the value of each series of /metrics, read with the token.
func scrape(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Authorization", "Bearer a-metrics-token-of-24-bytes")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("GET /metrics = %d %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") {
			series[line[:i]] = line[i+1:]
		}
	}
	return series
}

func TestMetricsHaveATokenOfTheirOwn(t *testing.T) {
	h := newGateway(t, load(t, measured), openStore(t, filepath.Join(t.TempDir(), "gateway.db"))).Handler()
	for token, want := range map[string]int{
		"": 401, "an-auth-token-of-24-bytes": 401, "a-queue-key-of-24-bytes": 401, "a-metrics-token-of-24-bytes": 200,
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || want == 401 && w.Body.String() != "Invalid token" {
			t.Errorf("GET /metrics with token %q = %d %.40s, want %d", token, w.Code, w.Body, want)
		}
	}
	open := strings.Replace(measured, ", metrics_auth_token: a-metrics-token-of-24-bytes", "", 1)
	h = newGateway(t, load(t, open), openStore(t, filepath.Join(t.TempDir(), "gateway.db"))).Handler()
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil)); w.Code != 200 {
		t.Errorf("GET /metrics without a token to have = %d, want 200", w.Code)
	}
}

// TestWhatAGatewayMeasures: /metrics has facts, requests, calls of the store, and the state
// of the lanes.
func TestWhatAGatewayMeasures(t *testing.T) {
	receiver, got := receiver(t, 500, 200)
	c := load(t, `
server: {allow_private_urls: true}
api: {metrics_auth_token: a-metrics-token-of-24-bytes}
delivery: {default_retry: {interval: 10ms}}
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: '`+receiver+`'}}
queues: {work: {source: shop}}`)
	g := newGateway(t, c, openStore(t, filepath.Join(t.TempDir(), "gateway.db")))
	base, stop := serve(t, g)
	if resp := post(t, base+"/events/shop/order.created", "{}"); resp.StatusCode != 202 {
		t.Fatalf("POST = %s, want 202", resp.Status)
	}
	next(t, got)
	next(t, got)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	series := scrape(t, g.Handler())
	for name, want := range map[string]string{
		`events_received_total{result="accepted",source="shop"}`:                                "1",
		`intake_duration_seconds_count{source="shop"}`:                                          "1",
		`jobs_created_total{kind="handler"}`:                                                    "1",
		`jobs_created_total{kind="queue"}`:                                                      "1",
		`deliveries_total{handler="billing",result="retryable"}`:                                "1",
		`deliveries_total{handler="billing",result="completed"}`:                                "1",
		`delivery_lag_seconds_count{handler="billing"}`:                                         "1",
		`http_requests_total{method="POST",route="/events/{source}/{event_type}",status="202"}`: "1",
		`queue_depth{queue="work"}`:                                                             "1",
		`jobs{kind="queue",status="available"}`:                                                 "1",
		`inflight_deliveries`:                                                                   "0",
	} {
		if series["gateway_"+name] != want {
			t.Errorf("%s = %q, want %s", name, series["gateway_"+name], want)
		}
	}
	const count = "gateway_store_duration_seconds_count"
	if a, b := series[count+`{op="accept"}`], series[count+`{op="accept_and_take"}`]; a+b != "01" && a+b != "10" {
		t.Errorf("%s = %q for accept and %q for accept_and_take, want one call", count, a, b)
	}
}

// TestScrapesOutliveTheDatabase: if the store fails, a scrape leaves out the series from the
// store, and counts the error.
func TestScrapesOutliveTheDatabase(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	h := newGateway(t, load(t, measured), s).Handler()
	if series := scrape(t, h); series[`gateway_queue_depth{queue="work"}`] != "0" {
		t.Errorf("queue_depth = %q, want 0", series[`gateway_queue_depth{queue="work"}`])
	}
	s.Close()
	for try := 0; ; try++ { // the last answer is fresh for a second
		series := scrape(t, h)
		_, told := series[`gateway_queue_depth{queue="work"}`]
		if failed := series[`gateway_store_errors_total{op="tallies"}`]; !told && failed != "0" && failed != "" {
			return
		}
		if try == 1000 {
			t.Fatalf("queue_depth is told: %v; store_errors_total of tallies: %q", told, series[`gateway_store_errors_total{op="tallies"}`])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// An instant store accepts every event at once and stores nothing.
type instant struct{ core.Store }

func (instant) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// TestNobodyOutsideMakesSeries: for any requests, the labels of series are configured names
// only. No text of a request is in them.
func TestNobodyOutsideMakesSeries(t *testing.T) {
	requests := 100_000
	if testing.Short() {
		requests = 10_000
	}
	store := instant{openStore(t, filepath.Join(t.TempDir(), "gateway.db"))}
	h := newGateway(t, load(t, measured), store).Handler()
	before := scrape(t, h)
	if len(before) > 2100 {
		t.Errorf("%d series, want 2,100 at most", len(before))
	}
	seen := map[int]int{}
	random := rand.New(rand.NewPCG(1, 2))
	routes := web.Routes(h)
	for i := range requests {
		w, r := httptest.NewRecorder(), odd(random, routes)
		if i%1000 == 0 { // few random ones are accepted, and fewer with each new route
			r = httptest.NewRequest("POST", "/events/shop/order.created", strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer an-auth-token-of-24-bytes")
		}
		h.ServeHTTP(w, r)
		seen[w.Code]++
	}
	after := scrape(t, h)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))); diff != "" {
		t.Errorf("series (-before +after %d requests):\n%s", requests, diff)
	}
	total := 0
	for name, value := range after {
		if strings.Contains(name, "s3cret") {
			t.Errorf("%s is told", name)
		}
		if strings.HasPrefix(name, "gateway_http_requests_total") && !strings.Contains(name, `route="/metrics",status="200"`) {
			n := 0
			fmt.Sscan(value, &n)
			total += n
		}
	}
	for _, status := range []int{200, 202, 400, 401, 404, 405, 413, 415} {
		if seen[status] == 0 {
			t.Errorf("statuses %v, want some %d as well", seen, status)
		}
	}
	if total != requests {
		t.Errorf("%d requests are counted, want %d", total, requests)
	}
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// odd returns a random request. Three of four have a path that exists.
func odd(random *rand.Rand, routes []web.Route) *http.Request {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	name := func() string { return fmt.Sprintf("s3cret-%d", random.Uint64()) }
	segment := func() string {
		return one(name(), name(), "shop", "hooks", "topic", "strict", "work", "locked", "fulfil", "billing", "a%2Fb", "%00", "_alerts", "other")
	}
	method := one("GET", "POST", "DELETE", "PUT", "HEAD", "PATCH", "OPTIONS", "BREW", name())
	path := one("/", "/"+segment(), "/events/"+segment()+"/"+segment()+"/"+segment(), "/callback/")
	if random.IntN(4) > 0 {
		route := routes[random.IntN(len(routes))]
		path = placeholder.ReplaceAllStringFunc(route.Pattern, func(string) string { return segment() })
		if random.IntN(2) == 0 {
			method = route.Method
		}
	}
	if random.IntN(4) == 0 {
		path += "?" + name() + "=" + name()
	}
	body := one(`{}`, `{"type":"`+name()+`"}`, "", "\xff", name(), strings.Repeat("x", 2<<10))
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+one(name(), "an-auth-token-of-24-bytes", "an-auth-token-of-24-bytes", "a-queue-key-of-24-bytes"))
	r.Header.Set("X-GitHub-Event", name())
	r.Header.Set("User-Agent", name())
	r.Header.Set(name(), name())
	r.Host = name()
	if random.IntN(20) == 0 {
		r.Header.Set("Content-Encoding", name())
	}
	return r
}

// TestNames: each name that a run may use for a step has a series.
func TestNames(t *testing.T) {
	c := load(t, `
sources: {shop: {type: event}, hooks: {type: webhook}, nightly: {type: cron, schedule: '0 1 * * *'}}
handlers: {billing: {source: shop, url: 'https://handler.example/'}}
queues: {work: {source: hooks}}
alerts: [{url: 'https://chat.example/', type: slack, on: [dlq]}, {url: 'https://other.example/', on: [dlq]}]
workflows:
  fulfil:
    source: shop
    steps:
      - {name: pick, type: choice, choices: [{when: $.a exists, goto: both}], default: both}
      - {name: both, type: parallel, branches: [{name: left, url: 'https://a.example/'}, {name: right, steps: [{name: inner, url: 'https://a.example/'}]}]}
      - {name: each, type: map, items_path: $.items, url: 'https://a.example/'}
      - {name: every, type: map, items_path: $.items, iterator: {name: pack, url: 'https://a.example/'}}
      - {name: nameless, type: map, items_path: $.items, iterator: {url: 'https://a.example/'}}`)
	got := gateway.Names(c)
	want := telemetry.Names{
		Sources: []string{"hooks", "nightly", "shop"}, Handlers: []string{"billing"}, Queues: []string{"work"},
		Schedules: []string{"nightly"},
		Workflows: map[string][]string{"fulfil": {"pick", "both", "left", "inner", "each", "item", "every", "pack", "nameless", "item"}},
		Alerts:    map[core.Lane]string{},
	}
	kinds := slices.Sorted(maps.Values(got.Alerts))
	got.Alerts = want.Alerts
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(kinds, []string{"generic", "slack"}) {
		t.Errorf("places of types %v, names (-want +got):\n%s", kinds, diff)
	}
}

func (i instant) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := i.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}
