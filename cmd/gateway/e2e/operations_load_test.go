//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// besideConfig has a handler with dead jobs, and one for live events.
const besideConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
sources: {app: {type: event}}
handlers:
  billing: {source: app, events: [order.created], url: "${RECEIVER}/billing", circuit_breaker: off}
  notes: {source: app, events: [note.added], url: "${RECEIVER}/notes"}
`

// besideRate is the live load of the windows in which latencies are taken, in events a second.
const besideRate = 100

// TestOperationBesideLoad: while an operation at the default rate retries a part of many dead jobs, each
// live event is accepted and delivered. It reports p99 with the operation over p99 without, windows in
// turns. GATEWAY_TORTURE_OPERATION is the number of dead jobs of a run whose figures count, on a quiet
// machine; without it a short run has a few jobs.
func TestOperationBesideLoad(t *testing.T) {
	dead, turns, window, least := 2000, 1, 2*time.Second, 10 // other tests use the machine too
	if text := os.Getenv("GATEWAY_TORTURE_OPERATION"); text != "" {
		var err error
		if dead, err = strconv.Atoi(text); err != nil {
			t.Fatalf("GATEWAY_TORTURE_OPERATION=%q, want a number", text)
		}
		turns, window, least = 3, 20*time.Second, 80
	}
	for _, p := range []struct {
		place
		number, digits string // see insertDead
	}{
		{place{"SQLite", ownFile}, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, `printf('%%016d', %s)`},
		{place{"PostgreSQL", onPostgres}, `WITH n(i) AS (SELECT generate_series(1, %d)) `, `lpad((%s)::text, 16, '0')`},
	} {
		t.Run(p.name, func(t *testing.T) {
			r := receiver.New(t)
			g := newGatewayOn(t, p.on(t), besideConfig, r)
			g.env = append(g.env, "GATEWAY_LOG=warn")
			g.start()
			g.send("/events/app/order.created", `{}`)
			r.Await(t, 20*time.Second, "/billing", 1)
			g.awaitIdle(20 * time.Second)
			g.stop()
			insertDead(t, g, p.number, p.digits, dead)
			g.start()
			<-time.After(window / 4)          // after the chores of a start
			var calm, busy [2][]time.Duration // until accepted, until delivered
			measure := func(to *[2][]time.Duration) {
				accepted, delivered := besideP99(t, g, r, window)
				to[0], to[1] = append(to[0], accepted), append(to[1], delivered)
			}
			for range turns {
				measure(&calm)
				id := beginRetry(t, g)
				measure(&busy)
				if a := g.post("/api/operations/"+id+"/cancel", ""); a.status != http.StatusOK {
					t.Fatalf("cancel = %d %s", a.status, a.body)
				}
				var op struct{ Acted int }
				a, err := fetch(pooled, request{method: http.MethodGet, url: g.url("/api/operations/" + id)})
				if err != nil || json.Unmarshal([]byte(a.body), &op) != nil || op.Acted < int(window.Seconds())*least {
					t.Errorf("the operation acted on %d jobs within %s (%v), want %d a second at least", op.Acted, window, err, least)
				}
				g.awaitIdle(60 * time.Second)
			}
			for i, what := range []string{"accepted", "delivered"} {
				without, with := exactly(calm[i], 50), exactly(busy[i], 50)
				t.Logf("%d dead jobs, p99 until %s: without %v, with %v, ratio %.2f (%v, %v)", dead, what, without, with, float64(with)/float64(without), calm[i], busy[i])
			}
		})
	}
}

// insertDead inserts dead jobs, a thousand of each event. number selects the numbers 1 to %d as i, and
// digits writes a number with 16 digits.
func insertDead(t *testing.T, g *gateway, number, digits string, n int) {
	t.Helper()
	db := g.ledger()
	defer db.close()
	now := time.Now().Add(-time.Minute).UnixMilli()
	event := db.column(`SELECT id FROM events`)[0]
	for _, text := range []string{
		fmt.Sprintf(number, n/1000+1) + `INSERT INTO events (id, source, type, payload, content_type, headers, created_at)
			SELECT '01J8000000' || ` + fmt.Sprintf(digits, "i - 1") + fmt.Sprintf(`, 'app', 'order.created', payload, content_type, headers, %d FROM n, events WHERE id = '%s'`, now, event),
		fmt.Sprintf(number, n) + `INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, last_error, created_at, finished_at)
			SELECT '01J9000000' || ` + fmt.Sprintf(digits, "i") + `, '01J8000000' || ` + fmt.Sprintf(digits, "i / 1000") +
			fmt.Sprintf(`, 'handler/billing', 'dead', 5, 5, 'timeout: no answer within 30s', %d, %d FROM n`, now, now),
	} {
		if _, err := db.db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
}

// beginRetry begins to retry all dead jobs at the default rate.
func beginRetry(t *testing.T, g *gateway) string {
	t.Helper()
	a := g.post("/api/operations", `{"action": "retry", "filter": {"consumer": "billing"}}`)
	var op struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &op); err != nil || a.status != http.StatusOK {
		t.Fatalf("begin = %d %s", a.status, a.body)
	}
	return op.ID
}

// besideP99 sends live events for a window, and returns the p99 until they were accepted and until they
// were delivered.
func besideP99(t *testing.T, g *gateway, r *receiver.Receiver, window time.Duration) (accepted, delivered time.Duration) {
	t.Helper()
	var mu sync.Mutex
	sent := map[string]time.Time{}
	var took []time.Duration
	var senders sync.WaitGroup
	body := fmt.Sprintf(`{"text": "%01000d"}`, 1)
	before := len(r.At("/notes"))
	tick := time.NewTicker(time.Second / besideRate)
	for began := time.Now(); time.Since(began) < window; {
		at := <-tick.C
		senders.Go(func() {
			a, err := fetch(pooled, request{method: http.MethodPost, url: g.url("/events/app/note.added"), body: body})
			end := time.Now()
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.status != http.StatusAccepted {
				t.Errorf("POST = %d %s, %v", a.status, a.body, err)
				return
			}
			sent[a.eventID()], took = at, append(took, end.Sub(at))
		})
	}
	tick.Stop()
	senders.Wait()
	var lag []time.Duration
	for _, d := range r.Await(t, 60*time.Second, "/notes", before+len(sent))[before:] {
		lag = append(lag, d.At.Sub(sent[d.Event()]))
	}
	return exactly(took, 99), exactly(lag, 99)
}

// exactly returns a percentile that is not rounded to milliseconds.
func exactly(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*p+99)/100-1].Round(10 * time.Microsecond)
}
