// Package libraries holds the signatures of the gateway against libraries in Go that senders
// and receivers of webhooks use. It is a module of its own: the gateway does not depend on
// these libraries.
package libraries

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/eventgateway/gateway/core/verify"
)

const key = "thirty-two bytes of a secret key"

// secrets are spellings that users type, and whether the library has a key for them.
var secrets = []struct {
	name, secret string
	taken        bool
}{
	{"whsec_ and base64", "whsec_" + base64.StdEncoding.EncodeToString([]byte(key)), true},
	{"whsec_ and base64 without padding", "whsec_" + base64.RawStdEncoding.EncodeToString([]byte(key)), false},
	{"base64", base64.StdEncoding.EncodeToString([]byte(key)), true},
	{"base64 without padding", base64.RawStdEncoding.EncodeToString([]byte(key)), false},
	{"base64 with a line break", base64.StdEncoding.EncodeToString([]byte(key)) + "\n", true},
	{"base64 over two lines", "dGhpcnR5LXR3byBieXRl\r\ncyBvZiBhIGtleSwgcGFk", true},
	{"base64 with spare bits", "QUJ=", true},
	{"hexadecimal", strings.Repeat("9f86d081884c7d65", 4), true},
	{"url-safe base64", "_-_-_-_-abcdefgh", false},
	{"a word like base64", "password", true},
	{"a word", "hunter2", false},
	{"two words", "two words", false},
	{"Unicode", "schlüssel", false},
	{"too short", "abc", false},
	{"four digits", "abcd", true},
}

func headers(t *testing.T, h map[string]string) http.Header {
	t.Helper()
	all := http.Header{}
	for name, value := range h {
		all.Set(name, value)
	}
	return all
}

// TestStandardWebhooks: the library accepts messages that the gateway signs, and the gateway
// accepts messages that the library signs, with every secret for which the library has a key.
func TestStandardWebhooks(t *testing.T) {
	const body = `{"n": 1.50, "sign": "€"}`
	now := time.Now()
	for _, tt := range secrets {
		t.Run(tt.name, func(t *testing.T) {
			scheme, err := verify.New("standard-webhooks", verify.Options{Secrets: []string{tt.secret}})
			if err != nil {
				t.Fatalf("New(%q) = %v", tt.secret, err)
			}
			library, err := standardwebhooks.NewWebhook(tt.secret)
			if taken := err == nil; taken != tt.taken {
				t.Fatalf("the library takes %q: %v (%v), want %v", tt.secret, taken, err, tt.taken)
			}
			if !tt.taken {
				return
			}
			ours, err := scheme.Sign(verify.Message{ID: "msg_1", Body: []byte(body)}, now)
			if err != nil {
				t.Fatal(err)
			}
			if err := library.Verify([]byte(body), headers(t, ours)); err != nil {
				t.Errorf("the library does not accept what the gateway signs with %q: %v", tt.secret, err)
			}
			signature, err := library.Sign("msg_1", now, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			theirs := headers(t, ours)
			theirs.Set("Webhook-Signature", signature)
			if err := scheme.Verify(verify.Request{Header: theirs.Values, Body: []byte(body)}, now); err != nil {
				t.Errorf("the gateway does not accept what the library signs with %q: %v", tt.secret, err)
			}
		})
	}
}
