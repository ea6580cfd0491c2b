package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
)

// Headers of the CloudEvents handshake, by which a sender asks for permission:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection.
// The gateway does not call the address in WebHook-Request-Callback, since the reply has
// the answer. A gateway that called any given address could be used for attacks on others.
const (
	requestOrigin = "Webhook-Request-Origin"
	requestRate   = "Webhook-Request-Rate"
	allowedOrigin = "Webhook-Allowed-Origin"
	allowedRate   = "Webhook-Allowed-Rate"
)

// handshakeOf serves the handshakes of sources of a kind. Their bodies are not read, and they
// take no slot.
func (i *intakeRoutes) handshakeOf(k intake.Kind) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		return i.handshake(k, segment(r, "source"), w, r)
	}
}

// shortHandshake serves a path with one name after /events: a source of several events in
// one request, or the type of an event of the default source.
func (i *intakeRoutes) shortHandshake(w http.ResponseWriter, r *http.Request) error {
	// The name is tried as a source first: only sources refuse handshakes of their own.
	err := i.handshake(intake.Event, segment(r, "event_type"), w, r)
	if core.IsKind(err, core.NotFound) {
		return i.handshake(intake.Event, core.DefaultSource, w, r)
	}
	return err
}

// handshake answers with the name and the rate that the sender may use. Any other OPTIONS
// request gets the same reply as a method that no route has.
func (i *intakeRoutes) handshake(k intake.Kind, source string, w http.ResponseWriter, r *http.Request) error {
	// A request without an origin is no handshake, but an ordinary OPTIONS.
	origins := r.Header[requestOrigin]
	if len(origins) == 0 {
		return i.noHandshake(w)
	}
	// Several header fields count as one list, as HTTP has it.
	allowed, err := i.receiver.Handshake(k, source, strings.Join(origins, ","), recordOf(w).client)
	if errors.Is(err, intake.ErrNoHandshake) {
		return i.noHandshake(w)
	}
	if err != nil {
		return err
	}
	if rates := r.Header[requestRate]; len(rates) > 0 && !positive(rates[0]) {
		why := core.Refuse(core.Invalid, "WebHook-Request-Rate must be a whole number of requests a minute, at least 1; not %s", quote(rates[0]))
		why.Cause = intake.ErrMalformed
		return why
	}
	// The rate is per minute. The limit of a client address is the only one that a sender can
	// meet by itself.
	rate := "*"
	if i.IPRateLimit > 0 {
		rate = strconv.Itoa(i.IPRateLimit * 60)
	}
	h := w.Header()
	h["Allow"], h[allowedOrigin], h[allowedRate] = []string{http.MethodPost}, []string{allowed}, []string{rate}
	w.WriteHeader(http.StatusOK)
	return nil
}

// positive reports whether a text is a whole number above zero.
func positive(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return n > 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// noHandshake answers as if the route had no OPTIONS.
func (i *intakeRoutes) noHandshake(w http.ResponseWriter) error {
	w.Header()["Allow"] = []string{http.MethodPost}
	return errNoMethod
}
