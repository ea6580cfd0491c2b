package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/core/wire"
)

// always are the headers of every reply.
var always = []struct {
	name  string // canonical
	value []string
}{
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"X-Frame-Options", []string{"DENY"}},
	{"Cache-Control", []string{"no-store"}},
	{"X-Api-Version", []string{"1"}},
}

// setAlways sets them. The slices are shared, so no handler may change them in place.
func setAlways(h http.Header) {
	for _, a := range always {
		h[a.name] = a.value
	}
}

var (
	textType = []string{"text/plain; charset=utf-8"}
	jsonType = []string{"application/json"}
)

// A verdict is an error as its caller sees it. The variables below are errors of HTTP
// itself. judge converts all other errors.
//
// There are two forms of an error. Senders of events get plain text, since their tools show it in
// logs as it is. Clients of the API, and requests that accept JSON, get {"error": ...}.
type verdict struct {
	status     int
	text       string
	detail     string        // sent as {"error": ...} in place of text, if not empty
	explains   bool          // always sent as {"error": ...}, not as plain text
	retryAfter time.Duration // sent if not zero
	reason     string        // in a word, for Settings.Refused; "" is not reported
	unknown    bool          // an event may or may not be stored
	event      core.ID       // that event; "" for several
}

func (v *verdict) Error() string { return v.text }

var (
	errInternal = &verdict{status: 500, text: "Internal error"}
	errBusy     = &verdict{status: 503, text: "Too many concurrent requests", retryAfter: time.Second, reason: "requests"}
	errTooMany  = &verdict{status: 429, text: "Too many requests", retryAfter: time.Second, reason: "rate"}
	errSlow     = &verdict{status: 408, text: "Request timeout"}
	errTrouble  = &verdict{status: 500, text: "internal error", explains: true}
	errLowRole  = &verdict{status: 403, reason: "role"}             // the text names the token
	errGone     = &verdict{status: 503, text: "Client has hung up"} // the client does not read it
	errNoRoute  = &verdict{status: 404, text: "not found", explains: true}
	errNoMethod = &verdict{status: 405, text: "method not allowed", explains: true}
)

// Reasons are the reasons with which Settings.Refused is called.
func Reasons() (all []string) {
	for _, v := range []*verdict{errBusy, errTooMany, errPolls, errQueuePolls, errAddressPolls, errUnread, errUnreadHere, errLowRole} {
		all = append(all, v.reason)
	}
	return all
}

// statuses has the status of each kind of refusal. Senders decide by it whether to send again: a
// status of 5xx asks for that, and one of 4xx does not.
var statuses = map[core.Kind]int{
	core.Invalid:      http.StatusBadRequest,
	core.Unauthorized: http.StatusUnauthorized,
	core.Forbidden:    http.StatusForbidden,
	core.NotFound:     http.StatusNotFound,
	core.TooLarge:     http.StatusRequestEntityTooLarge,
	core.Unsupported:  http.StatusUnsupportedMediaType,
	core.Unavailable:  http.StatusServiceUnavailable,
	core.Looped:       http.StatusLoopDetected,
}

// comeBack is the Retry-After of an unavailable service whose refusal names none.
const comeBack = 5 * time.Second

// worthDraining is how many bytes of a refused body are read to keep the connection. If
// more bytes are coming, the connection is closed instead, and the reply does not wait for
// them.
const worthDraining = 64 << 10

// fail answers a request with an error. The caller gets the text of a refusal. Of every
// other error the caller learns nothing, and the log has all of it.
func (d *Door) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := d.judge(r, err)
	// Refusals because of load or of a role are counted here. The others are statuses, which Served
	// counts.
	if v.reason != "" && d.Refused != nil {
		d.Refused(v.reason)
	}
	if v == errInternal && callingBack(r) {
		v = errTrouble
	}
	h := w.Header()
	if v.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(v.retryAfter.Seconds())))}
	}
	// net/http would read the rest of the body to use the connection again.
	if r.ContentLength < 0 || r.ContentLength > worthDraining {
		h["Connection"] = []string{"close"}
	}
	text := v.text
	if v.event != "" {
		h["X-Gateway-Event-Id"] = []string{string(v.event)}
	}
	if v.unknown {
		text = unknownOutcome(r, v.event)
	} else if v.status == http.StatusServiceUnavailable && takesEvents(r) {
		text += notStored
	}
	if explained(r, v) {
		writeJSON(w, v.status, failureBody{wire.Error{Error: cmp.Or(v.detail, text)}, v.event})
		return
	}
	writeText(w, v.status, text)
}

// A failureBody is an error, with the event whose outcome is unknown.
type failureBody struct {
	wire.Error
	EventID core.ID `json:"event_id,omitempty"`
}

// notStored is added to each 503 of an event that is certainly not stored.
const notStored = "; the event is not stored"

// unknownOutcome returns the text for the sender of an event that may or may not be stored.
// Senders of webhooks and topics repeat requests in their own way.
func unknownOutcome(r *http.Request, event core.ID) string {
	const unknown = "The database did not answer in time; the event may be stored or not"
	if event == "" || !strings.HasPrefix(r.URL.Path, "/events/") {
		return unknown + "; send it again"
	}
	return unknown + "; to send it again and store it once, add the header " + strings.ToLower(intake.Repeat) + ": " + string(event)
}

// takesEvents reports whether a request is to a route of events.
func takesEvents(r *http.Request) bool {
	for _, prefix := range []string{"/events/", "/webhooks/", "/sns/"} {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return true
		}
	}
	return false
}

// explained reports whether an error is sent in JSON. Under /api all errors are, except for
// a wrong or missing token, whose text is the same on all routes. All errors of callbacks
// are.
func explained(r *http.Request, v *verdict) bool {
	if callingBack(r) {
		return true
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		return v.status != http.StatusUnauthorized
	}
	return v.explains || wantsJSON(r)
}

// judge converts an error into the verdict that its caller sees, and logs errors that are the
// gateway's own. The order matters: an error may wrap several of the others.
func (d *Door) judge(r *http.Request, err error) *verdict {
	var v *verdict
	var refusal *core.Refusal
	var unknown *intake.Unknown
	switch {
	case errors.As(err, &v):
		return v
	// The database may have stored the event. The sender gets an id with which to repeat it safely.
	case errors.As(err, &unknown):
		d.logRefusal(r, err)
		v = &verdict{status: 503, unknown: true, event: unknown.EventID, retryAfter: comeBack}
		if errors.As(err, &refusal) {
			v.retryAfter = cmp.Or(refusal.RetryAfter, comeBack)
		}
		return v
	// The client is gone. This is no failure of the gateway, so nothing is logged.
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return errGone
	case errors.As(err, &refusal) && refusal.Kind == core.Unavailable:
		d.logRefusal(r, err)
		return &verdict{status: 503, text: refusal.Message, retryAfter: cmp.Or(refusal.RetryAfter, comeBack)}
	// The caller is known, so the log names its token.
	case errors.Is(err, errRole) && errors.As(err, &refusal):
		low := *errLowRole
		low.text = refusal.Message
		d.Log.WarnContext(r.Context(), "request refused", append(about(r, &low), "reason", low.reason)...)
		return &low
	case errors.Is(err, intake.ErrNotText) && errors.As(err, &refusal):
		return &verdict{status: statuses[refusal.Kind], text: refusal.Message, detail: refusal.Error()}
	case errors.As(err, &refusal):
		return &verdict{status: statuses[refusal.Kind], text: refusal.Message, explains: errors.Is(err, intake.ErrMalformed)}
	// The two cases below are failures of the gateway and not of the sender. With status 500 the
	// sender tries again.
	case errors.Is(err, intake.ErrVerification):
		d.logFailure(r, err)
		return &verdict{status: 500, text: "Verification error"}
	case errors.Is(err, sns.ErrConfirmation):
		d.logFailure(r, err)
		return &verdict{status: 500, text: "Subscription confirmation failed"}
	case errors.Is(err, context.DeadlineExceeded):
		d.logRefusal(r, err)
		return &verdict{status: 503, text: "Service unavailable", retryAfter: comeBack}
	default:
		d.logFailure(r, err)
		return errInternal
	}
}

// logFailure logs a failure that the gateway caused. The log has one line a second for each
// route and source, as for all lines that requests cause.
func (d *Door) logFailure(r *http.Request, err error) {
	d.Log.ErrorContext(r.Context(), "request failed", about(r, err)...)
}

// about returns the attributes of a log line about a request.
func about(r *http.Request, err error) []any {
	attrs := []any{"method", r.Method, "route", r.Pattern}
	if source := segment(r, "source"); source != "" {
		attrs = append(attrs, "source", source)
	}
	return append(attrs, "error", err)
}

// logRefusal logs a request that the gateway cannot serve now. While a database is away
// that is every request; the component that uses the database logs the outage itself.
func (d *Door) logRefusal(r *http.Request, err error) {
	d.Log.WarnContext(r.Context(), "request refused", about(r, err)...)
}

// received answers for an event that was stored now or before, or for a request without an
// event.
func received(w http.ResponseWriter, r *http.Request, status int, text string, result intake.Result) {
	// A request of a provider without an event, such as a test of the address, has its own answer.
	if result.Answer != "" {
		writeText(w, http.StatusOK, result.Answer)
		return
	}
	if result.Duplicate {
		status, text = http.StatusOK, "Duplicate event ignored"
	}
	w.Header()["X-Gateway-Event-Id"] = []string{string(result.EventID)}
	if wantsJSON(r) {
		writeJSON(w, status, receiptBody{result.EventID, result.Duplicate, result.Jobs})
		return
	}
	writeText(w, status, text)
}

// A receiptBody answers for one event of a sender that asks for JSON.
type receiptBody struct {
	EventID   core.ID `json:"event_id"`
	Duplicate bool    `json:"duplicate"`
	Jobs      int     `json:"jobs_created"`
}

// wantsJSON reports whether the request names JSON in Accept. A wildcard, as curl sends it,
// does not count.
func wantsJSON(r *http.Request) bool {
	for _, line := range r.Header["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			media, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(media), "application/json") {
				return true
			}
		}
	}
	return false
}

// unhurried removes the deadline of a reply. Work on many jobs takes its time, unless the
// caller disconnects.
func unhurried(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a server that has none needs none
}

// The writers ignore errors: a client that has disconnected needs no other reply.

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header()["Content-Type"] = textType
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text := mustJSON(body)
	begin(w, len(text))
	w.Header()["Content-Type"] = jsonType
	if len(text) > unmeasured {
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// unmeasured is the length up to which net/http sets the Content-Length of a reply by itself.
// Longer replies it would send in chunks, though their length is known.
const unmeasured = 2 << 10

// mustJSON encodes a body of texts and numbers, which cannot fail.
func mustJSON(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return text
}
