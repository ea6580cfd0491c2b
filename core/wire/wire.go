// Package wire has the JSON records of the management API. The API replies with them, and
// the command line prints them with --json.
//
// The one idea to know: a field that does not apply is null, never absent, so that scripts
// may rely on the names. The exceptions are fields that only a message, a step or a waiting
// job has, and attempts that were not requested.
//
// A record with a document of another author, such as a payload, consists of a head, the
// document and a tail. So a writer may send the document byte for byte, which encoding/json
// does not. [Event.Line] is the form of exports.
//
// wire may import core, the services whose records these are, and config for the spelling
// of durations.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// A Text is null if it is empty.
type Text string

// MarshalJSON implements [json.Marshaler].
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return quote(string(t)), nil
}

// quote returns a text as JSON. It leaves < and > alone; an encoder of the record may still
// escape them.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// A Time is in milliseconds precision, null if it is zero.
type Time struct{ time.Time }

// MarshalJSON implements [json.Marshaler].
func (t Time) MarshalJSON() ([]byte, error) { return Text(core.FormatTime(t.Time)).MarshalJSON() }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Time) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("a time: %w", err)
	}
	// null decodes to "".
	if s == "" {
		t.Time = time.Time{}
		return nil
	}
	at, err := core.ParseTime(s)
	t.Time = at
	return err
}

// Document returns a payload, or another document, as JSON: the document byte for byte if
// it is JSON, else a string.
func Document(text []byte) json.RawMessage {
	if isJSON(text) {
		return text
	}
	quoted, _ := json.Marshal(string(text)) // a string always marshals
	return quoted
}

// orNull returns stored JSON, nil if there is none.
func orNull(text []byte) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	return Document(text)
}

// isJSON reports whether a text is JSON in UTF-8. json.Valid alone accepts other bytes in strings.
func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// List makes the record of each item. The result for an empty list is an empty list, not null.
func List[T, R any](items []T, record func(T) R) []R {
	// make, since encoding/json writes a nil slice as null.
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = record(item)
	}
	return out
}

// An Error is the reply to a refused request.
type Error struct {
	Error string `json:"error"`
}

// A Retried is the number of jobs that are available again. Operation goes on with the others; it is ""
// if there are none.
type Retried struct {
	Retried   int    `json:"retried"`
	Operation string `json:"operation,omitempty"`
}

// A BreakerReset says whether a circuit breaker was open and is closed now.
type BreakerReset struct {
	Reset bool `json:"reset"`
}

// A Fired is an event that an operator made of a schedule.
type Fired struct {
	Source string  `json:"source"`
	Event  core.ID `json:"event_id"`
	Jobs   int     `json:"jobs"`
	At     Time    `json:"fired_at"`
	Held   bool    `json:"held"` // the jobs wait until the source is released
}

// FiredOf returns the record of an event.
func FiredOf(f manage.Fired) Fired { return Fired{f.Source, f.Event, f.Jobs, Time{f.At}, f.Held} }

// Core returns the event.
func (f Fired) Core() manage.Fired {
	return manage.Fired{Source: f.Source, Event: f.Event, Jobs: f.Jobs, At: f.At.Time, Held: f.Held}
}

// A Hold is a handler, queue, workflow or source that an operator holds.
type Hold struct {
	Target string `json:"target"` // see [core.Lane.Consumer]
	Since  Time   `json:"since"`
	Until  Time   `json:"until"` // null: until it is released
	Reason Text   `json:"reason"`
}

// HoldOf returns the record of a hold.
func HoldOf(h core.Hold) Hold {
	return Hold{h.Lane.Consumer(), Time{h.Since}, Time{h.Until}, Text(h.Reason)}
}

// Holds is all holds that have not ended.
type Holds struct {
	Holds []Hold `json:"holds"`
}

// A Released says whether a target was held and is not held now.
type Released struct {
	Released bool `json:"released"`
}

// A Drained is the number of deleted messages.
type Drained struct {
	Drained int `json:"drained"`
}
