package endpoint

import (
	"slices"
	"strings"
)

var (
	// A header carries a credential if the last word of its name is one of these, or ends in token
	// or secret, as in X-Api-Key or X-Session-Token.
	credentialWords = []string{"authorization", "auth", "token", "key", "apikey", "secret", "password", "passwd", "cookie", "credential", "credentials", "session"}
	// These end in key, and are no secrets.
	plainKeys = []string{"idempotency-key", "partition-key", "routing-key"}
)

// IsCredential reports whether a header with this name, in any case, carries a credential.
func IsCredential(name string) bool {
	name = strings.ToLower(name)
	last := name[strings.LastIndexAny(name, "-_")+1:]
	ends := strings.HasSuffix(last, "token") || strings.HasSuffix(last, "secret")
	return (slices.Contains(credentialWords, last) || ends && isWord(last)) && !slices.Contains(plainKeys, name)
}

// isWord reports whether a text consists of small letters.
func isWord(s string) bool { return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }
