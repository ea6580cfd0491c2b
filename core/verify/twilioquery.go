package verify

import (
	"net/url"
	"slices"
	"strings"
)

// queriesOf returns an address in each spelling of its query that Twilio's library for Node.js
// accepts (lib/webhooks/webhooks.ts): as it came, as a browser spells it, and as the module
// querystring spells it, which the library calls legacy. An address without a query has one
// spelling.
func queriesOf(address string) []string {
	all := []string{address}
	before, query, ok := strings.Cut(address, "?")
	if !ok || query == "" {
		return all
	}
	all = append(all, before+"?"+browserQuery(query))
	if legacy, ok := legacyQuery(query); ok {
		all = append(all, before+"?"+legacy)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// browserQuery escapes the characters of
// https://url.spec.whatwg.org/#special-query-percent-encode-set, and leaves all else
// unchanged, including escapes.
func browserQuery(query string) string {
	return escaped(query, func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte(`"#<>'`, c) < 0 })
}

// legacyQuery spells each name and value again, with the escapes of encodeURIComponent. It
// fails if the query has an invalid escape, since the meaning of such a query is unknown.
func legacyQuery(query string) (string, bool) {
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return "", false
		}
		value, err = url.QueryUnescape(value)
		if err != nil {
			return "", false
		}
		pairs = append(pairs, escaped(name, componentByte)+"="+escaped(value, componentByte))
	}
	return strings.Join(pairs, "&"), true
}

// componentByte reports whether encodeURIComponent leaves a byte as it is.
func componentByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-_.!~*'()", c) >= 0
}

// escaped escapes all bytes but the plain ones.
func escaped(text string, plain func(byte) bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
