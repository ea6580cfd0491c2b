package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/eventgateway/gateway/core"
)

var errToken = core.Refuse(core.Unauthorized, "Invalid token")

// bearer is the set of tokens that open routes, each of them alone. Nil opens the routes to
// every caller. bearer stores and compares digests only, so that the time of a comparison
// reveals neither the text nor the length of a token.
type bearer struct{ digests [][sha256.Size]byte }

// newBearer returns the set of some tokens; nil if there are none.
func newBearer(tokens []string) *bearer {
	if len(tokens) == 0 {
		return nil
	}
	b := &bearer{}
	for _, token := range tokens {
		b.digests = append(b.digests, sha256.Sum256([]byte(token)))
	}
	return b
}

// check refuses a request without a valid token. The reply names the required scheme.
func (b *bearer) check(w http.ResponseWriter, r *http.Request) error {
	if b == nil || b.opens(r.Header["Authorization"]) {
		return nil
	}
	w.Header()["Www-Authenticate"] = []string{"Bearer"}
	return errToken
}

// only serves a route to callers with a valid token.
func (b *bearer) only(serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := b.check(w, r); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// opens reports whether the header field holds one valid token. Two fields are refused: a proxy
// in front may have checked the other one.
func (b *bearer) opens(authorization []string) bool {
	if len(authorization) != 1 {
		return false
	}
	// The scheme is compared without regard to case, as HTTP has it, and the token byte for byte.
	scheme, token, _ := strings.Cut(authorization[0], " ")
	digest, equal := sha256.Sum256([]byte(token)), 0
	for _, known := range b.digests { // all of them, so that the time does not reveal the matching one
		equal |= subtle.ConstantTimeCompare(digest[:], known[:])
	}
	return strings.EqualFold(scheme, "Bearer") && equal == 1
}
