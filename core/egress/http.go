package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/worker"
)

// A Target is the configuration of a handler's deliveries.
type Target struct {
	// Name of the handler.
	Name string

	// URL to send to; see endpoint.ParseURL.
	URL string

	// Method is GET, POST, PUT, PATCH or DELETE; empty means POST. A GET has no
	// body.
	Method string

	// Headers are the handler's own. They replace all others; see endpoint.CheckHeader.
	Headers map[string]string

	// Transform makes the body from the payload; the body is JSON then. Nil sends the
	// payload unchanged.
	Transform *expr.Template

	// Secrets are the keys to sign with, each for one signature; none means unsigned. A
	// secret has the form of Standard Webhooks; see endpoint.ParseSigningKey.
	Secrets []string

	// Record says which parts of the exchange a reply keeps. SecretURL says that the URL is a
	// secret, except for its host. MadeBody says that the body is not the payload of the stored
	// event, also without a Transform.
	Record    core.Recording
	SecretURL bool
	MadeBody  bool
}

// recorder returns the recorder of the target's exchanges.
func (t Target) recorder() *recorder {
	r := newRecorder(t.Record, t.Headers, t.Secrets)
	if r != nil {
		r.secretURL = t.SecretURL
	}
	return r
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// HTTP makes the sender of a handler. It computes once all that is the same for every
// delivery. An error names the invalid part of the target, and quotes no secret.
func (c *Client) HTTP(t Target) (worker.Sender, error) {
	u, err := endpoint.ParseURL(t.URL)
	if err != nil {
		return nil, fmt.Errorf("handler %q: url %w", t.Name, err)
	}
	method := t.Method
	if method == "" {
		method = http.MethodPost
	}
	if !slices.Contains(methods, method) {
		return nil, fmt.Errorf("handler %q: method must be one of %s; not %q", t.Name, strings.Join(methods, ", "), t.Method)
	}
	own, err := ownHeaders(t.Headers)
	if err != nil {
		return nil, fmt.Errorf("handler %q: %w", t.Name, err)
	}
	signer, err := newSigner(t.Secrets)
	if err != nil {
		return nil, fmt.Errorf("handler %q: %w", t.Name, err)
	}
	return &httpSender{
		client:   c,
		template: &http.Request{Method: method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		fixed: []field{
			{"User-Agent", []string{c.agent}},
			{"X-Gateway-Handler", []string{encode(t.Name, isPlain)}},
			{"Ce-Specversion", []string{"1.0"}},
		},
		own:       own,
		transform: t.Transform,
		signer:    signer,
		recorder:  t.recorder(),
		made:      t.MadeBody || t.Transform != nil,
	}, nil
}

// A field is a header that is the same for every delivery of a handler.
type field struct {
	key    string
	values []string
}

func ownHeaders(headers map[string]string) ([]field, error) {
	var own []field
	for name, value := range headers {
		if err := endpoint.CheckHeader(name, value); err != nil {
			return nil, fmt.Errorf("header %q %w", name, err)
		}
		own = append(own, field{canonical(name), []string{value}})
	}
	return own, nil
}

// An httpSender delivers to one handler.
//
// It uses the transport rather than http.Client, because a delivery must not have
// redirects, cookies or a second deadline. Copying a template of the request avoids parsing
// the URL each time.
type httpSender struct {
	client     *Client
	template   *http.Request
	fixed, own []field
	transform  *expr.Template // nil: the payload unchanged
	signer     *signer        // nil: unsigned
	recorder   *recorder      // nil: no exchange is kept
	made       bool           // the body is not the payload
}

// Send implements [worker.Sender]. The payload must not change afterwards either: a handler
// may answer before the transport has sent all of it.
func (s *httpSender) Send(ctx context.Context, job core.TakenJob) worker.Reply {
	now := s.client.clock()
	letter, err := compose(s.transform, s.template.Method, &job.Event)
	if err != nil {
		return untransformed(err)
	}
	request := s.request(ctx, &job, letter, now)
	resp, err := s.client.transport.RoundTrip(request)
	exchange := s.recorder.sent(request.Method, request.URL, request.Header, letter.Body, s.made)
	if err != nil {
		return worker.Reply{Error: explain(ctx, err, now), Exchange: exchange}
	}
	s.recorder.answered(exchange, request.URL, resp.Header)
	reply := read(resp, now)
	reply.Exchange = exchange
	return reply
}

// unsendable returns the reply to a job that no attempt can deliver.
func unsendable(why string) worker.Reply {
	return worker.Reply{Error: clean(why, maxError), Final: true, Unsent: true}
}

func (s *httpSender) request(ctx context.Context, job *core.TakenJob, l Letter, now time.Time) *http.Request {
	r := s.template.WithContext(ctx)
	d := &delivery{header: make(http.Header, len(s.fixed)+len(s.own)+len(job.Event.Headers)+maxValues), payload: l.Body}
	for _, f := range s.fixed {
		d.header[f.key] = f.values
	}
	d.describe(job, job.Number())
	d.describeCloudEvent(&job.Event)
	d.trace(s.client.spanOf(job), &job.Event)
	if l.ContentType != "" {
		d.set("Content-Type", l.ContentType)
	}
	if s.signer != nil {
		d.sign(s.signer, string(job.ID), now)
	}
	for _, f := range s.own {
		d.header[f.key] = f.values
	}
	r.Header = d.header
	if len(d.payload) > 0 {
		r.ContentLength = int64(len(d.payload))
		r.Body, _ = d.body()
		r.GetBody = d.body
	}
	return r
}

// maxValues is how many headers of its own a delivery has, with some room for headers of
// the event.
const maxValues = 18

// A delivery is the content of one request. Its header values share one array.
type delivery struct {
	header  http.Header
	payload []byte
	values  [maxValues]string
	used    int
}

// set sets a header under its canonical key.
func (d *delivery) set(key, value string) {
	if d.used == len(d.values) {
		d.header[key] = []string{value}
		return
	}
	d.values[d.used] = value
	d.used++
	d.header[key] = d.values[d.used-1 : d.used : d.used]
}

// body makes a reader of the payload. net/http recognises its type as in memory, so that
// headers and body leave in one packet. A request of which nothing was written can move to
// another connection, since body can be called again.
func (d *delivery) body() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(d.payload)), nil
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
