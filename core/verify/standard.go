package verify

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core/endpoint"
)

// newStandardWebhooks makes the scheme of Standard Webhooks 1.0. The signed text is
// "id.timestamp.body", as version v1 with HMAC-SHA256 or v1a with ed25519:
//
//	webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek
//	webhook-timestamp: 1614265330
//	webhook-signature: v1,g0hM9SsE…[ v1,…][ v1a,…]
//
// Senders that use Svix write svix- instead of webhook-. See
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
func newStandardWebhooks(o Options) (Scheme, error) {
	s := &standard{}
	for i, secret := range o.Secrets {
		if err := s.add(secret, i == 0); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// A standard has the secrets by their algorithm. Secrets of both algorithms may be mixed, so
// that a source can change over from one to the other.
type standard struct {
	symmetric keys
	public    []ed25519.PublicKey
	sign      func(signed []byte) (string, error) // with the first secret
}

var errOnlyPublic = errors.New("the first secret is a public key (whpk_…), which can verify but not sign; put the private key (whsk_…) or another secret before it")

// add adds a secret. The first one signs.
func (s *standard) add(secret string, first bool) error {
	key, err := endpoint.ParseSigningKey(secret)
	if err != nil {
		return fmt.Errorf("secret %w", err)
	}
	var sign func([]byte) (string, error)
	switch {
	case key.Symmetric != nil:
		s.symmetric = append(s.symmetric, key.Symmetric)
		sign = func(signed []byte) (string, error) {
			return "v1," + inBase64.encode(mac(sha256.New, key.Symmetric, signed)), nil
		}
	case key.Private != nil:
		s.public = append(s.public, key.Public)
		sign = func(signed []byte) (string, error) {
			return "v1a," + inBase64.encode(ed25519.Sign(key.Private, signed)), nil
		}
	default:
		s.public = append(s.public, key.Public)
		sign = func([]byte) (string, error) { return "", errOnlyPublic }
	}
	if first {
		s.sign = sign
	}
	return nil
}

// signatures are the signatures of a header by version.
type signatures struct{ v1, v1a [][]byte }

// Verify reads all three headers, checks the time, and then compares the signatures. The signed
// text contains the id and the time, so neither can be changed.
func (s *standard) Verify(r Request, now time.Time) error {
	h := familyOf(r)
	signature, err := single(r, h.signature)
	if err != nil {
		return err
	}
	id, err := single(r, h.id)
	if err != nil {
		return err
	}
	text, err := single(r, h.timestamp)
	if err != nil {
		return err
	}
	found, err := readSignatures(h.signature, signature)
	if err != nil {
		return err
	}
	at, ok := unixNumber(text)
	switch {
	case !ok:
		return malformed(h.timestamp, "is not a time in Unix seconds")
	case !isMessageID(id):
		return malformed(h.id, "is empty or has a full stop in it")
	}
	if err := checkTime(h.timestamp, at, now); err != nil {
		return err
	}
	if !s.prove(found, standardHead(id, text), r.Body) {
		return mismatch(h.signature, "does not match id, time and body")
	}
	return nil
}

// A family is a set of headers that belong together.
type family struct{ id, timestamp, signature string }

var (
	standardFamily = family{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}
	svixFamily     = family{"Svix-Id", "Svix-Timestamp", "Svix-Signature"}
)

// isIn reports whether a request has at least one header of the family.
func (f family) isIn(r Request) bool {
	return len(r.Header(f.signature)) > 0 || len(r.Header(f.id)) > 0 || len(r.Header(f.timestamp)) > 0
}

// familyOf returns the headers that count. A request with one header of the standard must
// have them all. Otherwise an attacker could add an unsigned webhook-id to a proof of the
// other family, and readers of webhook-id would trust it.
func familyOf(r Request) family {
	if !standardFamily.isIn(r) && svixFamily.isIn(r) {
		return svixFamily
	}
	return standardFamily
}

// isMessageID refuses full stops: with them, a signature of "a.1.2.b" would prove
// two messages. The standard warns of it.
func isMessageID(id string) bool { return id != "" && !strings.Contains(id, ".") }

// standardHead returns the signed text before the body.
func standardHead(id, at string) []byte { return []byte(id + "." + at + ".") }

// readSignatures splits a header at its blanks. Versions that are not known are ignored, as the
// standard asks; so are signatures that cannot be read.
func readSignatures(header, value string) (signatures, error) {
	var found signatures
	for entry := range strings.SplitSeq(value, " ") {
		version, text, _ := strings.Cut(entry, ",")
		switch version {
		case "v1":
			if proof, ok := inBase64.read(text, sha256.Size); ok {
				found.v1 = append(found.v1, proof)
			}
		case "v1a":
			if proof, ok := inBase64.read(text, ed25519.SignatureSize); ok {
				found.v1a = append(found.v1a, proof)
			}
		}
	}
	switch n := len(found.v1) + len(found.v1a); {
	case n == 0:
		return found, malformed(header, "has no v1 or v1a that is a signature in base64")
	case n > maxProofs:
		return found, tooMany(header)
	}
	return found, nil
}

// prove reports whether one signature is right under one key of its algorithm.
func (s *standard) prove(found signatures, head, body []byte) bool {
	matched := s.symmetric.prove(sha256.New, found.v1, head, body)
	if len(s.public) == 0 || len(found.v1a) == 0 {
		return matched
	}
	// Public keys are no secret, so the first match may end it.
	signed := slices.Concat(head, body)
	for _, key := range s.public {
		for _, proof := range found.v1a {
			if ed25519.Verify(key, signed, proof) {
				return true
			}
		}
	}
	return matched
}

// Sign signs with the first secret and writes the headers of the standard, not those of Svix.
func (s *standard) Sign(m Message, now time.Time) (map[string]string, error) {
	if !isMessageID(m.ID) {
		return nil, errors.New("standard-webhooks signs an id, which must not be empty or have a full stop in it")
	}
	at := unixText(now)
	signature, err := s.sign(slices.Concat(standardHead(m.ID, at), m.Body))
	if err != nil {
		return nil, err
	}
	h := standardFamily
	return map[string]string{h.id: m.ID, h.timestamp: at, h.signature: signature}, nil
}
