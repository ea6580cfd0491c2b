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

const delaysConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: 5s}
sources: {app: {type: event}}
handlers:
  now: {source: app, url: "${RECEIVER}/now"}
  slow: {source: app, url: "${RECEIVER}/slow", delay: 2s}
queues: {line: {source: app, delay: 2s}}
workflows:
  flow:
    source: app
    timeout: 60
    steps: [{name: only, url: "${RECEIVER}/step", end: true}]
`

// TestDelays: jobs wait for the delay of their consumer, or for the time that the sender said. None
// comes early, each comes at the next look at the latest, and a kill changes nothing.
func TestDelays(t *testing.T) {
	t.Parallel()
	for _, p := range append(everyServer(), place{"SQLite", ownFile}) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			look := holdLook
			if strings.HasPrefix(p.name, "D1") {
				look = holdLookD1
			}
			r := receiver.New(t)
			g := newGatewayOn(t, p.on(t), delaysConfig, r)
			g.start()
			testDelays(t, g, r, look+holdGrace)
		})
	}
}

// testDelays sends events. late is how late a job may come.
func testDelays(t *testing.T, g *gateway, r *receiver.Receiver, late time.Duration) {
	for header, value := range map[string]string{"X-Gateway-Delay": "366d", "X-Gateway-Deliver-At": "tomorrow"} {
		if a := g.post("/events/order.created", `{}`, header, value); a.status != http.StatusBadRequest || !strings.Contains(a.body, header+" must be one ") {
			t.Errorf("%s: %s = %d %q, want 400 that names the header", header, value, a.status, a.body)
		}
	}
	began := time.Now()
	plain := g.send("/events/order.created", `{}`)
	delayed := g.send("/events/order.created", `{}`, "X-Gateway-Delay", "4s")
	timed := g.send("/events/order.created", `{}`, "X-Gateway-Deliver-At", began.Add(4*time.Second).UTC().Format(time.RFC3339Nano))
	accepted := time.Now()
	event := func(id string) (answer, error) {
		return fetch(pooled, request{method: http.MethodGet, url: g.url("/api/events/" + id)})
	}
	if a, err := event(delayed); err != nil || strings.Count(a.body, `"status":"scheduled"`) != 4 || strings.Count(a.body, `"waiting":{"for":"time"`) != 4 {
		t.Errorf("jobs of the delayed event = %s, %v, want four that wait for their time", a.body, err)
	}
	wait.For(t, 10*time.Second, "the jobs without a delay are completed", func() bool { // a kill would leave them leased
		a, err := event(plain)
		return err == nil && strings.Count(a.body, `"status":"completed"`) == 3 // two jobs and the run
	})
	g.kill()
	g.start()
	q := queue{g: g, name: "line"}
	first := q.await(1)[0]
	checkDelay(t, "the first message", time.Now(), began.Add(2*time.Second), accepted.Add(2*time.Second+late))
	others := map[string]bool{}
	for len(others) < 2 {
		for _, m := range q.await(1) {
			checkDelay(t, "a delayed message", time.Now(), began.Add(4*time.Second), accepted.Add(4*time.Second+late))
			others[m.EventID] = true
		}
	}
	if first.EventID != plain || !others[delayed] || !others[timed] {
		t.Errorf("messages of %s, then of %v, want of %s, then of %s and %s", first.EventID, others, plain, delayed, timed)
	}
	want := map[string]map[string]time.Duration{
		"/now":  {plain: 0, delayed: 4 * time.Second, timed: 4 * time.Second},
		"/slow": {plain: 2 * time.Second, delayed: 4 * time.Second, timed: 4 * time.Second},
		"/step": {plain: 0, delayed: 4 * time.Second, timed: 4 * time.Second},
	}
	for path, delays := range want {
		for _, d := range r.Await(t, 20*time.Second, path, 3) {
			after := delays[d.Event()]
			checkDelay(t, fmt.Sprintf("%s of an event with a delay of %v", path, after), d.At, began.Add(after), accepted.Add(after+late))
		}
	}
}

// checkDelay requires that something came between two times.
func checkDelay(t *testing.T, what string, at, earliest, latest time.Time) {
	t.Helper()
	// A stored time has milliseconds, so it may be up to one before the time that was meant.
	if at.Before(earliest.Add(-time.Millisecond)) || at.After(latest) {
		t.Errorf("%s came %v after its earliest time, want 0 to %v", what, at.Sub(earliest), latest.Sub(earliest))
	}
}
