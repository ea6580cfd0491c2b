package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// Bounds of what is kept beside the body. They keep one event's row small; real
// senders stay far below them.
const (
	maxType        = 128
	maxDeliveryID  = 255
	maxContentType = 255
	maxHeaders     = 32      // ce-* fields
	maxHeaderBytes = 8 << 10 // of their names and values together
	maxHeaderValue = 4 << 10 // of every other field
)

const (
	fallbackType = "event" // of a webhook that names no usable type
	emptyEvent   = "{}"    // payload of an internal event without body

	cloudEvents    = "Ce-" // prefix of CloudEvents attributes
	ceType         = "Ce-Type"
	ceSource       = "Ce-Source"
	ceID           = "Ce-Id"
	idempotencyKey = "Idempotency-Key"
)

// A provider is what is known about one kind of sender: where it says what
// happened, and how it names a delivery. All names of headers are canonical.
type provider struct {
	name       string // as in Source.Provider
	typeHeader string // names the event type; believed of every webhook source
	typeField  string // member of the JSON body that does, if no header or "type" did
	idHeader   string // names the delivery; believed of the provider's own sources
}

// providers is all of them. The headers named here are kept with the event.
var providers = []provider{
	{name: "github", typeHeader: "X-Github-Event", typeField: "action", idHeader: "X-Github-Delivery"},
}

// kept are the other headers that stay with an event, beside ce-*.
var kept = keptHeaders()

// keptHeaders maps canonical names to the names they are stored under. It is a
// list of what to keep, never of what to leave out: a header nobody thought of
// may be a credential.
func keptHeaders() map[string]string {
	names := map[string]string{"Traceparent": "traceparent", "Tracestate": "tracestate"}
	for _, p := range providers {
		for _, h := range []string{p.typeHeader, p.idHeader} {
			if h != "" {
				names[h] = strings.ToLower(h)
			}
		}
	}
	return names
}

// An envelope is everything a request says about its event beside the body.
type envelope struct {
	source  Source
	request Request
	log     *slog.Logger
}

// eventType finds the type of the event. One in the path that cannot be is
// refused, since its author can be told; elsewhere it is replaced, since the
// senders of webhooks read no replies.
func (e *envelope) eventType() (string, error) {
	r := e.request
	if r.Kind == Event && !ValidType(r.Type) {
		return "", &core.Refusal{
			Kind:    core.Invalid,
			Message: `event type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without ".."`,
			Cause:   ErrMalformed,
		}
	}
	if t := r.Header.Get(ceType); t != "" {
		return e.usable(t, ceType), nil
	}
	if r.Kind == Event {
		return r.Type, nil
	}
	return e.webhookType(), nil
}

func (e *envelope) webhookType() string {
	for _, p := range providers {
		if t := e.request.Header.Get(p.typeHeader); t != "" {
			return e.usable(t, p.typeHeader)
		}
	}
	for _, field := range []string{"type", e.provider().typeField} {
		if field == "" {
			continue
		}
		if t := stringMember(e.request.Body, field); t != "" {
			return e.usable(t, field)
		}
	}
	return fallbackType
}

// provider returns the conventions of the source, none if it has no provider.
func (e *envelope) provider() provider {
	for _, p := range providers {
		if p.name == e.source.Provider {
			return p
		}
	}
	return provider{}
}

func (e *envelope) usable(eventType, from string) string {
	if ValidType(eventType) {
		return eventType
	}
	e.log.Warn("unusable event type replaced", "source", e.source.Name, "from", from,
		"event_type", fmt.Sprintf("%.64q", eventType), "used", fallbackType)
	return fallbackType
}

// ValidType reports whether a text can be an event type: 1 to 128 of
// [A-Za-z0-9._:/-] and no "..", which would climb out of a path built of it.
func ValidType(s string) bool {
	if len(s) == 0 || len(s) > maxType || strings.Contains(s, "..") {
		return false
	}
	for i := range len(s) {
		if !typeByte(s[i]) {
			return false
		}
	}
	return true
}

func typeByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '.' || c == '_' || c == ':' || c == '/' || c == '-'
}

// deliveryID is the sender's own name for this delivery, "" if it gave none.
func (e *envelope) deliveryID() (string, error) {
	h := e.request.Header
	if keys, ok := h[idempotencyKey]; ok && e.request.Kind == Event {
		// Two keys, or half a key, would join events that are not the same.
		if len(keys) != 1 || keys[0] == "" || !clean(keys[0], maxDeliveryID) {
			return "", &core.Refusal{
				Kind:    core.Invalid,
				Message: "Idempotency-Key must be one header of 1 to 255 bytes of text",
				Cause:   ErrMalformed,
			}
		}
		return keys[0], nil
	}
	if id := h.Get(e.provider().idHeader); id != "" {
		return bounded(id), nil
	}
	// A CloudEvents source is a URI reference, so no blank occurs in it.
	if source, id := h.Get(ceSource), h.Get(ceID); source != "" && id != "" {
		return bounded(source + " " + id), nil
	}
	return "", nil
}

// bounded stands a digest in for an id that is too long or strange to store. It
// still tells the same delivery from another.
func bounded(id string) string {
	if clean(id, maxDeliveryID) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// clean reports whether a header value may be stored as text.
func clean(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func (e *envelope) payload() []byte {
	if len(e.request.Body) == 0 && e.request.Kind == Event {
		return []byte(emptyEvent)
	}
	return e.request.Body
}

func (e *envelope) contentType() string {
	t := e.request.Header.Get("Content-Type")
	if !clean(t, maxContentType) {
		e.dropped("Content-Type")
		return ""
	}
	return t
}

// headers are the fields kept with the event, under lower-case names.
func (e *envelope) headers() map[string]string {
	var attributes []string
	headers := map[string]string{}
	for name, values := range e.request.Header {
		lower, known := kept[name]
		switch {
		case strings.HasPrefix(name, cloudEvents):
			attributes = append(attributes, name)
		case known && len(values) > 0 && clean(values[0], maxHeaderValue):
			headers[lower] = values[0]
		case known:
			e.dropped(name)
		}
	}
	e.keepAttributes(headers, attributes)
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// keepAttributes keeps CloudEvents attributes within bounds. They are taken in
// the order of their names, so that equal requests keep equal ones.
func (e *envelope) keepAttributes(into map[string]string, names []string) {
	slices.Sort(names)
	room := maxHeaderBytes
	for i, name := range names {
		value := e.request.Header.Get(name)
		room -= len(name) + len(value)
		if i >= maxHeaders || room < 0 || !clean(value, maxHeaderBytes) {
			e.dropped(name)
			continue
		}
		into[strings.ToLower(name)] = value
	}
}

func (e *envelope) dropped(name string) {
	e.log.Warn("header not kept with the event", "source", e.source.Name, "header", fmt.Sprintf("%.64q", name))
}
