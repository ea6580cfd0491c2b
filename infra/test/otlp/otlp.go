// Package otlp is a collector of OpenTelemetry traces for tests: it reads OTLP over HTTP with
// the protocol's own messages. It knows nothing of the gateway, and can fail like a real
// collector.
package otlp

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Span is an exported span.
type Span struct {
	Trace, ID, Parent string // hexadecimal; Parent is empty for a root
	State             string // tracestate
	Name              string
	Kind              string            // "server", "client", ...
	Attributes        map[string]string // values as text
	Error             string            // message of a span whose status is error
	Began, Ended      time.Time
	Resource          map[string]string
}

// A Collector accepts exported spans. It is safe for concurrent use.
type Collector struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	mu     sync.Mutex
	status int
	hung   chan struct{} // closed when it stops hanging; nil if it does not hang
	asked  int
	header http.Header
	bytes  []byte
	spans  []Span
}

// New starts a collector that ends with the test.
func New(t testing.TB) *Collector {
	c := &Collector{status: http.StatusOK}
	s := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(func() { c.Answer(http.StatusOK); s.CloseClientConnections(); s.Close() })
	c.URL = s.URL
	return c
}

// Answer sets the status of later answers. The collector keeps spans only if it answers 200.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
	if c.hung != nil {
		close(c.hung)
		c.hung = nil
	}
}

// Hang makes it answer nothing until Answer is called.
func (c *Collector) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		c.hung = make(chan struct{})
	}
}

// Asked returns the number of requests.
func (c *Collector) Asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// Header returns the header of the last request.
func (c *Collector) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header
}

// Has reports whether the exported bytes contain a text.
func (c *Collector) Has(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(string(c.bytes), text)
}

// Spans returns the accepted spans, in the order of their arrival.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Await returns the spans once there are n, and fails the test after limit.
func (c *Collector) Await(t testing.TB, limit time.Duration, n int) []Span {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if spans := c.Spans(); len(spans) >= n {
			return spans
		} else if time.Now().After(end) {
			t.Fatalf("%d spans after %v, want %d: %+v", len(spans), limit, n, spans)
		}
	}
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	var traces wire.TracesData // has the same encoding as ExportTraceServiceRequest
	body, err := read(r)
	if err == nil {
		err = proto.Unmarshal(body, &traces)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	if hung := c.ask(r.Header, body); hung != nil {
		select {
		case <-hung:
		case <-r.Context().Done():
			return
		}
	}
	w.WriteHeader(c.take(&traces))
}

func read(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func (c *Collector) ask(h http.Header, body []byte) (hung chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	c.header = h
	c.bytes = append(c.bytes, body...)
	return c.hung
}

func (c *Collector) take(traces *wire.TracesData) (status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != http.StatusOK {
		return c.status
	}
	for _, of := range traces.ResourceSpans {
		resource := texts(of.GetResource().GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(s, resource))
			}
		}
	}
	return c.status
}

func spanOf(s *wire.Span, resource map[string]string) Span {
	made := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		State: s.TraceState, Name: s.Name, Kind: strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")),
		Attributes: texts(s.Attributes), Resource: resource,
		Began: time.Unix(0, int64(s.StartTimeUnixNano)).UTC(), Ended: time.Unix(0, int64(s.EndTimeUnixNano)).UTC(),
	}
	if s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR {
		made.Error = s.Status.Message
	}
	return made
}

// texts returns attributes with their values as text.
func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		default:
			all[a.Key] = strings.TrimSpace(a.GetValue().String()[strings.Index(a.GetValue().String(), ":")+1:])
		}
	}
	return all
}
