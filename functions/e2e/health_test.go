//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

const healthConfig = `
server: {allow_private_urls: true}
delivery: {timeout: 2s, default_retry: {max: 50, backoff: fixed, interval: 1h}} # no failed job is due again, so its handler does not lag
sources: {app: {type: event}}
handlers:
  orders: {source: app, events: ["order.*"], url: "${RECEIVER}/orders", circuit_breaker: {failures: 2, cooldown: 1d}}
  mail: {source: app, events: ["mail.*"], url: "${RECEIVER}/mail"}
queues: {inbox: {source: app, events: ["message.*"]}}
alerts:
  url: "${RECEIVER}/ops"
  on: [circuit_opened, circuit_closed, lag, held, quiet]
  lag: {older_than: 1s}
  held: {older_than: 1s}
  quiet: {app: 1s}
`

// TestHealth: a breaker opens in the worker, a queue lags, a handler is held and a source is
// quiet. The minute's tick of cron stores one alert about each, and nudges the worker. The
// function of operators stores the alert that the breaker was closed.
func TestHealth(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: healthConfig, receiver: r}.new(t, db)
		r.On("/orders", receiver.Failing(1000))
		d.must(200, "POST", "/api/holds", `{"target": "mail"}`)
		d.send("/events/message.new", `{}`)
		for range 2 { // as many failures as open the breaker
			d.send("/events/order.created", `{}`)
		}
		r.Await(t, 20*time.Second, "/orders", 2)
		goesBy(t, 1500*time.Millisecond) // the ages that the alerts ask for
		d.tick(d.cron)
		r.Await(t, 20*time.Second, "/ops", 4)
		d.tick(d.cron)
		d.must(200, "POST", "/api/handlers/orders/breaker/reset", ``)
		r.Await(t, 20*time.Second, "/ops", 5)
		d.stop()
		var got []string
		for _, a := range r.At("/ops") {
			kind, _, _ := strings.Cut(strings.TrimPrefix(a.Body, `{"alert":"`), `"`)
			got = append(got, kind)
		}
		for kind, want := range map[string]int{"lag": 1, "held": 1, "quiet": 1, "circuit_opened": 1, "circuit_closed": 1} {
			stored := db.count(`SELECT COUNT(*) FROM events WHERE type = 'alert.` + kind + `'`)
			if told := strings.Count(strings.Join(got, " "), kind); stored != want || told != want {
				t.Errorf("alerts of %s: %d stored, %d delivered, want %d", kind, stored, told, want)
			}
		}
	})
}
