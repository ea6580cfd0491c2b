package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Session names the token with which a browser is signed in to the console.
type Session struct {
	Name  Text      `json:"name"` // of the token; null for a token with all rights, or if the API is open
	Role  core.Role `json:"role"`
	Open  bool      `json:"open"`  // whether the API has no tokens: then there is no session to end
	Sends bool      `json:"sends"` // whether the session may send events, to a process that takes them
}

// codeAge is for how long a code counts, and how far the clocks of a command and a gateway may differ.
const codeAge = time.Minute

// CodeOf returns a code that the console takes in place of a token for a minute. So a command opens a
// browser that is signed in, and no token stands in an address. A code is the time at which it was
// made and its keyed hash under the token.
func CodeOf(token string, at time.Time) string {
	unix := strconv.FormatInt(at.Unix(), 10)
	return unix + "." + hex.EncodeToString(codeHash(token, unix))
}

// IsCodeOf reports whether a text is a code that was made with a token, at most a minute ago.
func IsCodeOf(text, token string, now time.Time) bool {
	unix, sum, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(unix, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > codeAge {
		return false
	}
	given, err := hex.DecodeString(sum)
	return err == nil && hmac.Equal(given, codeHash(token, unix))
}

// codeHash returns the keyed hash of a time. The constant text separates this use of the token from
// any other one.
func codeHash(token, unix string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte("gateway console " + unix))
	return h.Sum(nil)
}
