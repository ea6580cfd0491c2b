package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
)

// Errors of JSON that has no view. It is never taken for text: a text where filters and
// templates expect an object would be sent on as if it were right.
var (
	ErrTooDeep = errors.New("the JSON is nested deeper than 200 levels")
	ErrTooLong = errors.New("the JSON has 512 MiB or more")
)

// Unreadable reports whether an error says that a payload is JSON that has no view.
func Unreadable(err error) bool { return errors.Is(err, ErrTooDeep) || errors.Is(err, ErrTooLong) }

// maxDepth bounds how deep a payload's arrays and objects are nested, so that
// walking one needs little stack.
const maxDepth = 200

// formType is the content type of HTML forms. Some providers send their JSON in a form field.
const formType = "application/x-www-form-urlencoded"

// A Document is the JSON view of a payload. The payload is read onto a tape when an
// expression first needs it. The tape answers plain paths, and templates copy arrays and
// objects from it. A tree is built from the tape if an expression needs one. A Document is
// not safe for concurrent use.
type Document struct {
	payload     []byte
	contentType string
	read        bool

	text  []byte // the recorded text
	tape  []node // nil if the payload is not JSON
	known []answer
	steps int // taken on the tape

	budget budget // of the current evaluation
	asked  bool   // whether the current evaluation asked for the view
	broken error  // if the payload is JSON that has no view

	value   any
	decoded bool // whether value is the tree
}

// NewDocument returns the view of a payload, which must not change from now on.
// The content type may have parameters, and may be empty.
func NewDocument(payload []byte, contentType string) *Document {
	return &Document{payload: payload, contentType: contentType}
}

// View returns the view of a payload: null if the payload is opaque, else that of
// [NewDocument]. An opaque payload is any bytes, or is absent.
func View(payload []byte, contentType string, opaque bool) *Document {
	if opaque {
		return &Document{read: true, decoded: true}
	}
	return NewDocument(payload, contentType)
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
// Of JSON that has no view it is nil; see [Document.Err]. A byte order mark before JSON is no
// part of it. A form that [net/url.ParseQuery] refuses is taken for text. A JSON object or
// array that the sender calls a form is JSON: no form looks like that, and curl calls every
// body a form.
func (d *Document) Value() any {
	d.view()
	if !d.decoded {
		d.value, _ = d.tree(0)
		d.decoded = true
	}
	return d.value
}

// Err returns [ErrTooDeep] or [ErrTooLong] if the payload is JSON that has no view, else nil.
// If the answer is plain, it does not read the payload.
func (d *Document) Err() error {
	if !d.read && !isForm(d.contentType) && len(d.payload) <= maxText && !TooDeep(d.payload) {
		return nil
	}
	d.view()
	return d.broken
}

// JSON returns the text of the view if that is JSON, unchanged except for the blanks around
// it. It returns false for the fields of a form, and for any payload that is not JSON.
func (d *Document) JSON() ([]byte, bool) {
	if d.view(); d.tape == nil {
		return nil, false
	}
	return bytes.TrimSpace(d.text), true
}

// view reads the payload.
func (d *Document) view() {
	// asked is set for each evaluation, read only once.
	if d.asked = true; d.read {
		return
	}
	d.read = true
	// JSON is tried first, since many senders give a wrong content type or none.
	form := isForm(d.contentType)
	switch {
	case (!form || startsTree(d.payload)) && d.record(d.payload):
	case form && d.readForm():
	default:
		d.value, d.decoded = text(d.payload), true
	}
}

// mark is the byte order mark in UTF-8, which some programs write before JSON.
var mark = []byte("\ufeff")

// record reads a text onto the tape, if it is JSON. If the JSON has no view, its view is nil.
func (d *Document) record(text []byte) bool {
	text = bytes.TrimPrefix(text, mark)
	if d.text, d.tape = text, record(text); d.tape != nil {
		return true
	}
	d.broken = unreadable(text)
	d.decoded = d.broken != nil
	return d.decoded
}

// unreadable returns why a text that cannot be recorded has no view; nil if it is no JSON.
func unreadable(text []byte) error {
	switch {
	// isJSON reads the whole text, so it is called only for a text that could not be recorded.
	case len(text) > maxText && isJSON(text):
		return ErrTooLong
	case TooDeep(text) && isJSON(text):
		return ErrTooDeep
	}
	return nil
}

// isJSON reports whether a text is JSON. [json.Valid] refuses more than 10,000 levels, so
// deeper text is read token by token, which takes no stack.
func isJSON(text []byte) bool {
	if json.Valid(text) {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			// Nothing may follow the value.
			_, err = d.Token()
			return err == io.EOF
		}
	}
}

// readForm reads the payload as a form, if it is one.
func (d *Document) readForm() bool {
	fields, err := url.ParseQuery(string(d.payload))
	if err != nil || len(fields) == 0 {
		return false
	}
	// GitHub and others can be configured to send JSON in this field.
	if sole := fields["payload"]; len(fields) == 1 && len(sole) == 1 && d.record([]byte(sole[0])) {
		return true
	}
	d.value, d.decoded = formValue(fields)
	return d.decoded
}

// isForm reports whether a content type means a form. Its parameters, such as a charset,
// do not matter.
func isForm(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), formType)
}

// startsTree reports whether a payload begins like a JSON object or array.
func startsTree(payload []byte) bool {
	p := bytes.TrimLeft(bytes.TrimPrefix(payload, mark), " \t\r\n")
	return len(p) > 0 && (p[0] == '{' || p[0] == '[')
}

// text returns the payload as a JSON string, which is always valid UTF-8.
func text(payload []byte) string { return strings.ToValidUTF8(string(payload), "\uFFFD") }

// TooDeep reports whether JSON is nested deeper than the 200 levels that are read. For text
// that is not JSON the result is meaningless.
func TooDeep(payload []byte) bool {
	// It counts brackets outside of strings, which takes a fraction of the time of parsing.
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

// fieldValue returns the text of a field, or the array of the texts of a repeated field.
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
