//go:build linux

package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

const alertConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {signing_secret: whsec_YWxsIG9mIHRoaXJ0eSBieXRlcyBvZiBhIGtleQ==, timeout: 5s, default_retry: {max: 5, backoff: fixed, interval: 100ms}}
sources: {github: {type: webhook, verify: github, secret: a-secret-of-24-bytes-or-more}}
alerts:
  - {url: "${RECEIVER}/generic", on: [verification_failure]}
  - {url: "${RECEIVER}/own", signing_secret: whsec_YW4gb3duIG9mIHRoaXJ0eSBieXRlcyBvZiBrZXk=, on: [verification_failure]}
  - {url: "${RECEIVER}/slack", type: slack, on: [verification_failure]}
  - {url: "${RECEIVER}/discord", type: discord, on: [verification_failure]}
`

// checkSigned requires a signature of Standard Webhooks with a key.
func checkSigned(t *testing.T, d receiver.Delivery, key string) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(d.Header.Get("Webhook-Id") + "." + d.Header.Get("Webhook-Timestamp") + "." + d.Body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got := d.Header.Get("Webhook-Signature"); got != want || d.Header.Get("Webhook-Id") == "" {
		t.Errorf("%s: signature %q, want %q", d.Path, got, want)
	}
}

// TestAlerts: each place gets one alert about a hundred forged webhooks, also a place that
// fails at first. The webhooks cause no event.
func TestAlerts(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, alertConfig, r)
	r.On("/slack", receiver.Failing(2))
	g.start()
	for range 100 {
		a := g.post("/webhooks/github", `{"action":"<!channel> & @everyone"}`, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
		if a.status != http.StatusUnauthorized || a.body != "Invalid signature" {
			t.Fatalf("a forged webhook is answered %d %q, want 401", a.status, a.body)
		}
	}
	generic := r.Await(t, 10*time.Second, "/generic", 1)[0]
	slack := r.Await(t, 10*time.Second, "/slack", 3)[2]
	discord := r.Await(t, 10*time.Second, "/discord", 1)[0]
	own := r.Await(t, 10*time.Second, "/own", 1)[0]
	g.awaitIdle(10 * time.Second)
	checkSigned(t, generic, "all of thirty bytes of a key")
	checkSigned(t, own, "an own of thirty bytes of key")
	if s := slack.Header.Get("Webhook-Signature") + discord.Header.Get("Webhook-Signature"); s != "" {
		t.Errorf("alerts to chat services are signed: %s", s)
	}

	var told struct {
		Alert, Source, Reason string
		Count                 int
		ClientIP              string `json:"client_ip"`
	}
	if err := json.Unmarshal([]byte(generic.Body), &told); err != nil {
		t.Fatalf("generic alert %s: %v", generic.Body, err)
	}
	if told.Alert != "verification_failure" || told.Source != "github" || told.Count != 1 || told.ClientIP != "127.0.0.1" || !strings.Contains(told.Reason, "X-Hub-Signature-256") {
		t.Errorf("generic alert %s", generic.Body)
	}
	for name, body := range map[string]string{"slack": slack.Body, "discord": discord.Body} {
		var message map[string]any
		if err := json.Unmarshal([]byte(body), &message); err != nil || strings.Contains(body, "everyone") {
			t.Errorf("%s alert %s: %v", name, body, err)
		}
	}
	if !strings.Contains(slack.Body, `"text"`) || !strings.Contains(discord.Body, `"allowed_mentions":{"parse":[]}`) {
		t.Errorf("slack alert %s\ndiscord alert %s", slack.Body, discord.Body)
	}
	if got := g.events(); len(got) != 0 {
		t.Errorf("events listed: %q, want none", got)
	}
	for command, want := range map[string]string{
		"jobs list --handler alert/3": " alert/3 (127.0.0.1) ",
		"status":                      "alert/4 (127.0.0.1) ",
	} {
		for _, where := range []string{"", " --url " + g.url("")} {
			got := g.run(strings.Fields(command + where)...)
			if !strings.Contains(got, want) || strings.Contains(got, "alert/1 ") != (command == "status") {
				t.Errorf("gateway %s%s prints no %q:\n%s", command, where, want, got)
			}
		}
	}
	g.stop()
	db := g.ledger()
	db.check(4)
	if n := db.count(`SELECT COUNT(*) FROM events`); n != 1 {
		t.Errorf("alerts stored: %d, want 1", n)
	}
}
