//go:build linux

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
)

// A typedSecret is a secret of Standard Webhooks as a user types it.
type typedSecret struct {
	name, secret string
	library      bool // whether the library for JavaScript accepts it
}

var typedSecrets = []typedSecret{
	{"prefixed", base64Secret(storyKey), true},
	{"prefixed-bare", strings.TrimRight(base64Secret(storyKey), "="), true},
	{"base64", base64.StdEncoding.EncodeToString([]byte(storyKey)), true},
	{"bare", base64.RawStdEncoding.EncodeToString([]byte(storyKey)), true},
	{"hex", strings.Repeat("9f86d081884c7d65", 4), true},
	{"word", "password", true},
	{"word5", "plain", true}, // five digits are no valid base64, and the library ignores the fifth
	{"url-safe", "_-_-_-_-abcdefgh", false},
	{"spaces", "two words", false},
	{"unicode", "schlüssel", false},
	{"short", "a", false},
	{"private", "whsk_" + base64.StdEncoding.EncodeToString([]byte("a seed of an ed25519 key pair...")), false},
}

// secretsConfig has two handlers for each secret. One delivers to the receiver, the other to a
// source of this gateway with the same secret.
func secretsConfig() string {
	var sources, handlers strings.Builder
	for _, s := range typedSecrets {
		quoted, _ := json.Marshal(s.secret)
		fmt.Fprintf(&sources, "  %s: {type: webhook, verify: standard-webhooks, secret: %s}\n", s.name, quoted)
		fmt.Fprintf(&handlers, "  to-%s: {source: app, url: \"${RECEIVER}/out/%s\", signing_secret: %s}\n", s.name, s.name, quoted)
		fmt.Fprintf(&handlers, "  self-%s: {source: app, url: \"http://127.0.0.1:${PORT}/webhooks/%s\", signing_secret: %s}\n", s.name, s.name, quoted)
		fmt.Fprintf(&handlers, "  from-%s: {source: %s, url: \"${RECEIVER}/in/%s\"}\n", s.name, s.name, s.name)
	}
	return "server: {host: 127.0.0.1, port: \"${PORT}\", allow_private_urls: true}\ndelivery: {timeout: 5s}\nsources:\n  app: {type: event}\n" +
		sources.String() + "handlers:\n" + handlers.String()
}

// TestTypedSecrets: with every secret, a gateway accepts the deliveries of a gateway. If the
// library accepts the secret, it also accepts deliveries of the gateway, and the gateway
// accepts the library's signatures.
func TestTypedSecrets(t *testing.T) {
	t.Parallel()
	clients := servers.Clients(t)
	r := receiver.New(t)
	g := newGateway(t, secretsConfig(), r)
	g.start()
	const body = `{"type": "contact.created"}`
	wantAnswer(t, "event", g.post("/events/app/contact.created", body, "Content-Type", "application/json"), 202, "Event accepted")
	for _, s := range typedSecrets {
		d := r.Await(t, 10*time.Second, "/out/"+s.name, 1)[0]
		if d := r.Await(t, 10*time.Second, "/in/"+s.name, 1)[0]; d.Body != body {
			t.Errorf("%s: a gateway delivered %q to itself, want %q", s.name, d.Body, body)
		}
		if !s.library {
			continue
		}
		if err := clients.Verify("standardwebhooks", s.secret, asSigned(d)); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		signed := clients.Sign(servers.Posting{Provider: "standardwebhooks", Secret: s.secret, Body: body, ID: "msg_" + s.name})
		wantAnswer(t, s.name, g.postSigned("/webhooks/"+s.name, signed), 200, "Event received")
	}
}
