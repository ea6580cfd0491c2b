package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// A Database names the database of a gateway, without credentials. A command that reads a
// database beside a gateway asks GET /health for it: the present configuration may name
// another database, which a running gateway cannot change to.
type Database struct {
	Name string `json:"name"` // such as "postgres db.example/gateway"
	ID   string `json:"id"`   // does not depend on the name, as far as the gateway can know
}

// Proof is the header field of a request for the [Database]: a time, and its keyed hash
// under the token of the API. So the command proves that it has the token, without sending
// it to a program that may have taken the gateway's port.
const Proof = "X-Gateway-Proof"

// proofAge is how far the clocks of a command and a gateway on one machine may differ.
const proofAge = time.Minute

// ProofOf returns a [Proof]. The token is "" if the API needs none.
func ProofOf(token string, at time.Time) string {
	unix := strconv.FormatInt(at.Unix(), 10)
	return unix + " " + hex.EncodeToString(proof(token, unix))
}

// proof returns the keyed hash of a time. The constant text separates this use of the token from
// any other one.
func proof(token, unix string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte("gateway database " + unix))
	return h.Sum(nil)
}

// Proves reports whether a text is a [Proof] that was made at most a minute ago, with one
// of the tokens. If there are no tokens, it must be made without one.
func Proves(text string, tokens []string, now time.Time) bool {
	unix, sum, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseInt(unix, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > proofAge {
		return false
	}
	given, err := hex.DecodeString(sum)
	if err != nil {
		return false
	}
	// An open API proves nothing about its callers, but the proof still bounds the age of a request.
	if len(tokens) == 0 {
		tokens = []string{""}
	}
	// A token that is being replaced and the new one are both valid for a while.
	for _, token := range tokens {
		if hmac.Equal(given, proof(token, unix)) {
			return true
		}
	}
	return false
}
