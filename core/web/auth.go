package web

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/eventgateway/gateway/core"
)

var (
	errToken = core.Refuse(core.Unauthorized, "Invalid token")

	// errRole is the cause of each refusal of a token whose role is too low.
	errRole = errors.New("role")

	// errClosed refuses every request for a route without a role.
	errClosed = core.Refuse(core.Forbidden, "no token opens this route")
)

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
	if b == nil || b.find(r) >= 0 {
		return nil
	}
	return challenge(w)
}

// challenge refuses a request without a valid token.
func challenge(w http.ResponseWriter) error {
	w.Header()["Www-Authenticate"] = []string{"Bearer"}
	return errToken
}

// find returns the place of the request's token in the set, or -1 if the header field holds no
// valid token. Two fields are refused: a proxy in front may have checked the other one.
func (b *bearer) find(r *http.Request) int {
	authorization := r.Header["Authorization"]
	if len(authorization) != 1 {
		return -1
	}
	// The scheme is compared without regard to case, as HTTP has it, and the token byte for byte.
	scheme, token, _ := strings.Cut(authorization[0], " ")
	digest, found := sha256.Sum256([]byte(token)), -1
	for i, known := range b.digests { // all of them, so that the time does not reveal the matching one
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], known[:]), i, found)
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return -1
	}
	return found
}

// A Token is a token of the API.
type Token struct {
	Name string // for replies and logs; "" for a token with all rights
	Text string
	Role core.Role
}

// A keyring is the tokens of the API. Each opens the routes that its role includes; see roles.
// Nil opens these routes to every caller.
type keyring struct {
	*bearer
	tokens []Token // without their texts, in the order of the digests
}

// newKeyring returns the keyring of some tokens; nil if there are none.
func newKeyring(tokens []Token) *keyring {
	if len(tokens) == 0 {
		return nil
	}
	k, texts := &keyring{}, make([]string, len(tokens))
	for i, t := range tokens {
		texts[i], t.Text = t.Text, ""
		k.tokens = append(k.tokens, t)
	}
	k.bearer = newBearer(texts)
	return k
}

// check refuses a request without a valid token, and one whose token has a role that does not
// include the role of the route.
func (k *keyring) check(w http.ResponseWriter, r *http.Request) error {
	_, err := k.admit(w, r)
	return err
}

// admit checks a request, and returns its token. If there are no tokens, every request has one with
// all rights and the name anonymous.
func (k *keyring) admit(w http.ResponseWriter, r *http.Request) (Token, error) {
	need, ok := roles[Route{r.Method, r.Pattern}]
	if !ok {
		return Token{}, errClosed
	}
	if k == nil {
		return Token{Name: core.ActorAnonymous, Role: core.RoleAdmin}, nil
	}
	i := k.find(r)
	if i < 0 {
		return Token{}, challenge(w)
	}
	return k.tokens[i], k.tokens[i].allows(w, need)
}

// actor returns the caller of a request with this token, for the audit.
func (t Token) actor(w http.ResponseWriter) core.Actor {
	a := core.Actor{Name: cmp.Or(t.Name, core.ActorToken), Role: t.Role, Via: core.ViaAPI}
	if client := recordOf(w).client; client.IsValid() {
		a.Address = client.String()
	}
	return a
}

// named returns the token of a request if the token has a name.
func (k *keyring) named(r *http.Request) (Token, bool) {
	if k == nil {
		return Token{}, false
	}
	i := k.find(r)
	if i < 0 || k.tokens[i].Name == "" {
		return Token{}, false
	}
	return k.tokens[i], true
}

// allows refuses a request that needs a role which the token's role does not include. The
// header follows RFC 6750, section 3.1.
func (t Token) allows(w http.ResponseWriter, need core.Role) error {
	if t.Role.Includes(need) {
		return nil
	}
	w.Header()["Www-Authenticate"] = []string{`Bearer error="insufficient_scope"`}
	refusal := core.Refuse(core.Forbidden, "token %s has the role %s; this needs %s", quote(t.Name), t.Role, need)
	refusal.Cause = errRole
	return refusal
}

// acting serves a route that changes something to callers whose token opens it. The context of the
// request has the actor.
func (k *keyring) acting(serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		token, err := k.admit(w, r)
		if err != nil {
			return err
		}
		return serve(w, r.WithContext(core.WithActor(r.Context(), token.actor(w))))
	}
}

// only serves a route to callers whose token opens it.
func (k *keyring) only(serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := k.check(w, r); err != nil {
			return err
		}
		return serve(w, r)
	}
}
