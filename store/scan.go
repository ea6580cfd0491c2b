package store

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// millis returns a time as it is stored: Unix milliseconds, or nil for the zero time.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// timeOf returns a stored time, the zero time for null.
func timeOf(v any) time.Time {
	ms, ok := v.(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// orNull stores an empty string as null, for columns in a unique index: nulls do not collide.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// textOf returns a value as text, "" for null and for an integer.
func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// intOf returns a value as an int, 0 for null and for a text.
func intOf(v any) int {
	n, _ := v.(int64)
	return int(n)
}

// qualified returns columns of a table with names of their own: "jobs.id AS jobs_id". D1
// returns rows as objects, in which two columns called id would be one.
func qualified(table, columns string) string {
	names := strings.Split(columns, ", ")
	for i, c := range names {
		names[i] = table + "." + c + " AS " + table + "_" + c
	}
	return strings.Join(names, ", ")
}

// encodeHeaders returns headers as JSON, "" for none.
func encodeHeaders(h map[string]string) string {
	if len(h) == 0 {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic("store: encode headers: " + err.Error()) // a map of strings always has a JSON form
	}
	return string(b)
}

// decodeHeaders reverses encodeHeaders. Damaged text yields no headers: the payload must stay
// readable.
func decodeHeaders(s string) map[string]string {
	if s == "" {
		return nil
	}
	var h map[string]string
	if json.Unmarshal([]byte(s), &h) != nil {
		return nil
	}
	return h
}

// inBase64 is the encoding of a payload that is not text. Text columns of some databases do not
// accept arbitrary bytes. JSON, in which D1 sends values, does not accept them either.
const inBase64 = "base64"

// encodePayload returns a payload as it is stored.
func encodePayload(e core.Event) string {
	if e.Binary {
		return base64.StdEncoding.EncodeToString(e.Payload)
	}
	return string(e.Payload)
}

// decodePayload sets the payload of an event from its columns.
func decodePayload(e *core.Event, text, encoding string) {
	if encoding == "" {
		e.Payload = []byte(text)
		return
	}
	// Only the gateway writes the column. If it is damaged, the bytes before the damage are
	// returned.
	e.Payload, _ = base64.StdEncoding.DecodeString(text)
	e.Binary = true
}

// textOrNull stores JSON. Nil means that there is none, which differs from the JSON null.
func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

// bytesOf returns a text as bytes, nil for null.
func bytesOf(v any) []byte {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	return []byte(text)
}

// encodeFan returns a Fan as text, "" for the zero Fan.
func encodeFan(f core.Fan) string {
	if f == (core.Fan{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d/%d", f.Total, f.Started, f.Ended, f.Bytes)
}

// decodeFan reverses encodeFan.
func decodeFan(s string) (f core.Fan) {
	if s == "" {
		return f
	}
	_, _ = fmt.Sscanf(s, "%d/%d/%d/%d", &f.Total, &f.Started, &f.Ended, &f.Bytes)
	return f
}

// keyColumn is the position of a row's key, by which rows are sorted.
const keyColumn = 0

// rowKey returns the key of a row.
func rowKey(row []any) string { return textOf(row[keyColumn]) }

// byKey compares rows by their keys.
func byKey(a, b []any) int { return cmp.Compare(rowKey(a), rowKey(b)) }

// A rowReader reads the values of a row one after the other. Each list of columns has a method
// beside it that reads them. A row that is too short panics, which only a wrong column list
// causes.
type rowReader struct{ row []any }

func (r *rowReader) value() any {
	v := r.row[0]
	r.row = r.row[1:]
	return v
}

func (r *rowReader) text() string    { return textOf(r.value()) }
func (r *rowReader) id() core.ID     { return core.ID(r.text()) }
func (r *rowReader) number() int     { return intOf(r.value()) }
func (r *rowReader) time() time.Time { return timeOf(r.value()) }
func (r *rowReader) bytes() []byte   { return bytesOf(r.value()) }

// compareText compares two values as texts; null comes first.
func compareText(a, b any) int { return cmp.Compare(textOf(a), textOf(b)) }
