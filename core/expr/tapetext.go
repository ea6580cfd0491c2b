package expr

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescape are the characters that escapes of one letter stand for.
var unescape = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendText appends the decoded text of a JSON string, given the text between its quotes.
// As in encoding/json, bytes that are not UTF-8 and unpaired escaped surrogates become
// U+FFFD.
func appendText(b, quoted []byte) []byte {
	for len(quoted) > 0 {
		c := quoted[0]
		switch {
		// The recorder has checked all escapes, so their bytes are there.
		case c == '\\' && quoted[1] == 'u':
			r, size := escaped(quoted)
			b = utf8.AppendRune(b, r)
			quoted = quoted[size:]
		case c == '\\':
			b = append(b, unescape[quoted[1]])
			quoted = quoted[2:]
		case c < utf8.RuneSelf:
			b = append(b, c)
			quoted = quoted[1:]
		default:
			r, size := utf8.DecodeRune(quoted)
			b = utf8.AppendRune(b, r)
			quoted = quoted[size:]
		}
	}
	return b
}

// escaped reads one or two \uXXXX and returns their character. A character beyond 16 bits is
// written as two surrogates. A surrogate alone is no character.
func escaped(quoted []byte) (r rune, size int) {
	const length = len(`\uXXXX`)
	r, _ = hexadecimal(quoted[2:])
	// Most characters fit into one escape.
	if !utf16.IsSurrogate(r) {
		return r, length
	}
	// The second half must follow at once.
	if rest := quoted[length:]; len(rest) >= length && rest[0] == '\\' && rest[1] == 'u' {
		low, _ := hexadecimal(rest[2:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 2 * length
		}
	}
	return utf8.RuneError, length
}

// hexadecimal reads four digits. hexadecimal accepts digits in both cases.
func hexadecimal(text []byte) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	// c becomes the value of the digit.
	for _, c := range text[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
