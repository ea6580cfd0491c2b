package web

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/units"
)

// What the requests of the API say is read strictly, parameters behind the question mark
// and fields of bodies alike: one that is misspelt, stands at the wrong place or is given
// twice would else be ignored without a word, and what it was to select be replayed,
// retried or exported whole.

var (
	errQuery  = core.Refuse(core.Invalid, "the query is malformed")
	errObject = core.Refuse(core.Invalid, "the body must be a JSON object")
)

// A query is the parameters behind the question mark.
type query url.Values

// queryOf reads a query that has none but the known parameters.
func queryOf(r *http.Request, known ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errQuery
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return nil, unknown("parameter", name, "known here", known)
		}
	}
	return query(values), nil
}

// bare serves a route that takes no parameters.
func bare(serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := queryOf(r); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// unasked refuses parameters where a body says what is to be done, in these fields.
func unasked(r *http.Request, fields []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errQuery
	}
	if names := slices.Sorted(maps.Keys(values)); len(names) > 0 {
		return unknown("parameter", names[0], "what is asked for goes into the body, as the fields", fields)
	}
	return nil
}

// text returns a parameter and whether it is there. It may be there once.
func (q query) text(name string) (text string, given bool, err error) {
	switch values := q[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, core.Refuse(core.Invalid, "%s must be given once", name)
}

// number returns a parameter from low to high, or what it is if it is not there.
func (q query) number(name string, absent, low, high int) (int, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return absent, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, core.Refuse(core.Invalid, "%s must be a whole number from %d to %d; not %s", name, low, high, quote(text))
	}
	return n, nil
}

// atLeast returns a parameter from low on, or what it is if it is not there.
func (q query) atLeast(name string, absent, low int) (int, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return absent, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low {
		return 0, core.Refuse(core.Invalid, "%s must be a whole number, at least %d; not %s", name, low, quote(text))
	}
	return n, nil
}

// duration returns a parameter within a span; zero if it is not there.
func (q query) duration(name string, s span) (time.Duration, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return 0, err
	}
	return s.parse(name, text, quote(text))
}

// id returns a parameter that is one; none if it is not there.
func (q query) id(name string) (core.ID, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return "", err
	}
	return parseID(name, text)
}

// name returns a parameter that is a name, see named; "" if it is not there.
func (q query) name(name, what string) (string, error) {
	text, given, err := q.text(name)
	if err == nil && given && !named(text) {
		err = core.Refuse(core.Invalid, "%s must be %s", name, what)
	}
	return text, err
}

// time returns a parameter that is one; zero if it is not there.
func (q query) time(name string) (time.Time, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return time.Time{}, err
	}
	return parseTime(name, text)
}

// flag returns a parameter that is true or false; false if it is not there.
func (q query) flag(name string) (bool, error) {
	text, given, err := q.text(name)
	switch {
	case err != nil || !given || text == "false":
		return false, err
	case text == "true":
		return true, nil
	}
	return false, core.Refuse(core.Invalid, "%s must be true or false; not %s", name, quote(text))
}

// fields are those of a JSON object in a body.
type fields map[string]json.RawMessage

// fieldsOf reads a JSON object that has none but the known fields.
func fieldsOf(body []byte, known ...string) (fields, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errObject
	}
	f := fields{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errObject
		}
		name := key.(string) // a key is nothing else
		switch _, twice := f[name]; {
		case !slices.Contains(known, name):
			return nil, unknown("field", name, "known here", known)
		case twice:
			return nil, core.Refuse(core.Invalid, "%s must be given once", name)
		}
		f[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errObject
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errObject
	}
	return f, nil
}

// unknown refuses a field or parameter, and says in these words which there are.
func unknown(what, name, words string, known []string) error {
	if len(known) == 0 {
		return core.Refuse(core.Invalid, "unknown %s %s; there are none here", what, quote(name))
	}
	return core.Refuse(core.Invalid, "unknown %s %s; %s: %s", what, quote(name), words, strings.Join(known, ", "))
}

// texts returns a field that is a list of at most so many strings.
func (f fields) texts(name string, most int) ([]string, error) {
	var list []*string // null is no string
	err := json.Unmarshal(f[name], &list)
	if err != nil || list == nil || len(list) > most || slices.Contains(list, nil) {
		return nil, core.Refuse(core.Invalid, "%s must be a list of at most %d strings", name, most)
	}
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = *s
	}
	return texts, nil
}

// duration returns a field within a span; zero if it is not there. It is a string, or
// a number of seconds.
func (f fields) duration(name string, s span) (time.Duration, error) {
	raw := f[name]
	if raw == nil {
		return 0, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text) // it was decoded before
	}
	return s.parse(name, text, clip(string(raw)))
}

// id returns a field that is one; none if it is not there.
func (f fields) id(name string) (core.ID, error) {
	text, given, err := f.text(name)
	if err != nil || !given {
		return "", err
	}
	return parseID(name, text)
}

// text returns a field that is a string, and whether it is there.
func (f fields) text(name string) (text string, given bool, err error) {
	raw := f[name]
	if raw == nil {
		return "", false, nil
	}
	if json.Unmarshal(raw, &text) != nil || raw[0] != '"' {
		return "", true, core.Refuse(core.Invalid, "%s must be a string", name)
	}
	return text, true, nil
}

// name returns a field that is a name, see named; "" if it is not there.
func (f fields) name(name, what string) (string, error) {
	text, given, err := f.text(name)
	if err == nil && given && !named(text) {
		err = core.Refuse(core.Invalid, "%s must be %s", name, what)
	}
	return text, err
}

// time returns a field that is one; zero if it is not there.
func (f fields) time(name string) (time.Time, error) {
	text, given, err := f.text(name)
	if err != nil || !given {
		return time.Time{}, err
	}
	return parseTime(name, text)
}

// flag returns a field that is true or false; false if it is not there.
func (f fields) flag(name string) (bool, error) {
	switch raw := f[name]; string(raw) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, core.Refuse(core.Invalid, "%s must be true or false; not %s", name, clip(string(raw)))
	}
}

// number returns a field from low to high, or what it is if it is not there.
func (f fields) number(name string, absent, low, high int) (int, error) {
	raw := f[name]
	if raw == nil {
		return absent, nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < low || n > high {
		return 0, core.Refuse(core.Invalid, "%s must be a whole number from %d to %d; not %s", name, low, high, clip(string(raw)))
	}
	return n, nil
}

// named reports whether anything may be called so: not every database can be asked for
// any text.
func named(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

func parseTime(name, text string) (time.Time, error) {
	t, err := core.ParseTime(text)
	if err != nil {
		return t, core.Refuse(core.Invalid, "%s: %v", name, err)
	}
	return t, nil
}

func parseID(name, text string) (core.ID, error) {
	id, err := core.ParseID(text)
	if err != nil {
		return "", core.Refuse(core.Invalid, "%s: %v", name, err)
	}
	return id, nil
}

// A span is which durations are allowed, and how to say so.
type span struct {
	low, high time.Duration
	words     string
}

// parse reads a duration in the spelling of the configuration.
func (s span) parse(name, text, shown string) (time.Duration, error) {
	d, err := units.ParseDuration(text)
	if err != nil || d.Duration < s.low || d.Duration > s.high {
		return 0, core.Refuse(core.Invalid, "%s must be %s; not %s", name, s.words, shown)
	}
	return d.Duration, nil
}

// quote shows what a caller wrote, the end of a long text missing.
func quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
