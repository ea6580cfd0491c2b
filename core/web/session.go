package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

const (
	// sessionCookie is the name of the cookie of the console.
	sessionCookie = "gateway_console"

	// sessionTime is for how long a cookie counts.
	sessionTime = 12 * time.Hour
)

// sessions are the sessions of the console. None is stored: a cookie says which token was exchanged
// for it and until when it counts, and has a keyed hash (HMAC) of both under that token. So each
// process of the gateway knows every session, a restart ends none, and a token that is changed or
// removed ends all of its own.
//
// The cookie is "<end>.<mark>.<hash>". The end is in Unix seconds. The mark is a hash of the token, which
// tells the tokens apart.
type sessions struct {
	tokens []Token
	marks  []string
	now    core.Clock
}

// newSessions returns the sessions of the console.
func newSessions(o ConsoleOptions) *sessions {
	s := &sessions{tokens: o.Tokens, now: o.Now}
	for _, t := range o.Tokens {
		digest := sha256.Sum256([]byte("gateway console token\x00" + t.Text))
		s.marks = append(s.marks, hex.EncodeToString(digest[:8]))
	}
	return s
}

// token returns the token with a text. It compares digests, with all tokens, so that the time reveals
// nothing.
func (s *sessions) token(text string) (Token, bool) {
	digest, found := sha256.Sum256([]byte(text)), -1
	for i, t := range s.tokens {
		known := sha256.Sum256([]byte(t.Text))
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], known[:]), i, found)
	}
	if found < 0 {
		return Token{}, false
	}
	return s.tokens[found], true
}

// coded returns the token with which a code was made.
func (s *sessions) coded(code string) (Token, bool) {
	for _, t := range s.tokens {
		if wire.IsCodeOf(code, t.Text, s.now()) {
			return t, true
		}
	}
	return Token{}, false
}

// of returns the token of a request's session. If the API has no tokens, each request has all rights.
func (s *sessions) of(r *http.Request) (Token, bool) {
	if len(s.tokens) == 0 {
		return Token{Role: core.RoleAdmin}, true
	}
	// A browser may have several cookies of the name: those of other paths, or of an earlier gateway.
	for _, c := range r.CookiesNamed(sessionCookie) {
		if token, ok := s.read(c.Value); ok {
			return token, true
		}
	}
	return Token{}, false
}

// read returns the token of a cookie that counts.
func (s *sessions) read(value string) (Token, bool) {
	end, rest, _ := strings.Cut(value, ".")
	mark, hash, _ := strings.Cut(rest, ".")
	until, err := strconv.ParseInt(end, 10, 64)
	if err != nil || !s.now().Before(time.Unix(until, 0)) {
		return Token{}, false
	}
	for i, t := range s.tokens {
		if s.marks[i] == mark && hmac.Equal([]byte(hash), []byte(sessionHash(t, end, mark))) {
			return t, true
		}
	}
	return Token{}, false
}

// cookie returns the cookie of a session that begins now. It has no path, so a browser sends it only
// to where the console is, also below the path of a proxy.
func (s *sessions) cookie(t Token, secure bool) *http.Cookie {
	end := strconv.FormatInt(s.now().Add(sessionTime).Unix(), 10)
	mark := ""
	for i, known := range s.tokens {
		if known.Text == t.Text {
			mark = s.marks[i]
		}
	}
	return &http.Cookie{
		Name: sessionCookie, Value: end + "." + mark + "." + sessionHash(t, end, mark), MaxAge: int(sessionTime.Seconds()),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// sessionHash returns the keyed hash in a cookie.
func sessionHash(t Token, end, mark string) string {
	h := hmac.New(sha256.New, []byte("gateway console session\x00"+t.Text))
	h.Write([]byte(end + "." + mark))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
