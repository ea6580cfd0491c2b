package egress

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
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
		client: c,
		method: method,
		url:    u,
		fixed: []field{
			{"User-Agent", c.agent},
			{"X-Gateway-Handler", encode(t.Name, isPlain)},
			{"Ce-Specversion", "1.0"},
		},
		own:       own,
		transform: t.Transform,
		signer:    signer,
		recorder:  t.recorder(),
		made:      t.MadeBody || t.Transform != nil,
	}, nil
}

// ownHeaders returns the headers of a configuration, sorted by their names.
func ownHeaders(headers map[string]string) ([]field, error) {
	var own []field
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		if err := endpoint.CheckHeader(name, value); err != nil {
			return nil, fmt.Errorf("header %q %w", name, err)
		}
		own = append(own, field{canonical(name), value})
	}
	return own, nil
}

// An httpSender delivers to one handler.
//
// It uses no http.Client, because a delivery must not have redirects, cookies or a second
// deadline.
type httpSender struct {
	client     *Client
	method     string
	url        *url.URL
	fixed, own []field        // the same for every delivery
	transform  *expr.Template // nil: the payload unchanged
	signer     *signer        // nil: unsigned
	recorder   *recorder      // nil: no exchange is kept
	made       bool           // the body is not the payload
}

// Send implements [worker.Sender]. The payload must not change afterwards either: a handler
// may answer before the transport has sent all of it.
func (s *httpSender) Send(ctx context.Context, job core.TakenJob) worker.Reply {
	now := s.client.clock()
	letter, err := compose(s.transform, s.method, &job.Event)
	if err != nil {
		return untransformed(err)
	}
	d := s.delivery(&job, letter, now)
	resp, err := s.client.roundTrip(ctx, d)
	exchange := s.recorder.delivered(d, s.made)
	if err != nil {
		return worker.Reply{Error: explain(ctx, err, now), Exchange: exchange}
	}
	s.recorder.answered(exchange, d.url, resp.Header)
	reply := read(resp, now)
	reply.Exchange = exchange
	return reply
}

// unsendable returns the reply to a job that no attempt can deliver.
func unsendable(why string) worker.Reply {
	return worker.Reply{Error: clean(why, maxError), Final: true, Unsent: true}
}

func (s *httpSender) delivery(job *core.TakenJob, l Letter, now time.Time) *delivery {
	d := newDelivery(s.method, s.url, l.Body)
	d.setAll(s.fixed)
	d.describe(job, job.Number())
	d.describeCloudEvent(&job.Event)
	d.trace(s.client.spanOf(job), &job.Event)
	if l.ContentType != "" {
		d.set("Content-Type", l.ContentType)
	}
	if s.signer != nil {
		d.sign(s.signer, string(job.ID), now)
	}
	d.setAll(s.own)
	return d
}
