package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/eventgateway/gateway/core"
)

var errToken = core.Refuse(core.Unauthorized, "Invalid token")

// bearer is the tokens that open routes, each of them alone; nil opens the routes to
// everyone. bearer holds and compares digests only, so that nobody can find the text or the
// length of a token by how long comparing takes.
type bearer struct{ digests [][sha256.Size]byte }

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

// check refuses a request without a token, and says what is asked for.
func (b *bearer) check(w http.ResponseWriter, r *http.Request) error {
	if b == nil || b.opens(r.Header["Authorization"]) {
		return nil
	}
	w.Header()["Www-Authenticate"] = []string{"Bearer"}
	return errToken
}

// only serves a route for those who have a token.
func (b *bearer) only(serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := b.check(w, r); err != nil {
			return err
		}
		return serve(w, r)
	}
}

func (b *bearer) opens(authorization []string) bool {
	if len(authorization) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	digest, equal := sha256.Sum256([]byte(token)), 0
	for _, known := range b.digests { // each of them, so that the time does not tell which one it was
		equal |= subtle.ConstantTimeCompare(digest[:], known[:])
	}
	return strings.EqualFold(scheme, "Bearer") && equal == 1
}
