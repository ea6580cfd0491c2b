// Package wire is the JSON records of the management API: what its replies are made of,
// and what the command line prints with --json.
//
// The one idea to know: a field that does not apply is null, never absent, so that
// scripts may rely on the names. Absent are only what a job has as a message, a step
// or one that waits, and the attempts that nobody asked for.
//
// A record that holds a document of somebody else's, such as a payload, is put together
// from a head, the document and a tail. So whoever writes it may send the document byte
// for byte, which encoding/json does not. [Event.Line] is the form of exports.
//
// wire may import core, the services whose records these are, and config for how a
// duration is spelt.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
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

// quote is a text as JSON has it. Whether < and > are escaped is for whoever encodes the
// record to say, who may still do it.
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
	if s == "" {
		t.Time = time.Time{}
		return nil
	}
	at, err := core.ParseTime(s)
	t.Time = at
	return err
}

// Document is a payload, or what else may be one, as it stands in JSON: the document it
// is, byte for byte, or a string if it is none.
func Document(text []byte) json.RawMessage {
	if isJSON(text) {
		return text
	}
	quoted, _ := json.Marshal(string(text)) // a string always marshals
	return quoted
}

// orNull is stored JSON, nil if there is none.
func orNull(text []byte) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	return Document(text)
}

func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// List maps a list, and an empty one to an empty one, not to null.
func List[T, R any](items []T, record func(T) R) []R {
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = record(item)
	}
	return out
}

// An Error is the reply to what is refused.
type Error struct {
	Error string `json:"error"`
}

// A Retried is how many jobs are available again.
type Retried struct {
	Retried int `json:"retried"`
}

// A BreakerReset tells whether a circuit breaker was open and is closed now.
type BreakerReset struct {
	Reset bool `json:"reset"`
}

// A Drained is how many messages are gone.
type Drained struct {
	Drained int `json:"drained"`
}
