package egress

import (
	"net/textproto"
	"strings"
)

// canonical is the form of a header name that net/http looks headers up by, but
// for the idempotency keys: net/http sends a POST twice if it finds one. Under
// another spelling they are sent like any other header and not found.
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

// isValueByte: RFC 9110, section 5.5, with obs-text.
func isValueByte(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }

func isPrintable(c byte) bool { return c >= ' ' && c < 0x7f }

// isPlain: what the CloudEvents HTTP binding 1.0.2, section 3.1.3.2, leaves
// unencoded in a header value.
func isPlain(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' }

// encode percent-encodes the bytes of s that are not ok.
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

// isTracestate is about its form only. The specification asks for 512 characters
// to be passed on, and lets more be dropped.
func isTracestate(s string) bool {
	return s != "" && len(s) <= 512 && eachByte(s, isPrintable)
}
