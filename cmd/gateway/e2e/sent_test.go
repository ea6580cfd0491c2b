//go:build linux

package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

const sentConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: 5s, record: all, signing_secret: whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0}
sources: {app: {type: event}}
handlers:
  made: {source: app, url: "${RECEIVER}/made?key=sesame-open&version=v2026.11", transform: '{"n": {{ $.n }}, "name": {{ $.name }}}', headers: {X-Api-Key: a-key-of-the-receiver}}
`

// TestSentAgain: the request of an attempt is shown without secrets, and the command of --curl
// sends the same body again, also a body that a transform made. Both work on the database and
// through the API.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		need(t, "curl", err)
	}
	r := receiver.New(t)
	g := newGateway(t, sentConfig, r)
	g.start()
	event := g.send("/events/order.created", `{"n": 9007199254740993, "name": "it's"}`)
	first := r.Await(t, 10*time.Second, "/made", 1)[0]
	g.awaitIdle(10 * time.Second)
	for i, flags := range [][]string{nil, {"--url", g.url("")}} {
		shown := g.run(append([]string{"inspect", event, "--attempt", "1"}, flags...)...)
		for _, want := range []string{"request: POST " + r.URL() + "/made?key=***&version=***", "X-Api-Key: ***", "Webhook-Signature: v1,", "request body:\n" + first.Body} {
			if !strings.Contains(shown, want) {
				t.Errorf("inspect %v lacks %q:\n%s", flags, want, shown)
			}
		}
		command := g.run(append([]string{"inspect", event, "--attempt", "1", "--curl"}, flags...)...)
		for _, secret := range []string{"sesame-open", "a-key-of-the-receiver"} {
			if strings.Contains(shown+command, secret) {
				t.Errorf("inspect %v shows the secret %q", flags, secret)
			}
		}
		sh := exec.Command("sh", "-c", command)
		sh.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "GATEWAY_QUERY_KEY=sesame-open", "GATEWAY_QUERY_VERSION=v2026.11", "GATEWAY_HEADER_X_API_KEY=a-key-of-the-receiver"}
		if out, err := sh.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", command, err, out)
		}
		again := r.Await(t, 10*time.Second, "/made", 2+i)[1+i]
		if again.Body != first.Body || again.Header.Get("X-Api-Key") != "a-key-of-the-receiver" || again.Header.Get("Webhook-Signature") != first.Header.Get("Webhook-Signature") || again.Query != first.Query {
			t.Errorf("%s sends %+v, want %+v", command, again, first)
		}
	}
	g.stop()
}
