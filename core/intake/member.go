package intake

import (
	"bytes"
	"encoding/json"
)

// maxDepth is the maximum nesting of a JSON document that is read.
const maxDepth = 128

// stringMember returns the value of a member of a JSON object if it is a string, else "".
// If the member occurs twice the last one counts, as for every later reader of the
// document.
//
// It runs once for every webhook whose headers name no type, so it allocates nothing. One
// pass finds the member in a text that looks like an object. Only if the member is there,
// the document is checked to be JSON. Decoding into a map of raw members takes four times
// as long (BenchmarkStringMember) and 110 allocations for a body of 1.3 KiB.
func stringMember(doc []byte, name string) string {
	doc = unmarked(doc)
	raw := findMember(doc, name)
	if raw == nil || !json.Valid(doc) {
		return ""
	}
	return unquote(raw)
}

// unmarked returns JSON without the byte order mark that some programs write before it.
func unmarked(doc []byte) []byte { return bytes.TrimPrefix(doc, []byte("\ufeff")) }

// findMember finds the quoted value, nil if there is none. The result is meaningless for a
// document that is not JSON.
func findMember(doc []byte, name string) (value []byte) {
	var (
		depth   int    // open objects and arrays
		key     []byte // the last text at depth 1 that can be a member's name
		inValue bool   // whether the colon after key was passed
	)
	if doc = bytes.TrimLeft(doc, " \t\r\n"); len(doc) == 0 || doc[0] != '{' {
		return nil
	}
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil
			}
		case '}', ']':
			depth--
		case ',':
			inValue = inValue && depth != 1 // at depth 1 it ends the value
		case ':':
			if depth == 1 && named(key, name) {
				inValue, value = true, nil // replaces an earlier one
			}
		case '"':
			// Braces, commas and colons within a string are skipped with it.
			end := endOfString(doc, i)
			if end < 0 {
				return nil
			}
			if depth == 1 && inValue {
				value = doc[i:end]
			} else if depth == 1 {
				key = doc[i:end]
			}
			i = end - 1
		}
	}
	return value
}

// endOfString returns the index after the quote that ends the string beginning at start, or
// -1.
func endOfString(doc []byte, start int) int {
	for i := start + 1; ; i++ {
		n := bytes.IndexByte(doc[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		// The quote ends the string unless an odd number of backslashes is before it.
		// Counting stops at the quote before, so each backslash is counted once, and
		// a hostile text takes linear time.
		escapes := 0
		for doc[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// named reports whether a quoted text is the name.
func named(quoted []byte, name string) bool {
	// A name may be spelled with escapes, which later readers of the document decode.
	if bytes.IndexByte(quoted, '\\') >= 0 {
		return unquote(quoted) == name
	}
	return len(quoted) == len(name)+2 && string(quoted[1:len(quoted)-1]) == name
}

// unquote decodes a JSON string; "" for any other text.
func unquote(quoted []byte) string {
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}
