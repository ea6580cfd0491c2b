package verify

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// DefaultSignatureHeader is the header of the scheme "hmac".
const DefaultSignatureHeader = "X-Webhook-Signature"

// newHMAC makes the generic scheme: HMAC-SHA256 (RFC 2104) of the body in
// hexadecimal, with or without "sha256=" before it, in a header of the source's
// choice.
func newHMAC(o Options) (Scheme, error) {
	header := o.SignatureHeader
	if header == "" {
		header = DefaultSignatureHeader
	}
	if !isToken(header) {
		return nil, fmt.Errorf("signature_header %q is not a header name", header)
	}
	return &bodyHMAC{headers: []string{header}, prefix: "sha256=", bare: true, text: inHex, keys: newKeys(o.Secrets)}, nil
}

// A bodyHMAC proves the body, and nothing else, with HMAC-SHA256. Such a proof never
// expires: the delivery id protects against replays.
type bodyHMAC struct {
	headers []string // names of the one header; the first is written
	prefix  string   // before the proof
	bare    bool     // whether the prefix may be left out
	text    encoding
	keys    keys
}

// Verify takes no time into account: the proof has none.
func (s *bodyHMAC) Verify(r Request, _ time.Time) error {
	value, err := single(r, s.headers...)
	if err != nil {
		return err
	}
	header := s.headers[0]
	text, prefixed := strings.CutPrefix(value, s.prefix)
	if !prefixed && !s.bare {
		return malformed(header, "does not begin with "+s.prefix)
	}
	proof, ok := s.text.read(text, sha256.Size)
	if !ok {
		return malformed(header, "is not 32 bytes in "+s.text.name)
	}
	if !s.keys.prove(sha256.New, [][]byte{proof}, r.Body) {
		return mismatch(header, "does not match the body")
	}
	return nil
}

func (s *bodyHMAC) Sign(m Message, _ time.Time) (map[string]string, error) {
	return map[string]string{s.headers[0]: s.prefix + s.text.encode(s.keys.sign(sha256.New, m.Body))}, nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2, and so a valid name of a
// header.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
