package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/eventgateway/gateway/core"
)

var errToken = core.Refuse(core.Unauthorized, "Invalid token")

// bearer is a token that opens routes; nil opens them to everyone. Only its
// digest is held and compared, so that neither its text nor its length can be
// found by how long comparing takes.
type bearer struct{ digest [sha256.Size]byte }

func newBearer(token string) *bearer {
	if token == "" {
		return nil
	}
	return &bearer{sha256.Sum256([]byte(token))}
}

// check refuses a request without the token, and says what is asked for.
func (b *bearer) check(w http.ResponseWriter, r *http.Request) error {
	if b == nil || b.opens(r.Header["Authorization"]) {
		return nil
	}
	w.Header()["Www-Authenticate"] = []string{"Bearer"}
	return errToken
}

// only serves a route for those who have the token.
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
	digest := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(digest[:], b.digest[:]) == 1
}
