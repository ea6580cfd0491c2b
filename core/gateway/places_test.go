package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	record "github.com/eventgateway/gateway/core/wire"
)

const (
	placesHead = `
server: {allow_private_urls: true}
delivery: {default_retry: {max: 1}}
sources: {github: {type: webhook, verify: github, secret: a-secret-of-24-bytes-or-more}}
alerts:
`
	quiet   = `  - {url: "http://localhost:1/quiet", on: [dlq]}` + "\n"
	refuses = `  - {url: "RECEIVER/T000/s3cret", type: slack, on: [verification_failure]}` + "\n"
)

// placed is one database, and the gateways that have worked on it.
type placed struct {
	t        *testing.T
	store    core.Store
	receiver string
	log      bytes.Buffer
}

func newPlaced(t *testing.T) *placed {
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	t.Cleanup(r.Close)
	return &placed{t: t, store: openStore(t, filepath.Join(t.TempDir(), "gateway.db")), receiver: r.URL}
}

// gateway returns a gateway with these alerts.
func (p *placed) gateway(alerts string) *gateway.Gateway {
	p.t.Helper()
	c := load(p.t, placesHead+strings.ReplaceAll(alerts, "RECEIVER", p.receiver))
	g, err := gateway.New(c, gateway.Deps{
		Store: p.store, Clock: core.SystemClock, Log: slog.New(slog.NewJSONHandler(&p.log, nil)), Version: "test", SoleTaker: true,
		Metrics: metrics.New(metrics.Options{Names: gateway.Names(c)}),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return g
}

// The API, metrics and the log name the jobs of an alert by the number of its place in the
// configuration, with the place's host. The API finds them by that name.
func TestAlertsAreNamedAfterTheirPlace(t *testing.T) {
	p := newPlaced(t)
	g := p.gateway(quiet + refuses)
	if got := httpAsk(g.Handler(), "POST /webhooks/github", "{}"); got.Code != http.StatusUnauthorized {
		t.Fatalf("forged webhook: %d, want 401", got.Code)
	}
	if r, err := g.Worker.Tick(context.Background(), core.Budget{}); err != nil || r.Dead != 1 {
		t.Fatalf("Tick = %+v, %v; want one attempt", r, err)
	}
	job := p.dead(g, "alert/2", "alert/2", "127.0.0.1")
	if !strings.Contains(p.log.String(), `"lane":"alert/2","host":"127.0.0.1"`) {
		t.Errorf("the log names no place:\n%s", p.log.String())
	}
	scraped := httpAsk(g.Handler(), "GET /metrics", "").Body.String()
	for _, line := range []string{
		`gateway_dlq_total{target="alert/2"} 1`, `gateway_dlq_total{target="alert/1"} 0`, `gateway_alerts_total{result="dead",type="slack"} 1`,
		`gateway_oldest_due_seconds{target="alert/2"} 0`,
	} {
		if !strings.Contains(scraped, line) {
			t.Errorf("metrics lack %s:\n%s", line, grepped(scraped, "alert"))
		}
	}

	// In another order, the job has another name. Without its place, it has the stored name.
	g = p.gateway(refuses + quiet)
	if again := p.dead(g, "alert/1", "alert/1", "127.0.0.1"); again != job {
		t.Errorf("alert/1 lists job %s, want %s, whose place is the first now", again, job)
	}
	if got := httpAsk(g.Handler(), "GET /api/jobs?handler=alert/3", ""); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), `no place for alerts \"alert/3\" is configured`) {
		t.Errorf("jobs of alert/3: %d %s, want 404", got.Code, got.Body)
	}
	retried := told[record.Retried](t, g.Handler(), "POST /api/jobs/retry", `{"handler": "alert/1"}`)
	if retried.Retried != 1 {
		t.Errorf("retried %d jobs of alert/1, want one", retried.Retried)
	}
	if _, err := g.Worker.Tick(context.Background(), core.Budget{}); err != nil {
		t.Fatal(err)
	}
	stored, err := p.store.Job(t.Context(), job)
	if err != nil || len(strings.TrimPrefix(string(stored.Lane), "alert/")) != 12 || stored.Host != "" {
		t.Errorf("stored is %+v, %v; want it in the lane of the hash of the URL", stored, err)
	}
	p.dead(p.gateway(quiet), string(stored.Lane), string(stored.Lane), "")
}

// dead checks that a place has one job, and that the job is dead and has this name and host
// everywhere. It returns the job's id.
func (p *placed) dead(g *gateway.Gateway, filter, name, host string) core.ID {
	p.t.Helper()
	h := g.Handler()
	page := told[record.Jobs](p.t, h, "GET /api/jobs?status=dead&handler="+filter, "")
	if len(page.Jobs) != 1 {
		p.t.Fatalf("%d dead jobs of %s, want one", len(page.Jobs), filter)
	}
	job := page.Jobs[0]
	shown := []record.Job{job, told[record.Job](p.t, h, "GET /api/jobs/"+string(job.ID), "")}
	shown = append(shown, told[record.EventJobs](p.t, h, "GET /api/events/"+string(job.EventID)+"/jobs", "").Jobs...)
	shown = append(shown, told[record.Event](p.t, h, "GET /api/events/"+string(job.EventID), "").Jobs...)
	if len(shown) != 4 {
		p.t.Fatalf("%d records of the job, want 4", len(shown))
	}
	for i, j := range shown {
		if j.ID != job.ID || j.Handler != name || j.Host != host {
			p.t.Errorf("record %d: handler %q, host %q; want %q, %q", i, j.Handler, j.Host, name, host)
		}
	}
	at := -1
	stats := told[record.Stats](p.t, h, "GET /api/stats", "")
	for i, a := range stats.Alerts {
		if a.Dead > 0 {
			at = i
			if "alert/"+a.Name != name || a.Host != host {
				p.t.Errorf("stats of the place: name %q, host %q; want %q, %q", a.Name, a.Host, name, host)
			}
		}
	}
	if (at < 0) != (host == "") {
		p.t.Errorf("stats of alerts: %+v", stats.Alerts)
	}
	return job.ID
}

// grepped returns the lines of a text that contain a word.
func grepped(text, word string) (lines string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			lines += line
		}
	}
	return lines
}
