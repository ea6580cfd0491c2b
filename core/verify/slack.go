package verify

import (
	"crypto/sha256"
	"strings"
	"time"
)

const (
	slackTime    = "X-Slack-Request-Timestamp"
	slackProof   = "X-Slack-Signature"
	slackVersion = "v0"
)

// newSlack makes the scheme of Slack's requests, events and commands alike:
// HMAC-SHA256 of "v0:timestamp:body" in hexadecimal, with "v0=" before it, and the
// time in a header of its own. See
// https://docs.slack.dev/authentication/verifying-requests-from-slack.
func newSlack(o Options) (Scheme, error) { return &slack{newKeys(o.Secrets)}, nil }

// A slack verifies and signs Slack's requests.
type slack struct{ keys keys }

// Verify checks the form of both headers, then the time, then the signature. The order does not
// matter for safety; it gives the most useful error.
func (s *slack) Verify(r Request, now time.Time) error {
	value, err := single(r, slackProof)
	if err != nil {
		return err
	}
	text, err := single(r, slackTime)
	if err != nil {
		return err
	}
	digits, prefixed := strings.CutPrefix(value, slackVersion+"=")
	proof, ok := inHex.read(digits, sha256.Size)
	if !prefixed || !ok {
		return malformed(slackProof, "is not v0= and 32 bytes in hexadecimal")
	}
	at, ok := unixNumber(text)
	if !ok {
		return malformed(slackTime, "is not a time in Unix seconds")
	}
	if err := checkTime(slackTime, at, now); err != nil {
		return err
	}
	if !s.keys.prove(sha256.New, [][]byte{proof}, slackHead(text), r.Body) {
		return mismatch(slackProof, "does not match time and body")
	}
	return nil
}

// slackHead returns the signed text before the body.
func slackHead(at string) []byte { return []byte(slackVersion + ":" + at + ":") }

// Sign signs a body with the time now.
func (s *slack) Sign(m Message, now time.Time) (map[string]string, error) {
	at := unixText(now)
	proof := inHex.encode(s.keys.sign(sha256.New, slackHead(at), m.Body))
	return map[string]string{slackTime: at, slackProof: slackVersion + "=" + proof}, nil
}
