package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Visible escapes text from outside for a terminal: payloads, event types, errors, replies. It
// is the only way for such text to reach a terminal. It escapes characters that could steer
// the terminal or hide text: control characters (\n, \x1b, \u009b), bidirectional controls and
// invisible characters (\u202e), and bytes that are not UTF-8 (\xff). The result is one line.
// Printable text stays unchanged, including backslashes: the result is for reading, and --json
// is for parsing.
func Visible(s string) string {
	// Nearly all texts are plain, and lists have thousands of them.
	if plain(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteRune(r)
		} else {
			b.WriteString(escape(r, s[:size]))
		}
		s = s[size:]
	}
	return b.String()
}

// plain reports whether s is printable ASCII only, like nearly all texts.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// escape writes an unprintable rune, or the byte it was decoded from, as in Go source.
func escape(r rune, raw string) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// VisibleJSON escapes a JSON document like Visible, and keeps its meaning: encoding/json
// leaves DEL, C1 and bidirectional controls unescaped. Outside of strings JSON has only ASCII,
// so an escape is always valid.
func VisibleJSON(doc []byte) []byte {
	if !slices.ContainsFunc(doc, func(b byte) bool { return b != '\n' && (b < ' ' || b > '~') }) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r == '\n' || strconv.IsPrint(r):
			out = append(out, doc[:size]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		doc = doc[size:]
	}
	return out
}
