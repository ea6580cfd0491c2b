package expr

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Canonical returns the one JSON text of a value of a [Document]: two values are equal
// exactly if their texts are equal. The text has no blanks. Members stand in the order of
// their names. A number is written by its exact value, so that 1, 1.0 and 1e0 are all 1.
// Strings escape quotes, backslashes and control characters and nothing else. The length of
// the text is at most proportional to the length of the value.
func Canonical(v any) string {
	if s, ok := v.(string); ok {
		return string(appendString(make([]byte, 0, len(s)+2), s, unlimited))
	}
	return string(appendCanonical(nil, v))
}

// appendCanonical appends the text of Canonical, for values that are parts of a larger key.
func appendCanonical(b []byte, v any) []byte { return appendValue(b, v, appendExact, unlimited) }

// unlimited is the limit of a text of any length. A function that appends up to a limit stops
// a few bytes after it, and the appended text then means nothing.
const unlimited = math.MaxInt >> 1

// appendCompact appends the JSON text of a value like [Canonical], up to a limit for all of
// b. Numbers keep their spelling.
func appendCompact(b []byte, v any, limit int) []byte {
	if v, ok := v.(*branch); ok {
		return v.document.appendNode(b, v.node, limit)
	}
	return appendValue(b, v, appendSpelt, limit)
}

// appendExact writes a number by its exact value, for keys: equal numbers have equal texts.
func appendExact(b []byte, n json.Number) []byte { return parseDecimal(n).appendTo(b) }

// appendSpelt writes a number as its sender spelt it, for output: a receiver may depend on the
// digits.
func appendSpelt(b []byte, n json.Number) []byte { return append(b, n...) }

// A numberWriter appends a number in some spelling. It is the only difference between a
// canonical text and an output text, so one set of functions writes both.
type numberWriter func(b []byte, n json.Number) []byte

// appendValue appends the JSON text of a value of a tree. It stops early once b is longer than
// limit. The caller then discards the text, so it need not be valid JSON.
func appendValue(b []byte, v any, number numberWriter, limit int) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return number(b, v)
	case string:
		return appendString(b, v, limit)
	case []any:
		return appendArray(b, v, number, limit)
	case map[string]any:
		return appendObject(b, v, number, limit)
	}
	return append(b, "null"...)
}

// appendArray checks the limit after each item, so that a large array costs at most one item
// too many.
func appendArray(b []byte, list []any, number numberWriter, limit int) []byte {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b = appendValue(b, item, number, limit); len(b) > limit {
			return b
		}
	}
	return append(b, ']')
}

// appendObject writes the members in the order of their names, because Go's order of a map is
// random and two equal objects must have the same text.
func appendObject(b []byte, object map[string]any, number numberWriter, limit int) []byte {
	b = append(b, '{')
	// Most objects have at most 16 members. Their names then need no allocation.
	var few [16]string
	for i, name := range members(few[:0], object) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name, limit)
		b = append(b, ':')
		if b = appendValue(b, object[name], number, limit); len(b) > limit {
			return b
		}
	}
	return append(b, '}')
}

// members appends the names of an object in order to an empty list. The caller provides the
// list, so that short lists can be on its stack.
func members(names []string, object map[string]any) []string {
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// short are the escapes of one letter.
var short = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string, limit int) []byte {
	return append(appendEscaped(append(b, '"'), s, limit), '"')
}

// appendEscaped appends the text between the quotes of a JSON string.
func appendEscaped(b []byte, s string, limit int) []byte {
	// Text that needs no escape is appended in one piece: start is where the current piece
	// begins.
	const hex = "0123456789abcdef"
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		var escape []byte
		switch {
		// A real U+FFFD in the text has size 3 and is kept.
		case r == utf8.RuneError && size == 1:
			escape = []byte("\uFFFD")
		case size == 1 && short[c] != 0:
			escape = []byte{'\\', short[c]}
		case c < ' ':
			escape = []byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]}
		}
		if escape != nil {
			if b = append(append(b, s[start:i]...), escape...); len(b) > limit {
				return b
			}
			start = i + size
		}
		i += size
	}
	return append(b, upTo(limit, len(b), s[start:])...)
}

// upTo cuts a text one byte after the limit, given the number of bytes before it. The extra
// byte shows that the whole text would exceed the limit.
func upTo[T string | []byte](limit, there int, text T) T {
	return text[:min(len(text), max(0, limit+1-there))]
}
