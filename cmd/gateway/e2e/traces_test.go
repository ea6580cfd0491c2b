//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/otlp"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// tracesConfig has a consumer of each kind, and a secret in each field that can hold one.
const tracesConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  public_url: http://127.0.0.1:${PORT}
  allow_private_urls: true
api: {auth_token: canary-token-of-24-bytes-or-more}
worker: {drain_timeout_secs: 2}
delivery: {timeout: 5s, signing_secret: canary-signing-secret-of-24-bytes, default_retry: {max: 2, backoff: fixed, interval: 50ms}}
sources: {app: {type: event}}
handlers:
  billing: {source: app, events: [order], url: "${RECEIVER}/billing?key=canary-in-url", headers: {x-api-key: canary-in-header}}
queues: {print: {source: app, events: [order]}}
workflows:
  fulfil:
    source: app
    events: [order]
    steps:
      - {name: pay, url: "${RECEIVER}/pay?key=canary-in-url", headers: {x-api-key: canary-in-header}, retry: {max: 2, backoff: fixed, interval: 50ms}}
      - {name: ask, type: callback, url: "${RECEIVER}/ask", callback_timeout: 600, end: true}
`

// senderTrace is the trace of the senders, and senderSpan their span.
const (
	senderTrace = "0af7651916cd43dd8448eb211c80319c"
	senderSpan  = "b7ad6b7169203331"
)

// traced starts a gateway that exports to a collector.
func traced(t *testing.T, c *otlp.Collector, r *receiver.Receiver, env ...string) *gateway {
	t.Helper()
	g := newGateway(t, tracesConfig, r)
	g.env = append(append(g.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_EXPORTER_OTLP_HEADERS=x-collector-key=abc"), env...)
	g.start()
	return g
}

// order sends an event in the sender's trace.
func (g *gateway) order() string {
	return g.send("/events/app/order", `{"card": "canary-in-payload"}`, "Authorization", "Bearer canary-token-of-24-bytes-or-more",
		"Traceparent", "00-"+senderTrace+"-"+senderSpan+"-01", "Tracestate", "vendor=1", "X-Secret", "canary-from-sender")
}

// byName groups spans by name, in the order of their beginnings.
func byName(spans []otlp.Span) map[string][]otlp.Span {
	all := map[string][]otlp.Span{}
	for _, s := range spans {
		all[s.Name] = append(all[s.Name], s)
	}
	for _, of := range all {
		slices.SortFunc(of, func(a, b otlp.Span) int { return a.Began.Compare(b.Began) })
	}
	return all
}

// told returns the spans in the header Traceparent of deliveries, in order.
func told(deliveries []receiver.Delivery) (spans []string) {
	for _, d := range deliveries {
		parts := strings.Split(d.Header.Get("Traceparent"), "-")
		if len(parts) != 4 || parts[1] != senderTrace || parts[3] != "01" || d.Header.Get("Tracestate") != "vendor=1" {
			spans = append(spans, fmt.Sprintf("%q in %q", d.Header.Get("Traceparent"), d.Header.Get("Tracestate")))
			continue
		}
		spans = append(spans, parts[2])
	}
	return spans
}

func ids(spans []otlp.Span) (all []string) {
	for _, s := range spans {
		all = append(all, s.ID)
	}
	return all
}

// TestTraces: all work for an event is in the trace of its sender. Every attempt has its own
// span, and its receiver gets the id of that span.
func TestTraces(t *testing.T) {
	t.Parallel()
	c, r := otlp.New(t), receiver.New(t)
	r.On("/billing", receiver.Failing(2))
	r.On("/pay", receiver.Failing(1))
	answers := &shop{checks: map[string]int{}, waiting: map[string]string{}}
	r.On("/ask", answers.ask)
	g := traced(t, c, r)
	event := g.order()

	r.Await(t, 10*time.Second, "/billing", 2) // the job is dead, and goes on with attempt 3
	wait.For(t, 10*time.Second, "job dead", func() bool {
		return strings.Contains(g.run("jobs", "list", "--status", "dead"), "billing")
	})
	g.run("jobs", "retry", r.At("/billing")[0].Job())
	r.Await(t, 10*time.Second, "/billing", 3)
	r.Await(t, 10*time.Second, "/ask", 1)
	wait.For(t, 10*time.Second, "run completed", func() bool {
		answers.answer()
		return len(g.runs("--status", "completed")) == 1
	})
	g.stop()

	spans := byName(c.Spans())
	intake, run := spans["receive app"], spans["run fulfil"]
	if len(intake) != 1 || len(run) != 1 {
		t.Fatalf("spans %+v, want one of the intake and one of the run", spans)
	}
	if intake[0].Parent != senderSpan || run[0].Parent != intake[0].ID || run[0].Error != "" {
		t.Errorf("intake %+v and run %+v, want the one in the sender's span %s and the other in its", intake[0], run[0], senderSpan)
	}
	for name, want := range map[string]struct {
		parent, path string
		failed       int // number of failed attempts
	}{
		"deliver billing": {intake[0].ID, "/billing", 2},
		"step fulfil/pay": {run[0].ID, "/pay", 1},
		"step fulfil/ask": {run[0].ID, "/ask", 0},
	} {
		heard := told(r.At(want.path))
		if !slices.Equal(ids(spans[name]), heard) || len(heard) != want.failed+1 {
			t.Errorf("%s: spans %v, want %d as heard: %v", name, ids(spans[name]), want.failed+1, heard)
		}
		for i, s := range spans[name] {
			if s.Parent != want.parent || (s.Error != "") != (i < want.failed) || i < want.failed && !strings.HasPrefix(s.Error, "status: 500") {
				t.Errorf("%s: attempt %d is %+v, want parent %s and that %d failed", name, i+1, s, want.parent, want.failed)
			}
		}
	}
	seen := map[string]bool{}
	for _, s := range c.Spans() {
		if s.Trace != senderTrace || s.Attributes["gateway.event"] != event || s.Resource["service.name"] != "gateway" || s.Ended.Before(s.Began) || seen[s.ID] {
			t.Errorf("span %+v, want one of its own in trace %s about event %s of service gateway", s, senderTrace, event)
		}
		seen[s.ID] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d spans, want 8: %+v", len(seen), c.Spans())
	}
	if c.Has("canary") {
		t.Error("a secret was exported")
	}
	if got := c.Header().Get("X-Collector-Key"); got != "abc" {
		t.Errorf("the collector got the key %q, want abc", got)
	}
}

// TestTracesBegin: an event without a valid trace begins a new trace. Consumers of queues and
// operators see the trace as well.
func TestTracesBegin(t *testing.T) {
	t.Parallel()
	c, r := otlp.New(t), receiver.New(t)
	g := traced(t, c, r)
	g.send("/events/app/order", "{}", "Authorization", "Bearer canary-token-of-24-bytes-or-more", "Traceparent", "00-1-2-03", "Tracestate", "vendor=1")
	heard := r.Await(t, 10*time.Second, "/billing", 1)[0].Header
	a, err := fetch(oneShot, request{method: http.MethodGet, url: g.url("/api/queues/print/messages"), headers: []string{"Authorization", "Bearer canary-token-of-24-bytes-or-more"}})
	if err != nil {
		t.Fatal(err)
	}
	g.stop()
	spans := byName(c.Spans())
	intake := spans["receive app"][0]
	if intake.Parent != "" || intake.Trace == senderTrace || intake.State != "" {
		t.Errorf("intake %+v, want a root without the sender's tracestate", intake)
	}
	if want := "00-" + intake.Trace + "-" + spans["deliver billing"][0].ID + "-01"; heard.Get("Traceparent") != want || heard.Get("Tracestate") != "" {
		t.Errorf("the handler heard of %q and %q, want %q alone", heard.Get("Traceparent"), heard.Get("Tracestate"), want)
	}
	if want := `"traceparent":"00-` + intake.Trace + "-" + intake.ID + `-01"`; !strings.Contains(a.body, want) {
		t.Errorf("the consumer received %s, want %s in it", a.body, want)
	}
}

// TestTracesOff: with traces turned off, the gateway passes on the sender's trace unchanged.
func TestTracesOff(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318"} {
		t.Run(off, func(t *testing.T) {
			t.Parallel()
			c, r := otlp.New(t), receiver.New(t)
			g := traced(t, c, r, off)
			g.order()
			heard := told(r.Await(t, 10*time.Second, "/billing", 1))
			g.stop()
			if heard[0] != senderSpan || c.Asked() != 0 {
				t.Errorf("the handler heard of %s and %d exports came, want the sender's %s and none", heard[0], c.Asked(), senderSpan)
			}
			if warned := strings.Contains(g.log.String(), "must be a URL such as"); warned != strings.HasSuffix(off, "localhost:4318") {
				t.Errorf("warned of the endpoint: %v", warned)
			}
		})
	}
}

// TestTracesAreNoTrouble: with an unusable collector, events are delivered, and the gateway
// stops normally. The log has the reason.
func TestTracesAreNoTrouble(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*otlp.Collector){
		"overloaded": func(c *otlp.Collector) { c.Answer(http.StatusServiceUnavailable) },
		"hanging":    func(c *otlp.Collector) { c.Hang() },
		"away":       func(c *otlp.Collector) { c.URL = "http://127.0.0.1:1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := otlp.New(t), receiver.New(t)
			spoil(c)
			g := traced(t, c, r)
			for range 20 {
				g.order()
			}
			r.Await(t, 20*time.Second, "/billing", 20)
			g.stop()
			if said := g.log.String(); !strings.Contains(said, "trouble with the export of traces") && !strings.Contains(said, "traces are lost") {
				t.Errorf("it said nothing of traces that are lost:\n%s", said)
			}
		})
	}
}

// TestTracesFromDotEnv: the settings in an .env file work like those of the environment.
func TestTracesFromDotEnv(t *testing.T) {
	t.Parallel()
	c, r := otlp.New(t), receiver.New(t)
	g := newGateway(t, plainConfig, r)
	g.env = append(g.env, "GATEWAY_ENV=prod")
	file := "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL + "\nOTEL_SERVICE_NAME=orders\n"
	if err := os.WriteFile(filepath.Join(g.dir, ".env.prod"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	g.start()
	g.send("/events/app/order", "{}")
	r.Await(t, 10*time.Second, "/ok", 1)
	g.stop()
	spans := c.Spans()
	if len(spans) != 2 || spans[0].Resource["service.name"] != "orders" {
		t.Errorf("spans %+v, want two of service orders", spans)
	}
	if strings.Contains(g.log.String(), "OTEL_") {
		t.Errorf("it warned of variables that it used:\n%s", g.log)
	}
}
