package workflow

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// A call is the configured request of a step. It is compiled once and used by every attempt.
// Only the body and the key differ.
type call struct {
	of      *step
	url     string
	method  string
	headers map[string]string
}

// Secrets are revealed here, once; from here on the headers are plain.
func newCall(s *step, c config.Step) call {
	headers := make(map[string]string, len(c.Headers))
	for name, value := range c.Headers {
		headers[name] = value.Reveal()
	}
	method := c.Method
	// Calls that this package makes itself have no method.
	if method == "" {
		method = "POST"
	}
	return call{of: s, url: c.URL, method: method, headers: headers}
}

// request returns the call with a body. The key makes repeated calls of one visit the same call
// for a receiver that checks it.
func (c call) request(job core.TakenJob, body []byte) Request {
	s := job.Situation
	key := string(s.Run.ID) + "." + strconv.Itoa(visitOf(s.Step)) + "." + s.Step.Path
	return Request{Method: c.method, URL: c.url, Headers: c.headers, Body: body, Key: key}
}

// An httpStep ends when its call ends. The worker makes the call without a lock and without a
// transaction, and settles its end as a StepEnd.
type httpStep struct {
	leaf
	outside
	call call
}

// Request returns the call that an http step makes. An error is of class data and final.
func (d *Definition) Request(job core.TakenJob) (Request, error) {
	s := d.at(job.Situation.Step.Path)
	if s == nil {
		return Request{}, errNoStep
	}
	h, ok := s.kind.(*httpStep)
	if !ok {
		return Request{}, errNoStep
	}
	var body []byte
	// A GET request has no body, so its input need not be computed.
	if h.call.method != "GET" {
		var err error
		if body, err = scopeOf(job).input(s.input); err != nil {
			return Request{}, err
		}
	}
	return h.call.request(job, body), nil
}

// errNoStep is the error for a job whose step is of another type in the definition.
var errNoStep = fmt.Errorf("the step makes no calls")

// scopeOf returns the scope of a step's expressions in the attempt for which its job was taken.
func scopeOf(job core.TakenJob) scope {
	row := &job.Situation.Step
	return scope{event: &job.Event, run: job.Situation.Run.ID, row: row, attempt: row.Attempt + 1}
}

func (h *httpStep) typ() string { return "http" }

func (h *httpStep) task(core.TakenJob, time.Time) Task { return Call }

// end handles the reply, the refusal, or the due time of the step's job. A due time without an
// end of the call means that the worker crashed, or that the deadline came.
func (h *httpStep) end(m *move, r *row, e core.StepEnd) bool {
	switch e.Kind {
	case core.Replied:
		m.answered(r, e)
	case core.Refused:
		m.refused(r, e)
	case core.Elapsed:
		return m.expired || m.failTakenTooOften(r, e)
	default:
		return false
	}
	return true
}

// answered handles the reply to a call. The reply becomes the result of the step. A reply that
// cannot be a result fails the attempt.
func (m *move) answered(r *row, e core.StepEnd) {
	r.Attempt++
	r.changed = true
	m.called(r, e)
	result, err := resultOf(e.Body)
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	m.passResult(r, result)
}

// resultOf returns a body as a result: JSON, or its text as a JSON string. It returns nil
// if the body is blank.
func resultOf(body []byte) ([]byte, error) {
	// A reply such as 204 has no result, and the state passes on.
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	return checked(textOf(document(body)))
}

// refused handles a call that failed.
func (m *move) refused(r *row, e core.StepEnd) {
	r.Attempt++
	m.called(r, e)
	m.attemptFailed(r, failureOf(e))
}

// failTakenTooOften ends a step whose job was taken too many times without an end.
func (m *move) failTakenTooOften(r *row, e core.StepEnd) bool {
	if !takenTooOften(e.Job) {
		return false
	}
	r.Attempt++
	text := fmt.Sprintf("timeout: %s %d times", core.LeaseExpired, maxTaken)
	m.attemptFailed(r, &failure{class: core.ClassTimeout, text: text, final: true})
	return true
}

// called keeps the record of a call. An end without a call has no attempt to record.
func (m *move) called(r *row, e core.StepEnd) {
	if e.Attempt == (core.Attempt{}) {
		return
	}
	r.call = e.Attempt
	m.wrote("", r.Path, attemptBytes+len(e.Attempt.Response)+len(e.Attempt.Error))
	m.attempts = append(m.attempts, core.AttemptRecord{JobID: e.Job.ID, Lease: e.Job.Lease, Attempt: e.Attempt})
}
