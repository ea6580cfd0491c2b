//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestRemoteConfigurationGainsNoPowers: an attacker may write a remote configuration. The
// attacker's configurations would have the gateway call a service on its machine, and show
// its replies to the attacker's token. The gateway ignores them.
func TestRemoteConfigurationGainsNoPowers(t *testing.T) {
	t.Parallel()
	const token, attackers = "0123456789abcdef0123456789abcdef", "attackers-attackers-attackers-attackers"
	internal := receiver.New(t)
	internal.On("/", func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "internal s3cret") })
	site := newWebSite(t)
	g := newGateway(t, "", nil)
	with := func(server, auth, source string) string {
		return fmt.Sprintf("server: {host: 127.0.0.1, port: %d%s}\napi: {auth_token: \"%s\"}\nsources: {app: {type: event%s}}\nhandlers: {spy: {source: app, url: '%s', retry: {max: 1}}}\n",
			g.port, server, auth, source, internal.URL()+"/")
	}
	const mine = "${GATEWAY_VAR_TOKEN}"
	honest := with("", mine, ", allowed_ips: [127.0.0.0/9, 192.0.2.0/24]")
	site.set(honest)
	g.env = append(g.env, "GATEWAY_CONFIG="+site.address(), "GATEWAY_CONFIG_POLL=1s", "GATEWAY_VAR_TOKEN="+token)
	g.start()

	ask := func(method, path, with string) answer {
		t.Helper()
		a, err := fetch(oneShot, request{method: method, url: g.url(path), body: "{}",
			headers: []string{"Authorization", "Bearer " + with, "Content-Type", "application/json"}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct{ config, field string }{
		{with(", allow_private_urls: true, trust_proxy: true, echo: true", attackers, ", allowed_ips: [127.0.0.0/9, 192.0.2.0/24]"), "api.auth_token"},
		{with(", allow_private_urls: true", mine, ", allowed_ips: [127.0.0.0/9, 192.0.2.0/24]"), "server.allow_private_urls"},
		{with(", trust_proxy: true", mine, ", allowed_ips: [127.0.0.0/9, 192.0.2.0/24]"), "server.trust_proxy"},
		{with(", echo: true", mine, ", allowed_ips: [127.0.0.0/9, 192.0.2.0/24]"), "server.echo"},
		{with("", mine, ", allowed_ips: [127.0.0.0/8, 192.0.2.0/24]"), "sources.app.allowed_ips"},
		{with("", mine, ""), "sources.app.allowed_ips"},
		{with(", trusted_proxies: [127.0.0.0/8]", mine, ", allowed_ips: [127.0.0.0/9, 192.0.2.0/24]"), "server.trusted_proxies"},
	} {
		before := strings.Count(g.log.String(), c.field)
		site.set(c.config)
		wait.For(t, 30*time.Second, "the log says of "+c.field, func() bool { return strings.Count(g.log.String(), c.field) > before })
		g.ignores("forbidden")
		if a := ask("GET", "/api/events", attackers); a.status != http.StatusUnauthorized {
			t.Errorf("%s: the attacker's token: %d %s, want 401", c.field, a.status, a.body)
		}
		if a := ask("POST", "/_echo/x", token); a.status != http.StatusNotFound {
			t.Errorf("%s: /_echo: %d %s, want 404", c.field, a.status, a.body)
		}
		site.set(honest)
		g.ignores("")
	}
	if a := ask("POST", "/events/app/order.created", token); a.status != http.StatusAccepted {
		t.Errorf("an event: %d %s, want 202", a.status, a.body)
	}
	wait.For(t, 30*time.Second, "the delivery is refused", func() bool {
		return strings.Contains(ask("GET", "/api/jobs", token).body, `"status":"dead"`)
	})
	if n := len(internal.All()); n != 0 || strings.Contains(g.log.String(), attackers) {
		t.Errorf("the internal service was called %d times, want never, and the log tells no token", n)
	}

	// The same addresses in another notation are allowed, and so are fewer addresses.
	site.set(with("", mine, ", allowed_ips: [127.0.0.0/10, 127.64.0.0/10, 192.0.2.0/25, 192.0.2.128/25]"))
	wait.For(t, 30*time.Second, "other words are followed", func() bool { return g.series(`gateway_config_reloads_total{result="applied"}`) == "1" })
	if got := g.series(`gateway_config_reloads_total{result="forbidden"}`); got != "7" {
		t.Errorf("%s configurations were forbidden, want 7", got)
	}
	g.stop()
}
