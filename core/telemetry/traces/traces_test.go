package traces

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/otlp"
	"github.com/eventgateway/gateway/infra/test/ports"
)

// lines collects the log of a test.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}

// start makes an exporter for an endpoint. env holds further variables as name, value pairs.
func start(t *testing.T, endpoint string, env ...string) (*Exporter, *lines) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	log := &lines{}
	x, err := Start(t.Context(), Options{Version: "1.2.3", Clock: core.SystemClock, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(x, 0) })
	return x, log
}

// end closes an exporter, and waits at most this long.
func end(x *Exporter, in time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), in)
	defer cancel()
	return x.Close(ctx)
}

// exported closes an exporter and returns the spans that the collector got.
func exported(t *testing.T, x *Exporter, c *otlp.Collector) []otlp.Span {
	t.Helper()
	if err := end(x, 20*time.Second); err != nil {
		t.Fatalf("Close = %v", err)
	}
	return c.Spans()
}

func TestWanted(t *testing.T) {
	const plain, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		env  map[string]string
		want bool
		err  string
	}{
		{map[string]string{}, false, ""},
		{map[string]string{plain: "http://localhost:4318"}, true, ""},
		{map[string]string{own: "https://collector.example/v1/traces"}, true, ""},
		{map[string]string{plain: "http://localhost:4318", "OTEL_TRACES_EXPORTER": "OTLP"}, true, ""},
		{map[string]string{plain: "http://localhost:4318", "OTEL_SDK_DISABLED": "false"}, true, ""},
		{map[string]string{plain: "http://localhost:4318", "OTEL_SDK_DISABLED": "True"}, false, ""},
		{map[string]string{plain: "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{map[string]string{plain: "http://localhost:4318", "OTEL_TRACES_EXPORTER": "zipkin"}, false, "OTEL_TRACES_EXPORTER must be otlp or none; traces are off"},
		{map[string]string{plain: "localhost:4318"}, false, plain + " must be a URL such as http://localhost:4318; traces are off"},
		{map[string]string{plain: "http://:secret@"}, false, plain + " must be a URL such as http://localhost:4318; traces are off"},
		{map[string]string{plain: "http://localhost:4318", own: "http://x:secret@%zz"}, false, own + " must be a URL such as http://localhost:4318; traces are off"},
	} {
		got, err := Wanted(func(name string) string { return c.env[name] })
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("Wanted(%v) = %v, %q, want %v, %q", c.env, got, text, c.want, c.err)
		}
	}
}

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	another   = "00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-01" // which a small ratio leaves out
)

// TestSampling: the intake decides whether a trace is sampled, and all spans of the trace
// follow the decision.
func TestSampling(t *testing.T) {
	for _, c := range []struct {
		sampler, arg string
		kept         map[string]bool // by the sender's span, "" for none
	}{
		{"", "", map[string]bool{"": true, sampled: true, unsampled: false}},
		{"parentbased_always_on", "", map[string]bool{"": true, sampled: true, unsampled: false}},
		{"parentbased_always_off", "", map[string]bool{"": false, sampled: true, unsampled: false}},
		{"always_on", "", map[string]bool{"": true, sampled: true, unsampled: true}},
		{"always_off", "", map[string]bool{"": false, sampled: false, unsampled: false}},
		{"traceidratio", "0", map[string]bool{"": false, sampled: false}},
		{"traceidratio", "0.6", map[string]bool{sampled: true, unsampled: true, another: false}},
		{"parentbased_traceidratio", "0", map[string]bool{"": false, sampled: true, unsampled: false, another: true}},
		{"parentbased_traceidratio", "1", map[string]bool{"": true}},
	} {
		t.Run(c.sampler+c.arg, func(t *testing.T) {
			for sent, want := range c.kept {
				collector := otlp.New(t)
				x, _ := start(t, collector.URL, "OTEL_TRACES_SAMPLER", c.sampler, "OTEL_TRACES_SAMPLER_ARG", c.arg)
				parent, _ := core.ParseSpan(sent)
				begun := x.Begin(parent)
				e := core.Event{Source: "shop", Headers: map[string]string{"traceparent": begun.String()}}
				x.Observe(core.Accepted{Event: e, Parent: parent})
				x.Observe(core.Settled{Event: e, Job: core.Job{ID: "J", Lane: "handler/a"}})
				spans := len(exported(t, x, collector))
				if begun.Sampled() != want || spans != map[bool]int{true: 2}[want] {
					t.Errorf("sent in %q: begun %v and %d spans, want it kept: %v", sent, begun, spans, want)
				}
				if parent != (core.Span{}) && begun.Trace != parent.Trace || begun.ID == parent.ID {
					t.Errorf("sent in %q: begun %v, want a span of its own in the same trace", sent, begun)
				}
			}
		})
	}
}

// TestBeginIsRandom: each intake has its own span, and without a parent its own trace.
func TestBeginIsRandom(t *testing.T) {
	x, _ := start(t, "http://127.0.0.1:1")
	seen := map[core.Span]bool{}
	for range 1000 {
		s := x.Begin(core.Span{})
		seen[core.Span{Trace: s.Trace}] = true
		seen[core.Span{ID: s.ID}] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d different ids, want 2,000", len(seen))
	}
}

// TestUselessCollectors: a collector that fails costs one line in the log, and delays no
// caller.
func TestUselessCollectors(t *testing.T) {
	e := core.Event{ID: "E", Source: "shop", Headers: map[string]string{"traceparent": sampled}}
	tell := func(x *Exporter) {
		for range 5000 { // more than the queue holds
			x.Observe(core.Accepted{Event: e})
		}
	}
	t.Run("refuses", func(t *testing.T) {
		c := otlp.New(t)
		c.Answer(http.StatusForbidden)
		x, log := start(t, c.URL)
		for range 100 {
			x.Observe(core.Accepted{Event: e})
		}
		if err := end(x, 20*time.Second); err != nil {
			t.Errorf("Close = %v, want nil: it was all sent", err)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "spans_lost=100") || !strings.Contains(got, "403") {
			t.Errorf("log %q, want one line about 403", got)
		}
	})
	for name, spoil := range map[string]func(*otlp.Collector){
		"is overloaded": func(c *otlp.Collector) { c.Answer(http.StatusServiceUnavailable) },
		"hangs":         func(c *otlp.Collector) { c.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			c := otlp.New(t)
			spoil(c)
			x, log := start(t, c.URL)
			tell(x)
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "too slow") {
				t.Errorf("log %q, want one line that there is no room", got)
			}
			err := end(x, 50*time.Millisecond)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "4999 spans") {
				t.Errorf("Close = %v, want that the time was over, and all spans that no line counted", err)
			}
			if len(c.Spans()) != 0 {
				t.Errorf("%d spans were taken", len(c.Spans()))
			}
		})
	}
	t.Run("is away", func(t *testing.T) {
		x, log := start(t, "http://"+ports.Refusing(t))
		x.Observe(core.Accepted{Event: e})
		_ = end(x, 20*time.Second)
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "connection refused") {
			t.Errorf("log %q, want one line that nobody is there", got)
		}
	})
	t.Run("comes back", func(t *testing.T) {
		c := otlp.New(t)
		c.Hang()
		x, _ := start(t, c.URL, "OTEL_BSP_SCHEDULE_DELAY", "1")
		x.Observe(core.Accepted{Event: e})
		for end := time.Now().Add(20 * time.Second); c.Asked() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing was exported")
			}
		}
		c.Answer(http.StatusOK)
		c.Await(t, 20*time.Second, 1)
	})
}

// TestRoom: spans beyond the room are not admitted, and every one of them is counted as lost.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		trouble := &trouble{clock: core.SystemClock, log: slog.New(slog.NewTextHandler(log, nil))}
		s := &sender{Exporter: otlptrace.NewUnstarted(nowhere{}), trouble: trouble, room: 10}
		for i := range 30 {
			if got := s.admit(); got != (i < 10) {
				t.Errorf("span %d: room %v", i, got)
			}
		}
		_ = s.ExportSpans(t.Context(), tracetest.SpanStubs(make([]tracetest.SpanStub, 10)).Snapshots()) // fails
		for i := range 11 {
			if got := s.admit(); got != (i < 10) {
				t.Errorf("after an export, span %d: room %v", i, got)
			}
		}
		time.Sleep(pause)
		s.admit()
		if got := log.String(); !strings.Contains(got, "spans_lost=1\n") || !strings.Contains(got, "spans_lost=31\n") || strings.Count(got, "\n") != 2 {
			t.Errorf("reported %q, want 1 span at once and 31 after a minute", got)
		}
	})
}

// TestLostInTheLastMinute: Close reports the spans that were lost after the last log line, also
// if it is in time.
func TestLostInTheLastMinute(t *testing.T) {
	c := otlp.New(t)
	c.Answer(http.StatusForbidden)
	x, log := start(t, c.URL)
	e := core.Event{ID: "E", Source: "shop", Headers: map[string]string{"traceparent": sampled}}
	x.Observe(core.Accepted{Event: e})
	if err := x.provider.ForceFlush(t.Context()); err != nil || !strings.Contains(log.String(), "spans_lost=1\n") {
		t.Fatalf("ForceFlush = %v, log %q, want a line about the first span", err, log)
	}
	for range 7 {
		x.Observe(core.Accepted{Event: e})
	}
	if err := end(x, 20*time.Second); err == nil || !strings.Contains(err.Error(), "7 spans") {
		t.Errorf("Close = %v, want the 7 spans after the line", err)
	}
}

// TestOddReplies: an odd reply of the collector stops no span, and makes at most one short log
// line.
func TestOddReplies(t *testing.T) {
	for name, reply := range map[string]http.HandlerFunc{
		"null":         func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "null") },
		"HTML":         func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html><body>Sign in") },
		"an object":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
		"no content":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"not modified": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		"protobuf cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte{0x0a, 0xff, 0xff, 0xff, 0x7f, 0x08})
		},
		"spans refused": func(w http.ResponseWriter, _ *http.Request) { // a partial success of -1 spans, with a message that is not UTF-8
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte{0x0a, 0x0f, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x12, 0x02, 0xff, 0xfe})
		},
		"a status of 400": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, strings.Repeat("\x1b[31mno", 100_000))
		},
		"cut off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(reply)
			defer server.Close()
			x, log := start(t, server.URL)
			for range 3 {
				x.Observe(core.Accepted{Event: core.Event{ID: "E", Source: "shop", Headers: map[string]string{"traceparent": sampled}}})
			}
			_ = end(x, 20*time.Second)
			if got := log.String(); strings.Count(got, "\n") > 1 || len(got) > 2000 || strings.Contains(got, "\x1b") {
				t.Errorf("log %.3000q, want one short line at most", got)
			}
		})
	}
}

// TestClientPanics: a panic of the client is handled like any other failure. Its spans are
// lost, and the process goes on.
func TestClientPanics(t *testing.T) {
	log := &lines{}
	s := &sender{Exporter: otlptrace.NewUnstarted(cursed{}), trouble: &trouble{clock: core.SystemClock, log: slog.New(slog.NewTextHandler(log, nil))}, room: 10}
	if err := s.ExportSpans(t.Context(), tracetest.SpanStubs(make([]tracetest.SpanStub, 3)).Snapshots()); err != nil {
		t.Errorf("ExportSpans = %v, want none", err)
	}
	if got := log.String(); !strings.Contains(got, `error="panic: not thought of" spans_lost=3`) {
		t.Errorf("reported %q, want the panic and how many spans were lost", got)
	}
}

// cursed is a client that panics at the collector's reply.
type cursed struct{ otlptrace.Client }

func (cursed) UploadTraces(context.Context, []*wire.ResourceSpans) error { panic("not thought of") }

// nowhere is a client whose collector is down.
type nowhere struct{ otlptrace.Client }

func (nowhere) UploadTraces(context.Context, []*wire.ResourceSpans) error { return errors.New("away") }

// TestAfterTheEnd: after Close, a fact makes no span and no log line, and a second Close
// succeeds.
func TestAfterTheEnd(t *testing.T) {
	c := otlp.New(t)
	x, log := start(t, c.URL)
	exported(t, x, c)
	e := core.Event{Headers: map[string]string{"traceparent": x.Begin(core.Span{}).String()}}
	x.Observe(core.Accepted{Event: e})
	if err := end(x, time.Second); err != nil || c.Asked() != 0 || log.String() != "" {
		t.Errorf("Close again = %v, %d requests, log %q; want nothing", err, c.Asked(), log)
	}
}

// TestTrouble: failures are logged once a minute, with the number of lost spans, and not after
// the end.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		x := &trouble{clock: core.SystemClock, log: slog.New(slog.NewTextHandler(log, nil))}
		for range 130 {
			x.report(errors.New("away"), 2)
			time.Sleep(time.Second)
		}
		if lost := x.end(); lost != 18 {
			t.Errorf("end = %d, want the 18 spans that were lost since the last line", lost)
		}
		time.Sleep(time.Hour)
		x.report(errors.New("away"), 2)
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(got) != 3 || !strings.HasSuffix(got[0], "error=away spans_lost=2") || !strings.HasSuffix(got[2], "error=away spans_lost=120") {
			t.Errorf("reported %q, want three lines", got)
		}
	})
}

// TestSettingsAreNotLogged: the log names a wrong setting, without the values of headers.
func TestSettingsAreNotLogged(t *testing.T) {
	_, log := start(t, "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS", "authorization Bearer canary", "OTEL_TRACES_SAMPLER", "sometimes")
	if got := log.String(); !strings.Contains(got, "parse headers") || !strings.Contains(got, "sometimes") || strings.Contains(got, "canary") {
		t.Errorf("log %q, want what is wrong and no values of headers", got)
	}
}
