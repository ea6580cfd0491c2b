package intake

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// Bounds of the data that is kept beside the body. They bound one event's row. Real senders
// stay far below them.
const (
	maxType        = 128
	maxDeliveryID  = 255
	maxContentType = 255
	maxHeaders     = 32      // ce-* fields
	maxHeaderBytes = 8 << 10 // of their names and values together
	maxHeaderValue = 4 << 10 // of every other field
)

const (
	fallbackType = "event" // type of a webhook without a usable type
	emptyEvent   = "{}"    // payload of an internal event without body

	idempotencyKey = "Idempotency-Key"
)

// A letter is the content of a request, ready to be stored.
type letter struct {
	eventType   string // valid
	deliveryID  string // empty: every delivery is a new event
	payload     []byte
	binary      bool              // the payload is not text: see [core.Event].Binary
	contentType string            // empty if it is unknown or was dropped
	headers     map[string]string // names in lower case; nil if there are none
	dueAt       time.Time         // of the event's jobs; zero if the sender did not say it
}

// An envelope is a request, with the data about its event that is outside the payload.
type envelope struct {
	source  Source
	request Request
	provider
	log *slog.Logger

	signedBody []byte // the body as received, which the signature covers
	binary     bool   // the body is not text

	inBody bool     // CloudEvents attributes came in the body, so its signature covers them
	lost   []string // names of headers that are not kept
}

// open reads a webhook or an API event.
func (e *envelope) open() (letter, error) {
	// The order matters: unwrap replaces the header and the body of the request. The
	// digest of a source with ByBody is over the body that was signed.
	e.signedBody = e.request.Body
	hops, err := e.hops()
	if err != nil {
		return letter{}, err
	}
	structured, err := isStructured(e.request.Header.Get("Content-Type"))
	if err != nil {
		return letter{}, err
	}
	if structured {
		if err := e.unwrap(); err != nil {
			return letter{}, err
		}
	}
	eventType, err := e.eventType()
	if err != nil {
		return letter{}, err
	}
	deliveryID, err := e.deliveryID()
	if err != nil {
		return letter{}, err
	}
	dueAt, err := e.dueAt()
	if err != nil {
		return letter{}, err
	}
	// This comes before headers, which copies the attributes.
	e.dropUnbelieved(eventType)
	l := letter{
		eventType: eventType, deliveryID: deliveryID,
		payload: e.payload(), binary: e.binary, contentType: e.contentType(), headers: e.headers(), dueAt: dueAt,
	}
	if hops > 0 {
		if l.headers == nil {
			l.headers = map[string]string{}
		}
		l.headers[core.Hops] = strconv.Itoa(hops)
	}
	// One line for each event, with one name: a sender controls the number of names.
	if len(e.lost) > 0 {
		e.log.Warn("headers not kept with the event", "source", e.source.Name, "headers", len(e.lost), "first", fmt.Sprintf("%.64q", e.lost[0]))
	}
	return l, nil
}

// hops returns how many gateways have passed the event on. The header is not signed: a
// sender that changes it can only make the gateway refuse the event earlier. A value that
// is not a number counts as zero. Of several values the highest counts.
func (e *envelope) hops() (most int, err error) {
	for _, value := range e.request.Header[core.HopsHeader] {
		n, _ := core.ParseHops(value)
		most = max(most, n)
	}
	if most > core.MaxHops {
		return 0, core.Refuse(core.Looped, "Loop detected: gateways have handed this event on more than %d times, by their header %s; look for a handler that leads back here", core.MaxHops, core.Hops)
	}
	return most, nil
}

// unwrap turns a structured CloudEvent into a binary-mode one.
func (e *envelope) unwrap() error {
	if e.binary {
		return errNotUTF8
	}
	ce, err := parseCloudEvent(e.request.Body)
	if err != nil {
		return err
	}
	if e.binary = !readable(ce.data); e.binary && !e.source.Binary {
		return errNotUTF8
	}
	// Only the attributes in the body count: ce- headers beside it are not part of the
	// event.
	h := maps.Clone(e.request.Header)
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, cloudEvents) })
	for name, value := range ce.attributes {
		h[textproto.CanonicalMIMEHeaderKey(cloudEvents+name)] = []string{percentEncoded(value)}
	}
	h["Content-Type"] = []string{ce.contentType}
	e.request.Header, e.request.Body, e.inBody = h, ce.data, true
	return nil
}

// eventType returns the type of the event. An invalid type in the path is refused, since
// the caller reads the reply. An invalid type elsewhere is replaced by fallbackType, since
// the senders of webhooks read no replies.
func (e *envelope) eventType() (string, error) {
	r := e.request
	if r.Kind == Event && !ValidType(r.Type) {
		return "", malformed(`event type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without ".."`)
	}
	if r.Kind == Event {
		if t := r.Header.Get(ceType); t != "" {
			return e.usable(percentDecoded(t), ceType), nil
		}
		return r.Type, nil
	}
	return e.webhookType(), nil
}

// webhookType returns the type that a webhook names. The header ce-type comes first if
// nothing is signed. It comes last if a signature covers only the body: otherwise an
// attacker with a captured request could send it again as another event.
func (e *envelope) webhookType() string {
	for _, place := range e.typePlaces() {
		if t, from := e.typeAt(place); t != "" {
			return e.usable(t, from)
		}
	}
	return fallbackType
}

// signed reports whether the source verifies its sender.
func (e *envelope) signed() bool { return e.source.Verify != nil }

// typePlaces returns the places in which a webhook may name its type, in the order of
// precedence.
func (e *envelope) typePlaces() []typePlace {
	switch {
	case e.inBody || !e.signed():
		return attributeFirst
	case e.typeHeader == "":
		return bodyFirst
	case e.partial:
		return headerFirst
	}
	return fieldFirst
}

// A typePlace is a place in which a webhook may name its type.
type typePlace int

const (
	inAttribute typePlace = iota // of a CloudEvent, ce-type
	inHeader                     // of a provider
	inMember                     // "type" of the body
	inField                      // the provider's own member of the body
)

var (
	attributeFirst = []typePlace{inAttribute, inHeader, inMember, inField}
	bodyFirst      = []typePlace{inField, inMember, inHeader, inAttribute}
	headerFirst    = []typePlace{inHeader, inMember, inField, inAttribute}
	fieldFirst     = []typePlace{inField, inHeader, inMember, inAttribute}
)

// typeAt returns the type at a place, "" if there is none, and the name of the place. It is
// a switch and not a table of methods: a call through a table would put each envelope on
// the heap.
func (e *envelope) typeAt(p typePlace) (eventType, from string) {
	switch p {
	case inAttribute:
		return e.attributeType()
	case inHeader:
		return e.headerType()
	case inMember:
		return e.memberType()
	}
	return e.fieldType()
}

// attributeType returns the type in the attribute of a CloudEvent.
func (e *envelope) attributeType() (eventType, from string) {
	return percentDecoded(e.request.Header.Get(ceType)), ceType
}

// headerType returns the type in a provider's header. For a source of a known provider it
// reads only the header of that provider.
func (e *envelope) headerType() (eventType, from string) {
	for _, p := range providers {
		if e.name != "" && e.name != p.name {
			continue
		}
		if t := e.request.Header.Get(p.typeHeader); t != "" {
			if p.spaced {
				t = strings.ReplaceAll(t, " ", "_")
			}
			return t, p.typeHeader
		}
	}
	return "", ""
}

// memberType returns the type in the body's member "type", or in the event within the body.
func (e *envelope) memberType() (eventType, from string) {
	// Slack's outer type only says that there is an event inside.
	outer := e.member("type")
	if outer != "" && outer == e.wrapper {
		if t := e.member("event", "type"); t != "" {
			return t, "event.type"
		}
	}
	return outer, "type"
}

// fieldType returns the type in the provider's own member of the body.
func (e *envelope) fieldType() (eventType, from string) {
	if e.typeField == "" {
		return "", ""
	}
	return e.member(e.typeField), e.typeField
}

// member returns a string in the body, found by the names on its path; "" if there is none.
// The header Content-Type is not signed. So a signed body is also read as a form if its
// content type is not that of a form.
func (e *envelope) member(path ...string) string {
	contentType := e.request.Header.Get("Content-Type")
	if len(path) == 1 && !isForm(contentType) {
		if s := stringMember(e.request.Body, path[0]); s != "" || !e.signed() || looksLikeJSON(e.request.Body) {
			return s
		}
		contentType = formType
	}
	v := expr.NewDocument(e.request.Body, contentType).Value()
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	s, _ := v.(string)
	return s
}

const formType = "application/x-www-form-urlencoded"

func isForm(contentType string) bool { return media(contentType) == formType }

// looksLikeJSON reports whether a body begins like a JSON object or array, and so is not a
// form.
func looksLikeJSON(body []byte) bool {
	body = bytes.TrimLeft(unmarked(body), " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// usable returns the type, or the fallback type if it is not valid, with a warning.
func (e *envelope) usable(eventType, from string) string {
	if ValidType(eventType) {
		return eventType
	}
	e.log.Warn("unusable event type replaced", "source", e.source.Name, "from", from,
		"event_type", fmt.Sprintf("%.64q", eventType), "used", fallbackType)
	return fallbackType
}

// ValidType reports whether a text can be an event type: 1 to 128 characters of
// [A-Za-z0-9._:/-], without "..", which would leave the folder in a path that contains the
// type.
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

// deliveryID returns the sender's own id for this delivery; "" if it gave none.
func (e *envelope) deliveryID() (string, error) {
	h := e.request.Header
	if keys, ok := h[idempotencyKey]; ok && e.request.Kind == Event {
		// Two keys, or half a key, would treat different events as one.
		if len(keys) != 1 || keys[0] == "" || !clean(keys[0], maxDeliveryID) {
			return "", malformed("Idempotency-Key must be one header of 1 to 255 bytes of text")
		}
		return bounded(keys[0]), nil
	}
	if e.source.ByBody {
		return digest(e.signedBody), nil
	}
	for _, name := range e.idHeaders {
		if id := h.Get(name); id != "" {
			return bounded(id), nil
		}
	}
	if e.idField != "" {
		if id := e.member(e.idField); id != "" {
			return bounded(id), nil
		}
	}
	return e.attributesID(), nil
}

// attributesID returns the delivery id of a CloudEvent: its source, with blanks encoded,
// and its id. Attributes in headers beside a signed body are not signed, so they give no
// delivery id.
func (e *envelope) attributesID() string {
	if e.signed() && !e.inBody {
		return ""
	}
	source, id := percentDecoded(e.request.Header.Get(ceSource)), percentDecoded(e.request.Header.Get(ceID))
	if source == "" || id == "" {
		return ""
	}
	return bounded(percentEncoded(source) + " " + id)
}

// digested begins the digests. Ids with this prefix are digested too, so that no sender can
// choose an id that equals the digest of another one.
const digested = "sha256:"

// bounded replaces an id that is too long or has unsuitable characters by a digest. The
// digests of different ids differ as well.
func bounded(id string) string {
	if clean(id, maxDeliveryID) && !strings.HasPrefix(id, digested) {
		return id
	}
	return digest([]byte(id))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return digested + hex.EncodeToString(sum[:])
}

// clean reports whether a header value may be stored as text: at most limit bytes of UTF-8
// without control characters.
func clean(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// dropUnbelieved removes an unsigned ce-type that differs from the type of the event.
// Deliveries carry the kept attributes, and receivers would trust it.
func (e *envelope) dropUnbelieved(eventType string) {
	if !e.signed() || e.inBody {
		return
	}
	if t, name := e.attributeType(); t != "" && t != eventType {
		e.request.Header = maps.Clone(e.request.Header)
		delete(e.request.Header, name)
		e.dropped(name)
	}
}

// empty reports whether an API event came without a body. Its payload is an empty object
// then, and the declared content type is ignored: curl declares a form. A CloudEvent
// without a body is a CloudEvent without data, and stays so.
func (e *envelope) empty() bool {
	return len(e.request.Body) == 0 && e.request.Kind == Event && e.request.Header.Get("Ce-Specversion") == ""
}

func (e *envelope) payload() []byte {
	if e.empty() {
		return []byte(emptyEvent)
	}
	return e.request.Body
}

func (e *envelope) contentType() string {
	if e.empty() {
		return ""
	}
	t := e.request.Header.Get("Content-Type")
	if !clean(t, maxContentType) {
		e.dropped("Content-Type")
		return ""
	}
	return t
}

// headers returns the fields that are kept with the event, under lower-case names.
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

// attributesFirst are the attributes that make an event a CloudEvent, and the attributes by
// which other systems identify it.
var attributesFirst = []string{ceID, ceSource, "Ce-Specversion", ceType, "Ce-Time", "Ce-Subject"}

// keepAttributes keeps CloudEvents attributes within the bounds. Extensions come last, and
// otherwise the order is by name, so that equal requests keep equal attributes.
func (e *envelope) keepAttributes(into map[string]string, names []string) {
	slices.SortFunc(names, func(a, b string) int {
		if first := cmp.Compare(rank(a), rank(b)); first != 0 {
			return first
		}
		return strings.Compare(a, b)
	})
	// A large attribute is left out, and smaller ones after it may still fit.
	room, left := maxHeaderBytes, maxHeaders
	for _, name := range names {
		value := e.request.Header.Get(name)
		size := len(name) + len(value)
		if left == 0 || size > room || !clean(value, maxHeaderBytes) {
			e.dropped(name)
			continue
		}
		into[strings.ToLower(name)] = value
		room, left = room-size, left-1
	}
}

// rank is the position of an attribute in attributesFirst; all extensions share the last.
func rank(name string) int {
	if i := slices.Index(attributesFirst, name); i >= 0 {
		return i
	}
	return len(attributesFirst)
}

func (e *envelope) dropped(name string) { e.lost = append(e.lost, name) }
