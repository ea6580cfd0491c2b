package intake

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// CloudEvents 1.0 over HTTP, https://github.com/cloudevents/spec. In binary mode the
// attributes are in headers. In structured mode all of the event is one JSON object. In
// both modes a stored event keeps its attributes as headers have them.
const (
	structuredMode = "application/cloudevents"

	cloudEvents = "Ce-" // prefix of attributes
	ceType      = "Ce-Type"
	ceSource    = "Ce-Source"
	ceID        = "Ce-Id"
)

// isStructured reports whether a body of this type is a structured CloudEvent. It refuses
// the formats that the gateway does not read.
func isStructured(contentType string) (bool, error) {
	m := media(contentType)
	switch {
	case !strings.HasPrefix(m, structuredMode):
		return false, nil
	case strings.HasPrefix(m, structuredMode+"-batch"):
		// Receive makes one event of a request. Only ReceiveAll reads a batch.
		return false, core.Refuse(core.Unsupported, "CloudEvents batches are accepted at /events/{source} only; post each event by itself here")
	// An event in another format, such as +avro, would be stored with its attributes
	// hidden in the payload.
	case m != structuredMode && m != structuredMode+"+json":
		return false, core.Refuse(core.Unsupported, "of structured CloudEvents only %s+json is accepted", structuredMode)
	}
	return true, nil
}

// media returns a content type without its parameters, in lower case.
func media(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// A cloudEvent is the content of a structured CloudEvent.
type cloudEvent struct {
	attributes  map[string]string // all but datacontenttype, by lower-case name
	data        []byte            // nil if the event has none
	contentType string            // of data; empty if it is unknown
}

// parseCloudEvent reads a structured CloudEvent. The data keeps its spelling, with two
// exceptions that are decoded: a text whose type is not JSON, and base64. If a member
// occurs twice, the last one counts.
func parseCloudEvent(body []byte) (cloudEvent, error) {
	members, err := membersOf(body)
	if err != nil {
		return cloudEvent{}, err
	}
	ce := cloudEvent{attributes: map[string]string{}}
	for name, raw := range members {
		// In the JSON format an attribute that is null is an attribute that is not
		// set.
		if name == "data" || name == "data_base64" || string(raw) == "null" {
			continue
		}
		// The name becomes part of a header's name, so the characters are limited to
		// the specification's.
		if !attributeName(name) {
			return cloudEvent{}, malformed("a CloudEvent's attribute %.40q must be named with a-z and 0-9 only", name)
		}
		value, ok := attribute(raw)
		if !ok {
			return cloudEvent{}, malformed("a CloudEvent's %q must be a string, a number or a boolean", name)
		}
		ce.attributes[name] = value
	}
	for _, name := range []string{"specversion", "id", "source", "type"} {
		// The required attributes must be strings: the id 7 and the id "7" would be
		// one delivery otherwise. A missing member ends the condition before raw[0]
		// is read.
		if raw := members[name]; ce.attributes[name] == "" || raw[0] != '"' {
			return cloudEvent{}, malformed("a CloudEvent's %q must be a string that is not empty", name)
		}
	}
	// Versions 1.x are compatible with 1.0. Version 0.3 has other attributes.
	if !strings.HasPrefix(ce.attributes["specversion"], "1.") {
		return cloudEvent{}, malformed(`a CloudEvent's "specversion" must be 1.0`)
	}
	return ce, ce.open(members["data"], members["data_base64"])
}

// membersOf returns the members of a JSON object, with their spelling. It stops at more
// members than an event may have, before it stores the rest: a body of 1 MiB can have 100,000.
func membersOf(body []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	err := expr.Members(unmarked(body), func(name string, value []byte) error {
		if members[name] = value; len(members) > maxHeaders+2 { // data beside attributes
			return malformed("a CloudEvent may have at most %d attributes", maxHeaders)
		}
		return nil
	})
	if errors.Is(err, expr.ErrNotTree) || errors.Is(err, expr.ErrNotPart) {
		return nil, malformed("a CloudEvent must be a JSON object")
	}
	return members, err
}

// open sets the data and its type. The type is an attribute in structured mode only.
func (ce *cloudEvent) open(data, encoded json.RawMessage) error {
	// In binary mode the header Content-Type has this attribute, and the event is stored
	// in that form.
	ce.contentType = ce.attributes["datacontenttype"]
	delete(ce.attributes, "datacontenttype")
	var text string
	switch {
	case encoded != nil && data != nil:
		return malformed(`a CloudEvent must not have both "data" and "data_base64"`)
	case encoded != nil:
		var err error
		if json.Unmarshal(encoded, &text) != nil {
			return malformed(`a CloudEvent's "data_base64" must be a string`)
		}
		if ce.data, err = base64.StdEncoding.DecodeString(text); err != nil {
			return malformed(`a CloudEvent's "data_base64" must be base64`)
		}
	// An event may have no data: its payload is empty.
	case data == nil:
	// Data of another type, such as text/plain, is a JSON string in this format.
	// Receivers expect the text itself. A value that is no string stays as it is spelled.
	case !isJSON(ce.contentType) && json.Unmarshal(data, &text) == nil:
		ce.data = []byte(text)
	default:
		ce.data = bytes.Clone(data)
		// The JSON format says that data without a type is JSON. The type is stated
		// here, since the rule does not hold outside of the format.
		if ce.contentType == "" {
			ce.contentType = "application/json"
		}
	}
	return nil
}

// isJSON reports whether data of this type is JSON. Data without a type is.
func isJSON(contentType string) bool {
	m := media(contentType)
	return m == "" || m == "application/json" || m == "text/json" || strings.HasSuffix(m, "+json")
}

// attribute returns an attribute's value as text.
func attribute(raw json.RawMessage) (string, bool) {
	var s string
	switch {
	case raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return string(raw[1 : len(raw)-1]), true // as nearly all are, and in a batch there are thousands
	case json.Unmarshal(raw, &s) == nil:
		return s, true
	case raw[0] == '{' || raw[0] == '[':
		return "", false
	}
	// Numbers and booleans keep their spelling, so that a large integer loses no digits.
	return string(raw), true
}

// attributeName reports whether a text has only the characters that CloudEvents permits in
// the names of attributes.
func attributeName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// malformed returns a refusal whose whole message the sender may see. No value of a secret
// may be in it.
func malformed(format string, args ...any) error {
	return &core.Refusal{Kind: core.Invalid, Message: fmt.Sprintf(format, args...), Cause: ErrMalformed}
}

// percentEncoded returns an attribute's value as headers have it: see section 3.1.3.2 of
// the HTTP binding.
func percentEncoded(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && c != '"' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// percentDecoded returns the value of an attribute from a header. It removes the quotes
// that some senders add, and decodes once. A text that is not encoded correctly stays
// unchanged.
func percentDecoded(s string) string {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1 : len(s)-1])
	}
	// Most values have no escapes, and need no copy.
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	// The value is stored as text, and some databases refuse text that is not UTF-8.
	if decoded := b.String(); utf8.ValidString(decoded) {
		return decoded
	}
	return s
}
