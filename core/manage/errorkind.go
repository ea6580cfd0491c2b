package manage

import (
	"net/netip"
	"strings"
	"time"
)

// ErrorKind returns the text of an error with placeholders in place of the parts that differ from
// one failure to the next: <id>, <n>, <address>, <time> and <duration>. Errors with the same cause
// get the same kind.
//
// An id is a UUID, a ULID, 8 or more hexadecimal digits, or a word of 12 or more letters and digits
// that has both. A number has 3 or more digits. The status of a reply is not replaced, since it
// names the failure: "status: 503", "HTTP 500".
func ErrorKind(text string) string {
	var kind strings.Builder
	kept := 0 // the text before it is in kind
	for at := 0; at < len(text); {
		n, mark := changing(text, at)
		if n == 0 {
			at += max(1, wordLength(text[at:]))
			continue
		}
		kind.Grow(len(text)) // once
		kind.WriteString(text[kept:at])
		kind.WriteString(mark)
		at += n
		kept = at
	}
	if kept == 0 {
		return text
	}
	kind.WriteString(text[kept:])
	return kind.String()
}

// changing returns the length of the changing part that begins at a place, and its placeholder; 0
// for any other text.
func changing(text string, at int) (n int, mark string) {
	rest := text[at:]
	if isPlain(rest) {
		return 0, ""
	}
	if n := addressLength(rest); n > 0 {
		return n, "<address>"
	}
	if n := timeLength(rest); n > 0 {
		return n, "<time>"
	}
	if n := durationLength(rest); n > 0 {
		return n, "<duration>"
	}
	if n := idLength(rest); n > 0 {
		return n, "<id>"
	}
	n = numberLength(rest)
	digits := n - strings.Count(rest[:n], ",") - strings.Count(rest[:n], ".")
	if digits < 3 || n == 3 && isStatus(text[:at]) {
		return 0, ""
	}
	return n, "<n>"
}

// isPlain reports whether a text begins with a byte or word that is part of no address, id, number
// or time. Most texts are such words, and are not looked at any further.
func isPlain(text string) bool {
	switch first := text[0]; {
	case isDigit(first) || first == '[' || first == ':':
		return false
	case !isWord(first):
		return true
	}
	n := wordLength(text)
	for i := range n {
		if isDigit(text[i]) {
			return false
		}
	}
	return n == len(text) || text[n] != ':' && text[n] != '-' // an IPv6 address, a UUID
}

// isStatus reports whether a number of three digits behind a text is the status of a reply.
func isStatus(before string) bool {
	before = strings.ToLower(strings.TrimRight(before, ": ="))
	for _, word := range []string{"status", "status code", "http", "http/1.0", "http/1.1", "http/2", "http/2.0"} {
		if strings.HasSuffix(before, word) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
func isWord(c byte) bool  { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

// prefix returns how many bytes at the beginning of a text belong to a class.
func prefix(text string, class func(byte) bool) (n int) {
	for n < len(text) && class(text[n]) {
		n++
	}
	return n
}

func wordLength(text string) int { return prefix(text, isWord) }

// numberLength returns the length of a whole word of digits. Groups of digits may be separated:
// "10,000", "12.5".
func numberLength(text string) int {
	n := prefix(text, isDigit)
	for n > 0 && n+1 < len(text) && (text[n] == ',' || text[n] == '.') && isDigit(text[n+1]) {
		n += 1 + prefix(text[n+1:], isDigit)
	}
	if n < len(text) && isWord(text[n]) {
		return 0
	}
	return n
}

// idLength returns the length of an id.
func idLength(text string) int {
	if n := uuidLength(text); n > 0 {
		return n
	}
	n := wordLength(text)
	word := strings.TrimPrefix(text[:n], "0x")
	digits := 0
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
		}
	}
	mixed := digits > 0 && (digits < len(word) || len(word) < n)
	if mixed && (len(word) >= 12 || len(word) >= 8 && prefix(word, isHex) == len(word)) {
		return n
	}
	return 0
}

// uuidLength returns the length of a UUID.
func uuidLength(text string) int {
	const uuid = 36
	if len(text) < uuid || text[8] != '-' || len(text) > uuid && isWord(text[uuid]) {
		return 0
	}
	for i := range uuid {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (text[i] == '-') || !hyphen && !isHex(text[i]) {
			return 0
		}
	}
	return uuid
}

// durationLength returns the length of a duration as Go writes it, such as "1m30s" or "250ms".
func durationLength(text string) int {
	n := prefix(text, func(c byte) bool { return isWord(c) || c == '.' || c >= 0x80 }) // µ
	word := strings.TrimRight(text[:n], ".")
	if word == "" || !isDigit(word[0]) {
		return 0
	}
	// A unit, or a fraction, follows the first digits. Most words fail here, and an error of
	// ParseDuration costs more than all else.
	digits := prefix(word, isDigit)
	if digits == len(word) || word[digits] < 0x80 && strings.IndexByte("hmsun.", word[digits]) < 0 {
		return 0
	}
	if _, err := time.ParseDuration(word); err != nil || numberLength(word) == len(word) {
		return 0
	}
	return len(word)
}

// timeLength returns the length of a date, of a time of day, or of both.
func timeLength(text string) int {
	date := shaped(text, "dddd-dd-dd")
	if date == 0 {
		return clockLength(text)
	}
	if date < len(text) && strings.IndexByte("Tt ", text[date]) >= 0 {
		if n := clockLength(text[date+1:]); n > 0 {
			return date + 1 + n
		}
	}
	return date
}

// clockLength returns the length of a time of day, with its fraction and zone if it has them.
func clockLength(text string) int {
	n := shaped(text, "dd:dd:dd")
	if n == 0 {
		return 0
	}
	if n+1 < len(text) && text[n] == '.' && isDigit(text[n+1]) {
		n += 1 + prefix(text[n+1:], isDigit)
	}
	if zone := max(shaped(text[n:], "+dd:dd"), shaped(text[n:], "-dd:dd")); zone > 0 {
		return n + zone
	}
	if n < len(text) && text[n] == 'Z' {
		n++
	}
	return n
}

// shaped returns the length of a shape if a text begins with it. A d stands for a digit.
func shaped(text, shape string) int {
	if len(text) < len(shape) {
		return 0
	}
	for i := range len(shape) {
		if shape[i] == 'd' && !isDigit(text[i]) || shape[i] != 'd' && text[i] != shape[i] {
			return 0
		}
	}
	return len(shape)
}

// maxAddress is how many bytes of a text may be an IPv6 address in brackets with a port.
const maxAddress = 60

// addressLength returns the length of an IP address, with its port if it has one.
func addressLength(text string) int {
	text = text[:min(len(text), maxAddress)]
	word := text[:prefix(text, func(c byte) bool { return isHex(c) || strings.IndexByte(".:[]", c) >= 0 })]
	// An address of version 4 has three full stops, and one of version 6 two colons or more.
	if strings.Count(word, ".") < 3 && strings.Count(word, ":") < 2 {
		return 0
	}
	// A colon or full stop behind an address is no part of it.
	for range 3 {
		if _, err := netip.ParseAddrPort(word); err == nil {
			return len(word)
		}
		if _, err := netip.ParseAddr(strings.Trim(word, "[]")); err == nil {
			return len(word)
		}
		if word == "" || strings.IndexByte(".:]", word[len(word)-1]) < 0 {
			return 0
		}
		word = word[:len(word)-1]
	}
	return 0
}
