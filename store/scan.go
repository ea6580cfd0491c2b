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

// millis is how a time is stored: Unix milliseconds, or null for the zero time.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func timeOf(v any) time.Time {
	ms, ok := v.(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// orNull stores the empty string as null, in columns where a unique index must
// not take two "none" for the same.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func intOf(v any) int {
	n, _ := v.(int64)
	return int(n)
}

// qualified prefixes each column of a list with its table, in its name as well.
func qualified(table, columns string) string {
	names := strings.Split(columns, ", ")
	for i, c := range names {
		names[i] = table + "." + c + " AS " + table + "_" + c
	}
	return strings.Join(names, ", ")
}

func encodeHeaders(h map[string]string) string {
	if len(h) == 0 {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic("store: headers: " + err.Error()) // strings only; cannot fail
	}
	return string(b)
}

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

// inBase64 is the encoding of a payload that is any bytes: a text column does not take them in
// every database, nor does SQL over HTTP.
const inBase64 = "base64"

// encodePayload is a payload as its column has it.
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
	// Nothing else writes the column. Should it be damaged, the bytes before the damage are there.
	e.Payload, _ = base64.StdEncoding.DecodeString(text)
	e.Binary = true
}

// textOrNull stores JSON, of which nil is not the same as any.
func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func bytesOf(v any) []byte {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	return []byte(text)
}

// encodeFan is empty for the zero Fan.
func encodeFan(f core.Fan) string {
	if f == (core.Fan{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d/%d", f.Total, f.Started, f.Ended, f.Bytes)
}

func decodeFan(s string) (f core.Fan) {
	if s == "" {
		return f
	}
	_, _ = fmt.Sscanf(s, "%d/%d/%d/%d", &f.Total, &f.Started, &f.Ended, &f.Bytes)
	return f
}

// keyAt is the place of the key of a row, in whose order rows are sorted.
const keyColumn = 0

func rowKey(row []any) string { return textOf(row[keyColumn]) }

func byKey(a, b []any) int { return cmp.Compare(rowKey(a), rowKey(b)) }

// A rowReader reads the values of a row one after the other, in the order of its columns.
// The list of columns and the method that reads them stand together.
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
