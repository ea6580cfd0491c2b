package intake

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
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
		return false, core.Refuse(core.Unsupported, "CloudEvents batches are accepted at /events/{source} only; post each event by itself here")
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
	attributes  map[string]string
	data        []byte
	contentType string
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
		if name == "data" || name == "data_base64" || string(raw) == "null" {
			continue
		}
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
		if raw := members[name]; ce.attributes[name] == "" || raw[0] != '"' {
			return cloudEvent{}, malformed("a CloudEvent's %q must be a string that is not empty", name)
		}
	}
	if !strings.HasPrefix(ce.attributes["specversion"], "1.") {
		return cloudEvent{}, malformed(`a CloudEvent's "specversion" must be 1.0`)
	}
	return ce, ce.open(members["data"], members["data_base64"])
}

// membersOf returns the members of a JSON object, with their spelling. It stops at more
// members than an event may have, before it stores the rest.
func membersOf(body []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(unmarked(body)))
	notObject := malformed("a CloudEvent must be a JSON object")
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, notObject
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, notObject
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return nil, notObject
		}
		if members[name.(string)] = raw; len(members) > maxHeaders+2 { // data beside attributes
			return nil, malformed("a CloudEvent may have at most %d attributes", maxHeaders)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, notObject
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notObject
	}
	return members, nil
}

// open sets the data and its type. The type is an attribute in structured mode only.
func (ce *cloudEvent) open(data, encoded json.RawMessage) error {
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
	case data == nil:
	case !isJSON(ce.contentType) && json.Unmarshal(data, &text) == nil:
		ce.data = []byte(text)
	default:
		ce.data = bytes.Clone(data)
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
	case json.Unmarshal(raw, &s) == nil:
		return s, true
	case raw[0] == '{' || raw[0] == '[':
		return "", false
	}
	return string(raw), true
}

func attributeName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

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
	if decoded := b.String(); utf8.ValidString(decoded) {
		return decoded
	}
	return s
}
