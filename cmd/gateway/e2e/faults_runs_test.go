//go:build linux

package e2e

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// runsConfig has a workflow only: each of its steps is a transition.
const runsConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 1s}
worker: {max_concurrency: 10, batch_size: 10, stale_threshold_secs: 1}
sources: {app: {type: event}}
workflows:
  two:
    source: app
    steps:
      - {name: first, url: "${RECEIVER}/first", result_path: $.first, retry: {max: 100, backoff: fixed, interval: 100ms}}
      - {name: last, url: "${RECEIVER}/load", retry: {max: 100, backoff: fixed, interval: 100ms}, end: true}
`

// TestHistoryLocked: while the table of the history is locked, events are accepted and no run
// continues. /health reports it, and every run ends once the lock is gone.
func TestHistoryLocked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		on   func(testing.TB) *store
		lock func(*sql.DB) func(*testing.T) func()
	}{
		{"PostgreSQL", onPostgres, func(db *sql.DB) func(*testing.T) func() {
			return held(db, "BEGIN", "LOCK TABLE history IN EXCLUSIVE MODE")
		}},
		{"MariaDB", onMySQL, func(db *sql.DB) func(*testing.T) func() { return held(db, "LOCK TABLES history READ") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := tt.on(t)
			testRunsFault(t, st, tt.lock(st.open(t).db))
		})
	}
}

func testRunsFault(t *testing.T, st *store, begin func(*testing.T) func()) {
	r := receiver.New(t)
	g := newGatewayOn(t, st, runsConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=error")
	g.start()
	l := newLoad(g, r, pooled)
	r.Tap(func(d receiver.Delivery) { // the first step does not show the event
		if d.Path == "/load" {
			l.delivered(d)
		}
	})
	l.pause = 50 * time.Millisecond
	l.start(faultSenders)
	delivered := func() int { _, n := l.counts(); return n }
	wait.For(t, 20*time.Second, "runs that ended", func() bool { return delivered() > 5 })
	h := watch(g)
	is := func(want int) func() bool {
		return func() bool { status, _ := h.now(); return status == want }
	}

	end := sync.OnceFunc(begin(t))
	defer end()
	since, last := time.Now(), delivered()
	wait.For(t, 40*time.Second, "no run moves on", func() bool {
		if n := delivered(); n != last {
			since, last = time.Now(), n
		}
		return time.Since(since) > followsWithin
	})
	if status, body := h.now(); status != 503 {
		t.Errorf("no run moved on for %v, and /health = %d %s, want 503", followsWithin, status, body)
	}
	end()
	wait.For(t, 30*time.Second, "runs that move on after the fault", func() bool { return delivered() > last })
	if !wait.Until(followsWithin, is(200)) {
		status, body := h.now()
		t.Errorf("runs move on for %v, and /health = %d %s, want 200", followsWithin, status, body)
	}
	l.end()
	l.settle(outageLease + 20*time.Second)
	g.awaitIdle(10 * time.Second)
	g.stop()
	if lost := l.missing(); len(lost) > 0 || len(l.alien) > 0 {
		t.Errorf("runs of %d accepted events did not end, %d ended of what was never sent, want 0", len(lost), len(l.alien))
	}
	db := g.ledger()
	db.sound()
	db.holds(l.acceptedIDs())
	if n := db.count(`SELECT COUNT(*) FROM runs WHERE status <> 'completed'`); n != 0 {
		t.Errorf("runs that are not completed: %d, want 0", n)
	}
}
