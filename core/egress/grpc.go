//go:build !nogrpc

package egress

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/grpc"
	rpcmeta "google.golang.org/grpc/metadata"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/worker"
	gatewayv1 "github.com/eventgateway/gateway/proto/gateway/v1"
)

// GRPC makes the sender of a handler that implements gateway.v1.EventReceiver. HTTP headers
// become metadata of the call, under the same names in lower case. The attributes of the
// CloudEvent and the content type are in the message.
//
// The target's URL has no path; http is plaintext, https is TLS. The target has no Method.
// gRPC must be able to carry its Headers. An error names the invalid part of the target,
// and quotes no secret.
//
// The reply's StatusCode is 0: the HTTP status of a call is 200 also when it fails.
func (c *Client) GRPC(t Target) (worker.Sender, error) {
	u, err := endpoint.ParseReceiverURL(t.URL)
	if err != nil {
		return nil, fmt.Errorf("handler %q: url %w", t.Name, err)
	}
	if t.Method != "" {
		return nil, fmt.Errorf("handler %q: method is for HTTP; remove it, or set type to http", t.Name)
	}
	own, err := ownMetadata(t.Headers)
	if err != nil {
		return nil, fmt.Errorf("handler %q: %w", t.Name, err)
	}
	signer, err := newSigner(t.Secrets)
	if err != nil {
		return nil, fmt.Errorf("handler %q: %w", t.Name, err)
	}
	agent := c.agent
	if own["user-agent"] != nil {
		agent = own["user-agent"][0]
		delete(own, "user-agent")
	}
	recorder := t.recorder()
	recorder.hideOwn(own)
	return &grpcSender{
		line:      &line{client: c, url: u, agent: agent},
		handler:   t.Name,
		own:       own,
		transform: t.Transform,
		signer:    signer,
		recorder:  recorder,
		made:      t.MadeBody || t.Transform != nil,
	}, nil
}

// ownMetadata converts a handler's own headers to metadata. It percent-encodes values that
// are not printable ASCII.
func ownMetadata(headers map[string]string) (rpcmeta.MD, error) {
	own := rpcmeta.MD{}
	for name, value := range headers {
		if err := endpoint.CheckMetadata(name, value); err != nil {
			return nil, fmt.Errorf("header %q %w", name, err)
		}
		own[strings.ToLower(name)] = []string{encode(value, isPrintable)}
	}
	return own, nil
}

// A grpcSender delivers to one handler.
type grpcSender struct {
	line      *line
	handler   string
	own       rpcmeta.MD
	transform *expr.Template // nil: the payload as it is
	signer    *signer        // nil: unsigned
	recorder  *recorder      // nil: no exchange is kept
	made      bool           // the payload in the message is not the event's
}

// Send implements [worker.Sender].
func (s *grpcSender) Send(ctx context.Context, job core.TakenJob) worker.Reply {
	now := s.line.client.clock()
	letter, err := composeText(s.transform, &job.Event)
	if err != nil {
		return untransformed(err)
	}
	request, with := s.request(&job, letter, now)
	var progress progress
	channel, err := s.line.take()
	if err != nil {
		return worker.Reply{Error: clean("protocol: "+err.Error(), maxError)}
	}
	defer func() { s.line.release(channel, progress.answered()) }()
	var header, trailer rpcmeta.MD
	options := []grpc.CallOption{grpc.Trailer(&trailer)}
	if s.recorder != nil {
		options = append(options, grpc.Header(&header))
	}
	answer, err := gatewayv1.NewEventReceiverClient(channel).Deliver(progress.watch(rpcmeta.NewOutgoingContext(ctx, with)), request, options...)
	exchange := s.exchange(request, with)
	if progress.answered() { // without a reply the trailer may be empty and not nil
		s.recorder.answered(exchange, s.line.url, joined(header, trailer))
	}
	if err != nil {
		reply := fail(ctx, err, channel, &progress, trailer, now)
		reply.Exchange = exchange
		return reply
	}
	return worker.Reply{OK: answer.Success, Response: clean(answer.Message, maxMessage), Error: refusal(answer), Exchange: exchange}
}

// exchange returns the exchange of a call. The attributes in its message are kept beside the
// metadata: over HTTP they would be headers.
func (s *grpcSender) exchange(request *gatewayv1.DeliverRequest, with rpcmeta.MD) *core.Exchange {
	if s.recorder == nil {
		return nil
	}
	header := joined(with, rpcmeta.MD{"user-agent": {s.line.agent + " grpc-go/" + grpc.Version}})
	for name, value := range request.Metadata {
		header[name] = []string{value}
	}
	return s.recorder.sent(gatewayv1.EventReceiver_Deliver_FullMethodName, s.line.url, header, []byte(request.Payload), s.made)
}

// joined returns a new map with the values of both.
func joined(a, b rpcmeta.MD) map[string][]string {
	all := make(map[string][]string, len(a)+len(b))
	for _, from := range []rpcmeta.MD{a, b} {
		for name, values := range from {
			all[name] = append(all[name], values...)
		}
	}
	return all
}

// request returns the message of a call, and its metadata.
func (s *grpcSender) request(job *core.TakenJob, l Letter, now time.Time) (*gatewayv1.DeliverRequest, rpcmeta.MD) {
	e := &job.Event
	d := newDelivery("", nil, l.Body)
	attributes := map[string]string{}
	if l.ContentType != "" {
		attributes["content-type"] = encode(l.ContentType, isPrintable)
	}
	if e.Binary { // a string of gRPC is UTF-8
		attributes["payload-encoding"] = "base64"
	}
	d.set("X-Gateway-Handler", encode(s.handler, isPlain))
	d.set("Ce-Specversion", "1.0")
	d.describe(job, job.Number())
	d.describeCloudEvent(e)
	d.trace(s.line.client.spanOf(job), e)
	if s.signer != nil {
		d.sign(s.signer, string(job.ID), now)
	}
	with := make(rpcmeta.MD, len(d.fields)+len(s.own))
	for _, f := range d.fields {
		name := strings.ToLower(f.key)
		if strings.HasPrefix(name, "ce-") {
			attributes[name] = f.value
		} else {
			with[name] = []string{f.value}
		}
	}
	maps.Copy(with, s.own)
	return &gatewayv1.DeliverRequest{
		EventId:   string(e.ID),
		EventType: eventType(e),
		Handler:   s.handler,
		Payload:   string(d.payload),
		Metadata:  attributes,
		Attempt:   int32(job.Number()),
	}, with
}

// eventType returns the type of a CloudEvent unchanged, and the gateway's type for any
// other event.
func eventType(e *core.Event) string {
	name := e.Type
	if isCloudEvent(e.Headers) {
		name = e.Headers["ce-type"]
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}
