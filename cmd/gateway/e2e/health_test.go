//go:build linux

package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// healthConfig has a handler whose breaker opens and closes by itself, one whose breaker is
// closed by a person, one that is held, and a queue without a consumer.
const healthConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {signing_secret: whsec_YWxsIG9mIHRoaXJ0eSBieXRlcyBvZiBhIGtleQ==, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources:
  app: {type: event}
  shop: {type: event}
handlers:
  billing: {source: app, events: [order.created], url: "${RECEIVER}/billing", circuit_breaker: {failures: 2, cooldown: 1s}}
  ledger: {source: app, events: [order.paid], url: "${RECEIVER}/ledger", circuit_breaker: {failures: 2, cooldown: 1h}}
  mail: {source: app, events: [mail.wanted], url: "${RECEIVER}/mail"}
queues: {line: {source: shop}}
`

const healthAlerts = `
alerts:
  - url: "${RECEIVER}/ops"
    on: [circuit_opened, circuit_closed, lag, held, quiet]
    lag: {older_than: 1s}
    held: {older_than: 1s}
    quiet: {shop: 1s}
  - {url: "${RECEIVER}/chat", type: slack, on: [circuit_opened]}
`

// TestHealth: two processes get a configuration with alerts on health. Each opening, closing,
// lag, hold and quiet source causes exactly one alert. A breaker that opens again within the
// interval causes no further alert.
func TestHealth(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	st := onPostgres(t)
	var fleet []*gateway
	for range 2 {
		g := newGatewayOn(t, st, healthConfig, r)
		g.launch()
		fleet = append(fleet, g)
	}
	for _, g := range fleet {
		g.awaitReady()
	}
	first, second := fleet[0], fleet[1]
	r.On("/billing", receiver.Failing(2))
	r.On("/ledger", receiver.Failing(2))
	first.send("/events/shop/order.shipped", `{}`)
	first.run("hold", "mail", "--reason", "their database")
	<-time.After(1500 * time.Millisecond) // the ages that the alerts ask for

	for _, g := range fleet {
		g.hangup(healthConfig+healthAlerts+"\n"+st.yaml, "configuration applied")
	}
	told := map[string]map[string]any{}
	await := func(alert, about string, n int) map[string]any {
		t.Helper()
		for _, d := range r.Await(t, 10*time.Second, "/ops", n) {
			var a map[string]any
			if err := json.Unmarshal([]byte(d.Body), &a); err != nil {
				t.Fatalf("alert %s: %v", d.Body, err)
			}
			checkSigned(t, d, "all of thirty bytes of a key")
			key := a["alert"].(string)
			for _, field := range []string{"handler", "queue", "source"} {
				if v, ok := a[field].(string); ok {
					key += " " + v
				}
			}
			told[key] = a
		}
		if told[alert+" "+about] == nil {
			t.Fatalf("no alert %s about %s among %v", alert, about, told)
		}
		return told[alert+" "+about]
	}
	await("lag", "line", 3)
	await("quiet", "shop", 3)
	if held := await("held", "mail", 3); held["reason"] != "their database" || !strings.HasSuffix(held["message"].(string), "gateway release mail") {
		t.Errorf("alert on a hold: %v", held)
	}

	first.send("/events/order.created", `{}`)
	r.Await(t, 10*time.Second, "/billing", 3)
	await("circuit_opened", "billing", 5)
	await("circuit_closed", "billing", 5)
	second.send("/events/order.paid", `{}`)
	await("circuit_opened", "ledger", 6)
	if got := second.run("breaker", "reset", "ledger", "--url", second.url("")); !strings.Contains(got, "ledger") {
		t.Errorf("gateway breaker reset = %q, want that it was closed", got)
	}
	await("circuit_closed", "ledger", 7)

	r.On("/billing", receiver.Failing(len(r.At("/billing"))+2))
	second.send("/events/order.created", `{}`)
	r.Await(t, 10*time.Second, "/billing", 6)
	r.Await(t, 10*time.Second, "/chat", 2)
	first.run("release", "mail")
	first.stop()
	second.stop()
	db := second.ledger()
	defer db.close()
	if n := db.count(`SELECT openings FROM gates WHERE lane = 'handler/billing'`); n != 2 {
		t.Errorf("the breaker of billing opened %d times, want 2", n)
	}
	// On a slow machine a second look finds that the handlers with open breakers lag.
	const stored = `SELECT COUNT(*) FROM events WHERE source = '_alerts'`
	want := map[string]int{"circuit_opened": 2, "circuit_closed": 2, "lag": 1, "held": 1, "quiet": 1}
	got := map[string]int{}
	for kind := range want {
		got[kind] = db.count(stored + ` AND type = 'alert.` + kind + `' AND (type <> 'alert.lag' OR payload LIKE '%"queue":"line"%')`)
	}
	if !maps.Equal(got, want) {
		t.Errorf("alerts stored: %v, want %v", got, want)
	}
	if n, m, all := len(r.At("/ops")), len(r.At("/chat")), db.count(stored); n != all || m != 2 {
		t.Errorf("%d alerts delivered to one place and %d to the other, want %d and 2", n, m, all)
	}
	for _, d := range r.At("/chat") {
		if !strings.Contains(d.Body, `{"text":"The circuit breaker of handler`) || d.Header.Get("Webhook-Signature") != "" {
			t.Errorf("%s %s with signature %q, want the form of Slack without one", http.MethodPost, d.Body, d.Header.Get("Webhook-Signature"))
		}
	}
}
