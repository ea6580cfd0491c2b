//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

const alertConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 5, backoff: fixed, interval: 100ms}}
sources: {github: {type: webhook, verify: github, secret: a-secret-of-24-bytes-or-more}}
alerts:
  - {url: "${RECEIVER}/generic", on: [verification_failure]}
  - {url: "${RECEIVER}/slack", type: slack, on: [verification_failure]}
  - {url: "${RECEIVER}/discord", type: discord, on: [verification_failure]}
`

// TestAlerts: a hundred forged webhooks are told once to each place, also to one
// that fails at first; and no event comes of them.
func TestAlerts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	g := newGateway(t, alertConfig, r)
	r.on("/slack", failing(2))
	g.start()
	for range 100 {
		a := g.post("/webhooks/github", `{"action":"<!channel> & @everyone"}`, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
		if a.status != http.StatusUnauthorized || a.body != "Invalid signature" {
			t.Fatalf("a forged webhook is answered %d %q, want 401", a.status, a.body)
		}
	}
	generic := r.await(t, 10*time.Second, "/generic", 1)[0]
	slack := r.await(t, 10*time.Second, "/slack", 3)[2]
	discord := r.await(t, 10*time.Second, "/discord", 1)[0]
	g.awaitIdle(10 * time.Second)

	var told struct {
		Alert, Source, Reason string
		Count                 int
		ClientIP              string `json:"client_ip"`
	}
	if err := json.Unmarshal([]byte(generic.body), &told); err != nil {
		t.Fatalf("generic alert %s: %v", generic.body, err)
	}
	if told.Alert != "verification_failure" || told.Source != "github" || told.Count != 1 || told.ClientIP != "127.0.0.1" || !strings.Contains(told.Reason, "X-Hub-Signature-256") {
		t.Errorf("generic alert %s", generic.body)
	}
	for name, body := range map[string]string{"slack": slack.body, "discord": discord.body} {
		var message map[string]any
		if err := json.Unmarshal([]byte(body), &message); err != nil || strings.Contains(body, "everyone") {
			t.Errorf("%s alert %s: %v", name, body, err)
		}
	}
	if !strings.Contains(slack.body, `"text"`) || !strings.Contains(discord.body, `"allowed_mentions":{"parse":[]}`) {
		t.Errorf("slack alert %s\ndiscord alert %s", slack.body, discord.body)
	}
	if got := g.events(); len(got) != 0 {
		t.Errorf("events listed: %q, want none", got)
	}
	g.stop()
	db := g.ledger()
	db.check(3)
	if n := db.count(`SELECT COUNT(*) FROM events`); n != 1 {
		t.Errorf("alerts stored: %d, want 1", n)
	}
}
