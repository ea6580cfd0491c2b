package verify

import (
	"crypto/sha256"
	"strings"
	"time"
)

// A timedList proves a time and the body with HMAC-SHA256. Both the time and any
// number of signatures are in one header, a list of name=value.
type timedList struct {
	header      string
	between     string // the entries
	time, proof string // names of entries
	joint       string // between time and body in the signed text
	keys        keys
}

// Verify checks the form, the time, and then the signatures.
func (s *timedList) Verify(r Request, now time.Time) error {
	value, err := single(r, s.header)
	if err != nil {
		return err
	}
	text, proofs, err := s.read(value)
	if err != nil {
		return err
	}
	at, ok := unixNumber(text)
	switch {
	case !ok:
		return malformed(s.header, "has a "+s.time+" that is not a time in Unix seconds")
	case len(proofs) == 0:
		return malformed(s.header, "has no "+s.proof+" that is 32 bytes in hexadecimal")
	}
	if err := checkTime(s.header, at, now); err != nil {
		return err
	}
	if !s.keys.prove(sha256.New, proofs, []byte(text+s.joint), r.Body) {
		return mismatch(s.header, "does not match the body")
	}
	return nil
}

// read splits a header. A repeated time is refused: only one of the two can be signed. A
// signature that cannot be read is ignored.
func (s *timedList) read(value string) (at string, proofs [][]byte, err error) {
	timed := false
	for entry := range strings.SplitSeq(value, s.between) {
		name, text, ok := strings.Cut(entry, "=")
		switch {
		case !ok || strings.Contains(text, "="):
			return "", nil, malformed(s.header, "is not a list of name=value with "+s.between+" between them")
		case name == s.time && timed:
			return "", nil, malformed(s.header, "has "+s.time+" twice")
		case name == s.time:
			at, timed = text, true
		case name == s.proof:
			if proof, ok := inHex.read(text, sha256.Size); ok {
				proofs = append(proofs, proof)
			}
		}
	}
	switch {
	case !timed:
		return "", nil, malformed(s.header, "has no "+s.time)
	case len(proofs) > maxProofs:
		return "", nil, tooMany(s.header)
	}
	return at, proofs, nil
}

// Sign writes one time and one signature.
func (s *timedList) Sign(m Message, now time.Time) (map[string]string, error) {
	at := unixText(now)
	proof := inHex.encode(s.keys.sign(sha256.New, []byte(at+s.joint), m.Body))
	return map[string]string{s.header: s.time + "=" + at + s.between + s.proof + "=" + proof}, nil
}
