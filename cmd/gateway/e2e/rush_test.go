//go:build linux

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestRetryKilled: the process is killed in the middle of POST /api/jobs/retry. The next one goes on with
// the operation, and each job is retried exactly once, as the tables and the receiver show.
func TestRetryKilled(t *testing.T) {
	t.Parallel()
	const n = 5000 // five slices
	r := receiver.New(t)
	g := newGatewayOn(t, nil, besideConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	g.send("/events/app/order.created", `{}`)
	first := r.Await(t, 20*time.Second, "/billing", 1)[0].Job()
	g.awaitIdle(20 * time.Second)
	insertDead(t, g, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, `printf('%%016d', %s)`, n)
	db := g.ledger()
	defer db.close()

	answered := make(chan error, 1)
	go func() {
		_, err := fetch(oneShot, request{method: http.MethodPost, url: g.url("/api/jobs/retry"), body: `{"handler": "billing"}`})
		answered <- err
	}()
	wait.For(t, 20*time.Second, "some jobs are retried", func() bool { return db.count(`SELECT COUNT(*) FROM operations WHERE acted > 0`) == 1 })
	g.kill()
	if err := <-answered; err == nil {
		t.Fatal("the request was answered before the kill")
	}
	if acted := db.count(`SELECT acted FROM operations WHERE state = 'running'`); acted == 0 || acted >= n {
		t.Fatalf("%d jobs were retried before the kill, want some", acted)
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
		"operations with one entry of the audit": {`SELECT COUNT(*) FROM operations, audit WHERE acted = 5000 AND audit.action = 'jobs.retry'`, 1},
		"jobs that were retried once":            {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing' AND status = 'completed' AND max_attempts = 10`, n},
	} {
		if got := db.count(want.query); got != want.n {
			t.Errorf("%d %s, want %d", got, what, want.n)
		}
	}
	// A job that was under way at the kill may have been sent twice, by two attempts of the same retry.
	seen := map[string]bool{}
	for _, d := range r.At("/billing") {
		if d.Job() == first {
			continue
		}
		if seen[d.Job()] = true; d.Attempt() < 6 || d.Attempt() > 7 {
			t.Errorf("attempt %d of job %s, want the first one after a retry, or one more after the kill", d.Attempt(), d.Job())
		}
	}
	if len(seen) != n {
		t.Errorf("the receiver saw %d retried jobs, want %d", len(seen), n)
	}
}
