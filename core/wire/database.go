package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// A Database names the database that a gateway works on, without credentials. A command that
// reads a database beside a gateway asks GET /health for it: the configuration may name
// another database by now, which a running gateway does not go over to.
type Database struct {
	Name string `json:"name"` // such as "postgres db.example/gateway"
	ID   string `json:"id"`   // the same for the same database, however it is named, as far as is known
}

// Proof is the header field of a request for the [Database]: a time, and its keyed hash under the
// token of the API. So the command shows that it has the token, and does not send it to a
// program that may have taken the gateway's port.
const Proof = "X-Gateway-Proof"

// proofAge is how far the clocks of a command and a gateway on one machine may differ.
const proofAge = time.Minute

// ProofOf is a [Proof]. The token is "" if the API needs none.
func ProofOf(token string, at time.Time) string {
	unix := strconv.FormatInt(at.Unix(), 10)
	return unix + " " + hex.EncodeToString(proof(token, unix))
}

func proof(token, unix string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte("gateway database " + unix))
	return h.Sum(nil)
}

// Proves reports whether a text is a [Proof] that was made about now, with one of the tokens, or
// without a token if there are none.
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
	if len(tokens) == 0 {
		tokens = []string{""}
	}
	for _, token := range tokens {
		if hmac.Equal(given, proof(token, unix)) {
			return true
		}
	}
	return false
}
