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

// Requests of the API are read strictly, both parameters of the query and fields of bodies.
// A misspelt, misplaced or repeated selector would otherwise be ignored, and the request
// would replay, retry or export everything.

var (
	errQuery  = core.Refuse(core.Invalid, "the query is malformed")
	errObject = core.Refuse(core.Invalid, "the body must be a JSON object")
)

// A query is the parameters of a URL.
//
// Its methods and those of [fields] have the same names, results and refusals, so that a selector
// means the same in a query and in a body.
type query url.Values

// queryOf reads a query that has only the known parameters.
func queryOf(r *http.Request, known ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errQuery
	}
	// Sorted, so that a request with several faults always gets the same reply.
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

// unasked refuses parameters of a request whose selectors are fields of the body.
func unasked(r *http.Request, fields []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errQuery
	}
	if names := slices.Sorted(maps.Keys(values)); len(names) > 0 {
		return unknown("parameter", names[0], "parameters of this route go into the body, as the fields", fields)
	}
	return nil
}

// text returns a parameter and whether it is given. It may occur once.
func (q query) text(name string) (text string, given bool, err error) {
	switch values := q[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, core.Refuse(core.Invalid, "%s must be given once", name)
}

// number returns a parameter from low to high, or absent if it is not given.
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

// atLeast returns a parameter from low on, or absent if it is not given.
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

// duration returns a parameter within a span; zero if it is not given.
func (q query) duration(name string, s span) (time.Duration, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return 0, err
	}
	return s.parse(name, text, quote(text))
}

// id returns a parameter that is an id; "" if it is not given.
func (q query) id(name string) (core.ID, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return "", err
	}
	return parseID(name, text)
}

// name returns a parameter that is a name, see named; "" if it is not given.
func (q query) name(name, what string) (string, error) {
	text, given, err := q.text(name)
	if err == nil && given && !named(text) {
		err = core.Refuse(core.Invalid, "%s must be %s", name, what)
	}
	return text, err
}

// time returns a parameter that is a time; zero if it is not given.
func (q query) time(name string) (time.Time, error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return time.Time{}, err
	}
	return parseTime(name, text)
}

// flag returns a parameter that is true or false; false if it is not given.
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

// fields are the fields of a JSON object in a body.
type fields map[string]json.RawMessage

// fieldsOf reads a JSON object that has only the known fields.
func fieldsOf(body []byte, known ...string) (fields, error) {
	// The decoder reads field by field: json.Unmarshal would accept a repeated field and keep the
	// last value.
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
		// The faults of a field are reported in the order of the body.
		name := key.(string) // a key is always a string
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
	// Nothing may follow the object.
	if _, err := d.Token(); err != io.EOF {
		return nil, errObject
	}
	return f, nil
}

// unknown refuses a field or parameter, and lists the known ones after words.
func unknown(what, name, words string, known []string) error {
	if len(known) == 0 {
		return core.Refuse(core.Invalid, "unknown %s %s; there are none here", what, quote(name))
	}
	return core.Refuse(core.Invalid, "unknown %s %s; %s: %s", what, quote(name), words, strings.Join(known, ", "))
}

// texts returns a field that is a list of at most most strings.
func (f fields) texts(name string, most int) ([]string, error) {
	// Decoding into pointers tells null from an empty string.
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

// duration returns a field within a span; zero if it is not given. It is a string, or a
// number of seconds.
func (f fields) duration(name string, s span) (time.Duration, error) {
	raw := f[name]
	if raw == nil {
		return 0, nil
	}
	text := string(raw)
	// Both 30 and "30s" are durations, as in the configuration.
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text) // it was decoded before
	}
	return s.parse(name, text, clip(string(raw)))
}

// id returns a field that is an id; "" if it is not given.
func (f fields) id(name string) (core.ID, error) {
	text, given, err := f.text(name)
	if err != nil || !given {
		return "", err
	}
	return parseID(name, text)
}

// text returns a field that is a string, and whether it is given.
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

// name returns a field that is a name, see named; "" if it is not given.
func (f fields) name(name, what string) (string, error) {
	text, given, err := f.text(name)
	if err == nil && given && !named(text) {
		err = core.Refuse(core.Invalid, "%s must be %s", name, what)
	}
	return text, err
}

// time returns a field that is a time; zero if it is not given.
func (f fields) time(name string) (time.Time, error) {
	text, given, err := f.text(name)
	if err != nil || !given {
		return time.Time{}, err
	}
	return parseTime(name, text)
}

// flag returns a field that is true or false; false if it is not given.
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

// number returns a field from low to high, or absent if it is not given.
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

// named reports whether a text can be a stored name. Some databases reject other texts in
// queries.
func named(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// parseTime and parseID name the parameter in the refusal.
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

// A span is a range of allowed durations, with its description in words.
//
// The words are part of the refusal, so that the caller learns the range and an example at once.
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

// quote returns a caller's text for a message, cut if it is long.
func quote(s string) string { return strconv.Quote(clip(s)) }

// clip returns at most 40 bytes of a caller's text: a reply must not repeat a large request.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
