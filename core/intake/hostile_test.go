package intake

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/expr"
)

// Bounds of a request: server.max_body_size, and the size of headers that net/http accepts.
const (
	hostileBody   = 1 << 20
	hostileHeader = 16 << 10
)

// A hostile is a request that costs as much as a request of its size can, for any size.
type hostile struct {
	name string
	make func(size int) Request
}

// times repeats a text with its number, up to a size in bytes.
func times(size int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func hostiles() []hostile {
	const form = "application/x-www-form-urlencoded"
	body := func(contentType string, body func(size int) string) func(int) Request {
		return func(size int) Request { return request(Webhook, "plain", body(size), "Content-Type", contentType) }
	}
	header := func(add func(h Header, size int)) func(int) Request {
		return func(size int) Request {
			r := request(Webhook, "plain", "{}")
			add(r.Header, size/(hostileBody/hostileHeader))
			return r
		}
	}
	return []hostile{
		{"a form of many fields", body(form, func(n int) string { return times(n, "f%x=1&")[1:] })},
		{"a form of one field, again and again", body(form, func(n int) string { return strings.Repeat("a=1&", n/4) })},
		{"a form of separators", body(form, func(n int) string { return strings.Repeat("&", n) })},
		{"a form of escapes", body(form, func(n int) string { return "a=" + strings.Repeat("%41", n/3) })},
		{"a form of broken escapes", body(form, func(n int) string { return "a=" + strings.Repeat("%4", n/2) })},
		{"a form that holds JSON", body(form, func(n int) string { return "payload=[" + strings.Repeat("0,", n/2) + "0]" })},
		{"a form that is JSON", body(form, func(n int) string { return "[" + strings.Repeat("0,", n/2) + "0]" })},
		{"JSON of one depth", body("", func(n int) string { return strings.Repeat("[", n) })},
		{"JSON of many members of one name", body("", func(n int) string { return `{"type":"a"` + strings.Repeat(`,"type":"b"`, n/11) + "}" })},
		{"JSON of escaped names", body("", func(n int) string { return `{"x":1` + strings.Repeat(`,"\u0074ype":"b"`, n/16) + "}" })},
		{"JSON of quotes", body("", func(n int) string { return `{"type":"` + strings.Repeat(`\"`, n/2) + `"}` })},
		{"JSON of backslashes without an end", body("", func(n int) string { return `{"type":"` + strings.Repeat(`\`, n) })},
		{"JSON of backslashes and quotes", body("", func(n int) string { return `{"type":"` + strings.Repeat(strings.Repeat(`\`, 99)+`"`, n/100) })},
		{"a CloudEvent of one large attribute", body("application/cloudevents+json", func(n int) string {
			return `{"specversion":"1.0","id":"1","source":"s","type":"t","x":"` + strings.Repeat("é", n/2) + `"}`
		})},
		{"a CloudEvent of many attributes", body("application/cloudevents+json", func(n int) string {
			return `{"specversion":"1.0","id":"1","source":"s","type":"t"` + times(n, `,"x%x":1`) + `}`
		})},
		{"a CloudEvent of one attribute, again and again", body("application/cloudevents+json", func(n int) string {
			return `{"specversion":"1.0","id":"1","source":"s","type":"t"` + strings.Repeat(`,"x":1`, n/6) + `}`
		})},
		{"a CloudEvent of base64", body("application/cloudevents+json", func(n int) string {
			return `{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", n/4*3))) + `"}`
		})},
		{"many attributes", header(func(h Header, n int) {
			for i := 0; i < n; i += 12 {
				h[fmt.Sprintf("Ce-X%x", i)] = []string{"v"}
			}
		})},
		{"one large attribute", header(func(h Header, n int) {
			h["Ce-Id"], h["Ce-Source"] = []string{"1"}, []string{strings.Repeat("%e9 ", n/4)}
		})},
		{"a quoted attribute", header(func(h Header, n int) { h["Ce-Type"] = []string{`"` + strings.Repeat(`\"`, n/2) + `"`} })},
		{"many values of one field", header(func(h Header, n int) {
			for range n / 8 {
				h["Ce-Id"], h["User-Agent"] = append(h["Ce-Id"], "v"), append(h["User-Agent"], "v")
			}
		})},
		{"a content type of parameters", header(func(h Header, n int) { h["Content-Type"] = []string{"text/plain" + strings.Repeat(";a=b", n/4)} })},
		{"a large trace state", header(func(h Header, n int) { h["Tracestate"] = []string{strings.Repeat("a=b,", n/4)} })},
	}
}

// hostileConsumers make an intake read all of a payload.
func hostileConsumers() []Consumer {
	return []Consumer{
		{Lane: "handler/a", Source: "plain", Filter: must(expr.ParseFilter(`$.none == 1`)), Key: must(expr.ParsePath("$.id")), MaxAttempts: 1},
		{Lane: "handler/b", Source: "plain", Filter: must(expr.ParseFilter(`$..none == 1`)), MaxAttempts: 1},
	}
}

// TestHostileRequestsAreLinear: a request of twice the size allocates about twice as much,
// and the event stays within its bounds. The test counts memory, since times would vary.
func TestHostileRequestsAreLinear(t *testing.T) {
	for _, h := range hostiles() {
		t.Run(h.name, func(t *testing.T) {
			cost := func(size int) float64 {
				d := newDoor(testSources, hostileConsumers()...)
				r := h.make(size)
				return testing.AllocsPerRun(1, func() {
					_, err := d.Receive(t.Context(), r)
					for _, a := range d.inbox.got {
						size := 0
						for name, value := range a.Event.Headers {
							size += len(name) + len(value)
						}
						if size > maxHeaderBytes+len(kept)*maxHeaderValue || len(a.Event.Headers) > maxHeaders+len(kept) || len(a.Event.DeliveryID) > maxDeliveryID {
							t.Errorf("an event keeps %d headers of %d bytes, and a delivery id of %d", len(a.Event.Headers), size, len(a.Event.DeliveryID))
						}
					}
					d.inbox.got, _ = nil, err
				})
			}
			small, large := cost(hostileBody/4), cost(hostileBody/2)
			if large > 3*small+100 {
				t.Errorf("%.0f allocations, and %.0f for twice the size", small, large)
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for _, h := range hostiles() {
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			d := newDoor(testSources, hostileConsumers()...)
			r := h.make(hostileBody)
			b.ReportAllocs()
			for b.Loop() {
				r.At = time.Now()
				_, _ = d.Receive(b.Context(), r)
				d.inbox.got, d.facts = nil, nil
			}
		})
	}
}
