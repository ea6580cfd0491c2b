package expr

import (
	"bytes"
	"encoding/json"
	"io"
)

// parseJSON returns the one JSON value that a text is, if it is one, as encoding/json
// reads it, whose judgment is the definition.
func parseJSON(text []byte) (any, bool) {
	if TooDeep(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return v, true
}
