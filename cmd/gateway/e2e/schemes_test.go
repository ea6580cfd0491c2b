//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/verify"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// secretOf returns a secret that is valid for a scheme. The ed25519 pair is from the tests of
// the authors of Standard Webhooks.
func secretOf(scheme string) string {
	if scheme == "standard_webhooks" {
		return "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	}
	return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
}

// TestSendSignsForEveryScheme: for every name of a scheme, a running gateway accepts the
// signature of gateway send, and delivers the event with the requested type. It refuses a
// signature with another secret.
func TestSendSignsForEveryScheme(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	var sources, handlers strings.Builder
	for _, name := range verify.Names() {
		fmt.Fprintf(&sources, "  %s: {type: webhook, verify: %s, secret: \"${SECRET_%s}\"}\n", name, name, strings.ReplaceAll(name, "-", "_"))
		fmt.Fprintf(&handlers, "  %s: {source: %s, url: \"${RECEIVER}/%s\"}\n", name, name, name)
	}
	g := newGateway(t, "server:\n  host: 127.0.0.1\n  port: ${PORT}\n  allow_private_urls: true\n  public_url: https://hooks.example/in\nsources:\n"+
		sources.String()+"handlers:\n"+handlers.String(), r)
	environment := g.env
	for _, name := range verify.Names() {
		g.env = append(g.env, "SECRET_"+strings.ReplaceAll(name, "-", "_")+"="+secretOf(name))
	}
	g.start()
	for _, name := range verify.Names() {
		g.run("send", "-s", name, "-t", "order.created", `{"total": 42}`)
		d := r.Await(t, 10*time.Second, "/"+name, 1)[0]
		sent := d.Body
		if name == "linear" { // its payload gets the time of sending
			sent, _, _ = strings.Cut(d.Body, ",")
			sent += "}"
		}
		if got := d.Header.Get("X-Gateway-Event-Type"); got != "order.created" || sent != `{"total": 42}` {
			t.Errorf("%s: delivered %s of type %q, want order.created", name, d.Body, got)
		}
	}
	for _, name := range verify.Names() { // the sender's secrets, not the gateway's
		other := strings.Replace(secretOf(name), "whsec_M", "whsec_N", 1)
		if other == secretOf(name) {
			other = "whsec_NfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		}
		environment = append(environment, "SECRET_"+strings.ReplaceAll(name, "-", "_")+"="+other)
	}
	g.env = environment
	for _, name := range verify.Names() {
		out := g.refused("send", "-s", name, "-t", "order.created", `{"total": 42}`)
		if !strings.Contains(out, "401 Unauthorized: Invalid signature; is it running with the same secret for this source?") {
			t.Errorf("%s, signed with another secret: %s", name, out)
		}
		if n := len(r.At("/" + name)); n != 1 {
			t.Errorf("%s: deliveries %d, want 1", name, n)
		}
	}
}

// refused runs a command that must fail, and returns its standard error.
func (g *gateway) refused(args ...string) string {
	g.t.Helper()
	r := run(g.t, g.command(args...))
	if r.code != 1 {
		g.t.Errorf("gateway %s: exit code %d, want 1\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stderr
}
