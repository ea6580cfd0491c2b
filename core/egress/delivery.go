package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A field is a header. Its key has the form of canonical.
type field struct{ key, value string }

// A delivery is the content of one request: that of an event to a handler, or the call of a step.
type delivery struct {
	method  string
	url     *url.URL
	fields  []field // each key once, in the order in which a direct sends them
	payload []byte
	room    [maxFields]field // of fields
}

// maxFields is how many headers of its own a delivery has, with some room for headers of the
// event and of the handler.
const maxFields = 24

func newDelivery(method string, u *url.URL, payload []byte) *delivery {
	d := &delivery{method: method, url: u, payload: payload}
	d.fields = d.room[:0]
	return d
}

// set sets a header under its canonical key.
func (d *delivery) set(key, value string) {
	for i := range d.fields {
		if d.fields[i].key == key {
			d.fields[i].value = value
			return
		}
	}
	d.fields = append(d.fields, field{key, value})
}

func (d *delivery) setAll(fields []field) {
	for _, f := range fields {
		d.set(f.key, f.value)
	}
}

// header returns the headers in the form of net/http. Their values share one array.
func (d *delivery) header() http.Header {
	header, values := make(http.Header, len(d.fields)), make([]string, len(d.fields))
	for i, f := range d.fields {
		values[i] = f.value
		header[f.key] = values[i : i+1 : i+1]
	}
	return header
}

// request returns the request for net/http.
func (d *delivery) request(ctx context.Context) *http.Request {
	r := &http.Request{Method: d.method, URL: d.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: d.header()}
	if len(d.payload) > 0 {
		r.ContentLength = int64(len(d.payload))
		r.Body, _ = d.body()
		r.GetBody = d.body
	}
	return r.WithContext(ctx)
}

// body makes a reader of the payload. net/http recognises its type as in memory, so that
// headers and body leave in one packet. A request of which nothing was written can move to
// another connection, since body can be called again.
func (d *delivery) body() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(d.payload)), nil
}

// size returns about how many bytes the request has over HTTP/1.1.
func (d *delivery) size() int {
	n := len(d.url.EscapedPath()) + len(d.url.RawQuery) + len(d.payload)
	for i := range d.fields {
		n += len(d.fields[i].key) + len(d.fields[i].value) + len(": \r\n")
	}
	return n
}

// appendTo appends the request as [http.Request.Write] writes it, except for the order of the
// headers. Like [http.Transport] it refuses control characters.
func (d *delivery) appendTo(b []byte) ([]byte, error) {
	b = append(append(b, d.method...), ' ')
	b = append(append(b, d.url.RequestURI()...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, d.url.Host...), "\r\n"...)
	for _, f := range d.fields {
		if f.key == "User-Agent" && f.value == "" {
			continue
		}
		value := textproto.TrimString(f.value)
		if !isValue(value) {
			return nil, errors.New("invalid value of the header " + f.key)
		}
		b = append(append(b, f.key...), ": "...)
		b = append(append(b, value...), "\r\n"...)
	}
	if len(d.payload) > 0 || d.method == http.MethodPost || d.method == http.MethodPut || d.method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, int64(len(d.payload)), 10), "\r\n"...)
	}
	return append(append(b, "\r\n"...), d.payload...), nil
}

func (d *delivery) describe(job *core.TakenJob, attempt int) {
	d.set("X-Gateway-Event-Id", string(job.Event.ID))
	d.set("X-Gateway-Job-Id", string(job.ID))
	d.set("X-Gateway-Attempt", strconv.Itoa(attempt))
	d.set(core.HopsHeader, job.Event.NextHop())
	d.set("X-Gateway-Event-Type", encode(job.Event.Type, isPlain))
	d.set("X-Gateway-Source", encode(job.Event.Source, isPlain))
}

// timeLayout is RFC 3339 in UTC with milliseconds, the precision of an event's time.
const timeLayout = "2006-01-02T15:04:05.000Z"

// describeCloudEvent sets the attributes of a CloudEvent in binary mode:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md.
// A received CloudEvent is passed on unchanged, without added attributes. For any other
// event the gateway sets the attributes, and keeps the event's extension attributes.
func (d *delivery) describeCloudEvent(e *core.Event) {
	foreign := isCloudEvent(e.Headers)
	if !foreign {
		d.set("Ce-Id", string(e.ID))
		d.set("Ce-Source", "/sources/"+encode(e.Source, isPlain))
		d.set("Ce-Type", encode(e.Type, isPlain))
		d.set("Ce-Time", e.CreatedAt.UTC().Format(timeLayout))
	}
	for name, value := range e.Headers {
		attribute, ok := strings.CutPrefix(name, "ce-")
		if ok && passes(attribute, foreign) {
			// The sender of the event encoded the value. Only bytes that a header cannot
			// hold are encoded here.
			d.set(textproto.CanonicalMIMEHeaderKey(name), encode(value, isPrintable))
		}
	}
}

func isCloudEvent(headers map[string]string) bool {
	for _, required := range []string{"ce-specversion", "ce-id", "ce-source", "ce-type"} {
		if headers[required] == "" {
			return false
		}
	}
	return true
}

// passes reports whether a received attribute is passed on. Binary mode has no
// datacontenttype: the content type replaces it.
func passes(attribute string, foreign bool) bool {
	switch attribute {
	case "", "datacontenttype":
		return false
	case "specversion", "id", "source", "type", "time":
		return foreign
	}
	return eachByte(attribute, isAlphanumeric)
}

// trace sends the span of the call to the receiver. Without a span it sends no tracestate.
func (d *delivery) trace(parent string, e *core.Event) {
	if parent == "" {
		return
	}
	d.set("Traceparent", parent)
	if state := e.Headers[core.Tracestate]; isTracestate(state) {
		d.set("Tracestate", state)
	}
}

// spanOf returns the traceparent of the call for which a job was taken; empty if there is
// none. It is the span of the attempt. A gateway that makes no spans sends the span that
// came with the event.
func (c *Client) spanOf(job *core.TakenJob) string {
	parent := job.Event.Headers[core.Traceparent]
	span, ok := core.ParseSpan(parent)
	step := job.Situation.Step.ID
	switch {
	case !ok:
		return ""
	case !c.traced:
		return parent
	case step != "":
		return span.StepAttempt(step, job.Number()).String()
	}
	return span.Attempt(job.Job).String()
}

func (d *delivery) sign(s *signer, id string, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	d.set("Webhook-Id", id)
	d.set("Webhook-Timestamp", timestamp)
	d.set("Webhook-Signature", s.sign(id, timestamp, d.payload))
}
