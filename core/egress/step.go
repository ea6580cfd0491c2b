package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/runner"
	"github.com/eventgateway/gateway/core/workflow"
)

// maxResult bounds the reply to a step in bytes, since it becomes the step's result.
const maxResult = 1 << 20

// Steps makes the calls of workflow steps, with one signature for each of these secrets;
// none means unsigned. An error quotes no secret.
//
// A step differs from a delivery, because it needs the body of the reply. A body that
// breaks off is a failure although its status is 2xx. A body that is not UTF-8 text, or has
// a NUL byte, is a failure of class data. A reply in gzip is unpacked, although no call
// asks for one. Steps are not CloudEvents, since they do not send the event.
//
// record says which parts of the exchange an answer keeps.
func (c *Client) Steps(secrets []string, record core.Recording) (runner.Caller, error) {
	signer, err := newSigner(secrets)
	if err != nil {
		return nil, fmt.Errorf("steps: %w", err)
	}
	return &stepCaller{client: c, signer: signer, recorder: newRecorder(record, nil, secrets)}, nil
}

// A stepCaller makes the calls of all steps. It uses no http.Client for the same reasons as
// httpSender.
type stepCaller struct {
	client *Client
	signer *signer // nil: unsigned

	recorder *recorder // nil: no exchange is kept
}

// Call implements [runner.Caller].
func (s *stepCaller) Call(ctx context.Context, r workflow.Request, job core.TakenJob) runner.Answer {
	now := s.client.clock()
	d, err := s.delivery(r, &job, now)
	if err != nil {
		return runner.Answer{Error: clean("blocked: "+err.Error(), maxError)}
	}
	resp, err := s.client.roundTrip(ctx, d)
	recorder := s.recorder.with(r.Headers)
	exchange := recorder.delivered(d, true)
	if err != nil {
		return runner.Answer{Error: explain(ctx, err, now), Exchange: exchange}
	}
	recorder.answered(exchange, d.url, resp.Header)
	answer := answerOf(ctx, resp, now)
	answer.Exchange = exchange
	return answer
}

// answerOf makes an Answer of a response, and closes the response.
func answerOf(ctx context.Context, resp *http.Response, now time.Time) runner.Answer {
	if resp.StatusCode/100 == 2 {
		return result(ctx, resp, now)
	}
	reply := read(resp, now)
	return runner.Answer{StatusCode: reply.StatusCode, Error: reply.Error, Response: reply.Response, RetryAfter: reply.RetryAfter}
}

// delivery makes the request. net/http does not recognise the spelling of its key, so it sends the
// request a second time only as it does that of any delivery: see "Dead connections" in the
// package comment.
func (s *stepCaller) delivery(r workflow.Request, job *core.TakenJob, now time.Time) (*delivery, error) {
	u, err := endpoint.ParseURL(r.URL)
	if err != nil {
		return nil, fmt.Errorf("the url %w", err)
	}
	own, err := ownHeaders(r.Headers)
	if err != nil {
		return nil, err
	}
	d := newDelivery(r.Method, u, r.Body)
	d.set("User-Agent", s.client.agent)
	d.describe(job, job.Number())
	d.describeStep(job, r.Key)
	d.trace(s.client.spanOf(job), &job.Event)
	if r.Body != nil {
		d.set("Content-Type", "application/json")
	}
	if s.signer != nil {
		d.sign(s.signer, string(job.ID), now)
	}
	d.setAll(own)
	return d, nil
}

func (d *delivery) describeStep(job *core.TakenJob, key string) {
	d.set(canonical("Idempotency-Key"), encode(key, isPlain))
	d.set("X-Gateway-Workflow", encode(job.Situation.Run.Workflow, isPlain))
	d.set("X-Gateway-Run-Id", string(job.Situation.Run.ID))
	d.set("X-Gateway-Step", encode(job.Situation.Step.Path, isPlain))
}

// result makes an Answer of a 2xx response, and closes the response.
func result(ctx context.Context, resp *http.Response, now time.Time) runner.Answer {
	defer resp.Body.Close()
	body, other, err := unpacked(resp, maxResult+1)
	a := runner.Answer{
		StatusCode: resp.StatusCode,
		Response:   clean(string(body[:min(len(body), core.MaxResponse+utf8.UTFMax)]), core.MaxResponse),
	}
	switch {
	case len(body) > maxResult:
		a.TooLarge = true
	case errors.Is(err, errGzip):
		a.Error = "data: " + err.Error()
	case err != nil:
		a.Error = brokenOff(ctx, err, now)
	case other != "" && !readable(body):
		a.Error = clean(fmt.Sprintf("data: the reply is compressed as %q, which was not asked for; only gzip is read", other), maxError)
	case !readable(body):
		a.Error = "data: the reply is not UTF-8 text"
	default:
		a.Body = body
	}
	return a
}

// readable reports whether bytes can be stored as text.
func readable(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// brokenOff describes a reply that ended too early.
func brokenOff(ctx context.Context, err error, start time.Time) string {
	class, detail := classify(ctx, err, start)
	switch {
	case class == "timeout":
		detail = "only a part of the answer came in time: " + detail
	case errors.Is(err, io.ErrUnexpectedEOF):
		detail = "connection closed in the middle of the answer"
	default:
		detail = "the answer broke off: " + detail
	}
	return clean(class+": "+detail, maxError)
}
