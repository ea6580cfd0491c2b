package egress

import (
	"net/textproto"
	"strings"
)

// canonical returns the form of a header name by which net/http looks headers up, except
// for the idempotency keys: net/http sends a POST twice if it finds one. In another
// spelling they are sent like any other header, and net/http does not find them.
func canonical(name string) string {
	key := textproto.CanonicalMIMEHeaderKey(name)
	if key == "Idempotency-Key" || key == "X-Idempotency-Key" {
		return strings.ToLower(key)
	}
	return key
}

func eachByte(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// isValue reports whether RFC 9110, section 5.5, permits s as the value of a header, with
// obs-text. It runs for each header of a delivery, so it calls no function for each byte.
func isValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func isPrintable(c byte) bool { return c >= ' ' && c < 0x7f }

// isPlain reports whether the CloudEvents HTTP binding 1.0.2, section 3.1.3.2, leaves a
// byte of a header value unencoded.
func isPlain(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' }

// encode percent-encodes the bytes of s for which ok is false.
func encode(s string, ok func(byte) bool) string {
	if eachByte(s, ok) {
		return s
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; ok(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// isTracestate checks the form only. The specification requires that 512 characters are
// passed on, and permits to drop longer values.
func isTracestate(s string) bool {
	return s != "" && len(s) <= 512 && eachByte(s, isPrintable)
}
