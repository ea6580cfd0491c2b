package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// DefaultSignatureHeader is the header of the scheme "hmac".
const DefaultSignatureHeader = "X-Webhook-Signature"

const sha256Prefix = "sha256="

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
	return &bodyHMAC{header: header, keys: keys(o.Secrets)}, nil
}

// A bodyHMAC proves the body, and nothing else, with HMAC-SHA256 in hexadecimal.
// Such a proof never expires: what protects against a replay is the delivery id.
type bodyHMAC struct {
	header string
	prefix bool // whether "sha256=" must be there
	keys   [][]byte
}

func (s *bodyHMAC) Verify(r Request, _ time.Time) error {
	value, err := single(r, s.header)
	if err != nil {
		return err
	}
	digits, prefixed := strings.CutPrefix(value, sha256Prefix)
	if s.prefix && !prefixed {
		return malformed(s.header, "does not begin with "+sha256Prefix)
	}
	proof, err := hex.DecodeString(digits)
	if err != nil || len(proof) != sha256.Size {
		return malformed(s.header, "is not 64 hexadecimal digits")
	}
	if !s.proves(r.Body, proof) {
		return mismatch(s.header, "does not match the body")
	}
	return nil
}

// proves tries every key also after one has matched, so that the time taken does
// not tell which one it was.
func (s *bodyHMAC) proves(body, proof []byte) bool {
	matched := false
	for _, key := range s.keys {
		if hmac.Equal(mac(key, body), proof) {
			matched = true
		}
	}
	return matched
}

func (s *bodyHMAC) Sign(body []byte, _ time.Time) map[string]string {
	return map[string]string{s.header: sha256Prefix + hex.EncodeToString(mac(s.keys[0], body))}
}

func mac(key, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(body)
	return m.Sum(nil)
}

func keys(secrets []string) [][]byte {
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		keys[i] = []byte(s)
	}
	return keys
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2, which is what
// a header may be called.
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
