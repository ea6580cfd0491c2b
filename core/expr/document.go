package expr

import (
	"bytes"
	"net/url"
	"strings"
)

// maxDepth bounds how deep a payload's arrays and objects are nested, so that
// walking one needs little stack.
const maxDepth = 200

const formType = "application/x-www-form-urlencoded"

// A Document is the JSON view of a payload, read when it is first asked for: onto a
// tape, which answers plain paths and is written out where a template has an array
// or object, and from that into a tree if somebody needs one. It is not safe for
// concurrent use.
type Document struct {
	payload     []byte
	contentType string
	read        bool

	text  []byte // what is on the tape
	tape  []node // nil of what is not JSON
	known []answer
	steps int // taken on the tape

	budget budget // of the evaluation that is under way

	value   any
	decoded bool // whether value is the tree
}

// NewDocument returns the view of a payload, which must not change from now on.
// The content type may have parameters, and may be empty.
func NewDocument(payload []byte, contentType string) *Document {
	return &Document{payload: payload, contentType: contentType}
}

// Value returns the payload as a tree of nil, bool, [json.Number], string, []any
// and map[string]any, which is shared by all callers and must not be changed. It
// is, in this order:
//
//   - of a form (application/x-www-form-urlencoded) the object of its fields, a
//     repeated field being the array of its values; or, if its only field is
//     called payload and holds JSON, that JSON;
//   - the parsed JSON; of members with the same name the last counts;
//   - the text itself, as a string; of an empty payload "".
//
// JSON that is nested deeper than 200 levels or has 512 MiB is taken for text, and
// so is a form that [net/url.ParseQuery] refuses. What is called a form but is a
// JSON object or array is JSON: no form looks like that, and curl calls everything a
// form.
func (d *Document) Value() any {
	d.view()
	if !d.decoded {
		d.value, _ = d.tree(0)
		d.decoded = true
	}
	return d.value
}

// JSON returns the text that the view was read from if that is JSON, as it is written but
// for the blanks around it. There is none of the fields of a form, nor of what is no JSON.
func (d *Document) JSON() ([]byte, bool) {
	if d.view(); d.tape == nil {
		return nil, false
	}
	return bytes.TrimSpace(d.text), true
}

// view reads the payload.
func (d *Document) view() {
	if d.read {
		return
	}
	d.read = true
	form := isForm(d.contentType)
	switch {
	case (!form || startsTree(d.payload)) && d.record(d.payload):
	case form && d.readForm():
	default:
		d.value, d.decoded = text(d.payload), true
	}
}

// record reads a text onto the tape, if it is JSON.
func (d *Document) record(text []byte) bool {
	d.text, d.tape = text, record(text)
	return d.tape != nil
}

// readForm reads the payload as a form, if it is one.
func (d *Document) readForm() bool {
	fields, err := url.ParseQuery(string(d.payload))
	if err != nil || len(fields) == 0 {
		return false
	}
	if sole := fields["payload"]; len(fields) == 1 && len(sole) == 1 && d.record([]byte(sole[0])) {
		return true
	}
	d.value, d.decoded = formValue(fields)
	return d.decoded
}

func isForm(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), formType)
}

// startsTree reports whether a payload begins as a JSON object or array does.
func startsTree(payload []byte) bool {
	p := bytes.TrimLeft(payload, " \t\r\n")
	return len(p) > 0 && (p[0] == '{' || p[0] == '[')
}

// text is the payload as a JSON string, which is valid UTF-8 by definition.
func text(payload []byte) string { return strings.ToValidUTF8(string(payload), "\uFFFD") }

// TooDeep reports whether JSON is nested deeper than the 200 levels that are
// read. Of text that is not JSON the answer means nothing.
func TooDeep(payload []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(payload); i++ {
		switch c := payload[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// formValue returns the object of a form's fields, if it is one.
func formValue(fields url.Values) (any, bool) {
	object := make(map[string]any, len(fields))
	for name, values := range fields {
		// Two names that differ in invalid bytes alone would be one here, and the
		// order of a map would decide between them.
		if valid := text([]byte(name)); valid != name {
			return nil, false
		}
		object[name] = fieldValue(values)
	}
	return object, true
}

func fieldValue(values []string) any {
	if len(values) == 1 {
		return text([]byte(values[0]))
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = text([]byte(v))
	}
	return list
}
