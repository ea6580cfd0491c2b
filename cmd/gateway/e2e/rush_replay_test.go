//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestReplayKilled: the process is killed in the middle of POST /api/events/replay. The next one goes on
// with the operation, and each event is replayed exactly once, as the tables and the receiver show. An
// event that came in after the request is not replayed.
func TestReplayKilled(t *testing.T) {
	t.Parallel()
	const n = 3000 // 30 slices
	r := receiver.New(t)
	g := newGatewayOn(t, nil, besideConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	g.send("/events/app/order.created", `{}`)
	r.Await(t, 20*time.Second, "/billing", 1)
	g.awaitIdle(20 * time.Second)
	g.stop()
	db := g.ledger()
	defer db.close()
	first := db.column(`SELECT id FROM events`)[0]
	if _, err := db.db.ExecContext(t.Context(), fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO events (id, source, type, payload, content_type, headers, created_at)
		SELECT '01J8000000' || printf('%%016d', i), 'app', 'order.created', payload, content_type, headers, %d FROM n, events WHERE id = '%s'`,
		n, time.Now().Add(-time.Minute).UnixMilli(), first)); err != nil {
		t.Fatal(err)
	}
	g.start()

	answered := make(chan error, 1)
	go func() {
		_, err := fetch(oneShot, request{method: http.MethodPost, url: g.url("/api/events/replay"),
			body: `{"event_type": "order.created", "first": "01J80000000000000000000001", "last": "01J80000000000000000002990"}`})
		answered <- err
	}()
	wait.For(t, 20*time.Second, "some events are replayed", func() bool { return db.count(`SELECT COUNT(*) FROM operations WHERE acted > 0`) == 1 })
	g.kill()
	if err := <-answered; err == nil {
		t.Fatal("the request was answered before the kill")
	}
	if acted := db.count(`SELECT acted FROM operations WHERE state = 'running'`); acted == 0 || acted >= n-10 {
		t.Fatalf("%d events were replayed before the kill, want some", acted)
	}
	g.start()
	wait.For(t, 30*time.Second, "the operation is finished", func() bool { return db.count(`SELECT COUNT(*) FROM operations WHERE state = 'finished'`) == 1 })
	wait.For(t, 60*time.Second, "no job is left", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status NOT IN ('completed', 'dead', 'canceled')`) == 0
	})
	for what, want := range map[string]struct {
		query string
		n     int
	}{
		"operations with one entry of the audit": {fmt.Sprintf(`SELECT COUNT(*) FROM operations, audit WHERE acted = %d AND skipped = 0 AND audit.action = 'events.replay'`, n-10), 1},
		"events with one job": {`SELECT COUNT(*) FROM (SELECT event_id FROM jobs WHERE lane = 'handler/billing' AND status = 'completed'
			AND event_id LIKE '01J8%' GROUP BY event_id HAVING COUNT(*) = 1) AS once`, n - 10},
		"jobs": {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing'`, n - 10 + 1},
	} {
		if got := db.count(want.query); got != want.n {
			t.Errorf("%d %s, want %d", got, what, want.n)
		}
	}
	// A job that was under way at the kill may have been sent twice, by two attempts.
	jobs := map[string]string{}
	for _, d := range r.At("/billing") {
		if job := jobs[d.Event()]; job != "" && job != d.Job() {
			t.Errorf("event %s was sent for two jobs, %s and %s", d.Event(), job, d.Job())
		}
		jobs[d.Event()] = d.Job()
	}
	if len(jobs) != n-10+1 {
		t.Errorf("the receiver saw %d events, want %d", len(jobs), n-10+1)
	}
}
