package infra_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// series are the metrics of a gateway: by name and label, the seen values. Labels for
// configured names have the values "mine" and "other".
type series map[string]map[string][]string

// configured are labels with values of the user.
var configured = []string{"source", "handler", "queue", "workflow", "step", "target", "version", "revision", "goversion"}

var (
	sample = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{([^}]*(?:\{[^}]*\}[^}]*)*)\})? \S+$`)
	label  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// one is a configuration with one consumer of each kind.
const one = `
sources: {mine: {type: event}}
handlers: {mine: {source: mine, url: "https://example.com"}}
queues: {mine: {source: mine}}
alerts: {url: "https://example.com", on: [dlq], type: slack}
workflows: {mine: {source: mine, steps: [{name: mine, url: "https://example.com"}]}}
`

// exposed returns the metrics of a gateway with this configuration.
func exposed(t *testing.T) series {
	t.Helper()
	c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(one)}}, Path: "gateway.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(c, gateway.Deps{
		Store: empty(t), Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler), SoleTaker: true,
		Metrics: metrics.New(metrics.Options{Names: gateway.Names(c)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	all := series{}
	for _, line := range sample.FindAllStringSubmatch(w.Body.String(), -1) {
		all.add(line[1], label.FindAllStringSubmatch(line[2], -1))
	}
	if w.Code != 200 || len(all) < 50 {
		t.Fatalf("a gateway exposes %d series: %d %s", len(all), w.Code, w.Body)
	}
	return all
}

// empty returns an empty store.
func empty(t *testing.T) core.Store {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s series) add(name string, labels [][]string) {
	if s[name] == nil {
		s[name] = map[string][]string{"job": nil, "instance": nil} // added by Prometheus
	}
	for _, l := range labels {
		s[name][l[1]] = append(s[name][l[1]], l[2])
	}
}

var (
	variable = regexp.MustCompile(`"\$\w+"|\$__\w+`)
	selector = regexp.MustCompile(`\b((?:gateway|go|process)_\w+)(?:\{([^}]*(?:"[^"]*"[^}]*)*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring) \(([^)]*)\)`)
)

// faults returns the mistakes in a query: metrics and labels that do not exist.
func (s series) faults(query string) (all []string) {
	query = variable.ReplaceAllString(query, `""`)
	known := map[string]bool{"le": true}
	for _, sel := range selector.FindAllStringSubmatch(query, -1) {
		labels, ok := s[sel[1]]
		if !ok {
			all = append(all, fmt.Sprintf("there is no metric %s", sel[1]))
			continue
		}
		for name := range labels {
			known[name] = true
		}
		all = append(all, s.mismatches(sel[1], sel[2])...)
	}
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		for name := range strings.SplitSeq(g[1], ",") {
			if !known[strings.TrimSpace(name)] {
				all = append(all, fmt.Sprintf("no metric has a label %q", name))
			}
		}
	}
	return all
}

// mismatches checks label matchers against the labels of a metric, and against their values if
// the program fixes them.
func (s series) mismatches(metric, matchers string) (all []string) {
	for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
		values, ok := s[metric][m[1]]
		if !ok {
			all = append(all, fmt.Sprintf("%s has no label %q", metric, m[1]))
			continue
		}
		if len(values) == 0 || m[3] == "" || slices.Contains(configured, m[1]) {
			continue
		}
		for value := range strings.SplitSeq(m[3], "|") {
			if !slices.Contains(values, value) {
				all = append(all, fmt.Sprintf("%s never has %s=%q", metric, m[1], value))
			}
		}
	}
	return all
}

// check reports the mistakes in a query.
func (s series) check(t *testing.T, query string) {
	t.Helper()
	for _, fault := range s.faults(query) {
		t.Errorf("%s, in %s", fault, query)
	}
}

// TestFaults: faults finds each kind of mistake.
func TestFaults(t *testing.T) {
	all := exposed(t)
	for query, want := range map[string]string{
		`sum by (job, source) (rate(gateway_events_received_total{job="$job",result="failed"}[5m]))`: "",
		`gateway_http_requests_total{route!="/health",status=~"503|429"}`:                            "",
		`histogram_quantile(0.9, sum by (le) (rate(gateway_store_duration_seconds_bucket[5m])))`:     "",
		`go_goroutines / process_open_fds`:                                                           "",
		`gateway_event_received_total`:                                                               "there is no metric gateway_event_received_total",
		`gateway_events_received_total{event_type="x"}`:                                              `gateway_events_received_total has no label "event_type"`,
		`gateway_events_received_total{result="broken"}`:                                             `gateway_events_received_total never has result="broken"`,
		`gateway_deliveries_total{result=~"completed|done"}`:                                         `gateway_deliveries_total never has result="done"`,
		`gateway_http_requests_total{route="/helth"}`:                                                `gateway_http_requests_total never has route="/helth"`,
		`sum by (source) (gateway_deliveries_total)`:                                                 `no metric has a label "source"`,
	} {
		if got := strings.Join(all.faults(query), "; "); got != want {
			t.Errorf("faults(%s) = %q, want %q", query, got, want)
		}
	}
}
