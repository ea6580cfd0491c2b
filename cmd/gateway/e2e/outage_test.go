//go:build linux

package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// outageConfig has the shortest possible leases, 15 seconds beyond the timeout: jobs whose
// take was committed but not answered wait for the end of their lease.
const outageConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 1s, default_retry: {max: 100, backoff: fixed, interval: 100ms}}
worker: {max_concurrency: 10, batch_size: 10, stale_threshold_secs: 1}
sources: {app: {type: event}}
handlers: {load: {source: app, url: "${RECEIVER}/load", headers: {x-life: "${LIFE:-0}"}}}
`

const (
	outageLease   = 16 * time.Second // of the configuration above
	outageSenders = 8

	// backWithin bounds the time until a gateway works again after its database does.
	backWithin = 5 * time.Second
)

// A server can be made to fail.
type server interface {
	Kill()
	Restart() error
}

// TestPostgresRestarts: a gateway survives restarts of its database. It refuses events
// meanwhile, and loses none.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	// Data survives the death of a process even without syncs, and the recovery would spend
	// seconds on them.
	s, address := ownPostgres(t, servers.PostgresOptions{Settings: []string{"fsync=off"}})
	testOutages(t, s, postgresStore(address), whole(20, 5))
}

// TestMySQLRestarts is the same for MySQL.
func TestMySQLRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for leases to end")
	}
	t.Parallel()
	s, address := ownMySQL(t, servers.MySQLOptions{})
	testOutages(t, s, mysqlStore(address), 3)
}

// An outage is a time without a database.
type outage struct{ from, to time.Time }

func testOutages(t *testing.T, s server, st *store, n int) {
	r := receiver.New(t)
	g := newGatewayOn(t, st, outageConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	l := newLoad(g, r, pooled)
	l.pause = 10 * time.Millisecond // this test does not measure speed
	l.start(outageSenders)

	var outages []outage
	var healthy, accepting []time.Duration
	for range n {
		o, h, a := undergo(t, s, l)
		outages, healthy, accepting = append(outages, o), append(healthy, h), append(accepting, a)
	}
	l.end()
	l.settle(outageLease + 20*time.Second)
	g.awaitIdle(10 * time.Second)
	if g.ended() {
		t.Fatal("the gateway has ended, want that it outlives its database")
	}
	g.stop()

	accepted, delivered := l.counts()
	lost, unexplained := len(l.missing()), l.unlikeOutages(outages)
	t.Logf("outages %d: accepted %d, delivered %d, lost %d, duplicates %d, posts without 202: %v", n, accepted, delivered, lost, len(l.repeats), l.misses)
	t.Logf("after the database: healthy p50 %v, max %v; accepting p50 %v, max %v",
		percentile(healthy, 50), percentile(healthy, 100), percentile(accepting, 50), percentile(accepting, 100))
	if lost > 0 || len(l.alien) > 0 {
		t.Errorf("lost %d accepted events, delivered %d of what was never sent, want 0", lost, len(l.alien))
	}
	if len(unexplained) > 0 {
		t.Errorf("%d duplicates without a reason, such as %s", len(unexplained), strings.Join(unexplained[:min(5, len(unexplained))], "; "))
	}
	for what, n := range l.misses {
		if what != "503" {
			t.Errorf("posts that ended in %s: %d, want only 202 and 503", what, n)
		}
	}
	db := st.open(t)
	db.check(1)
	db.holds(l.acceptedIDs())
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed'`); n != 0 {
		t.Errorf("jobs that are not completed: %d, want 0", n)
	}
}

// undergo kills the server under load and starts it again. It returns the times from that
// start until the gateway was healthy and until it accepted an event.
func undergo(t *testing.T, s server, l *load) (o outage, healthy, accepting time.Duration) {
	t.Helper()
	g := l.gateways[0]
	wait.For(t, 20*time.Second, "events accepted and delivered", l.grows(20))
	<-time.After(rand.N(100 * time.Millisecond)) // at any point of the gateway's work
	o.from = time.Now()
	s.Kill()
	wait.For(t, 10*time.Second, "/health answers 503", func() bool {
		if g.ended() {
			t.Fatal("the gateway ended with its database")
		}
		status, _, err := g.health()
		return err == nil && status == 503
	})
	wait.For(t, 10*time.Second, "events refused", l.refuses(5))
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	o.to = time.Now()
	accepts := l.accepts()
	first := make(chan time.Duration, 1)
	go func() {
		wait.Until(2*backWithin, accepts)
		first <- time.Since(o.to)
	}()
	wait.Until(2*backWithin, g.healthy)
	healthy, accepting = time.Since(o.to), <-first
	if healthy > backWithin || accepting > backWithin {
		t.Errorf("after the database the gateway was healthy within %v and accepting within %v, want at most %v", healthy, accepting, backWithin)
	}
	return o, healthy, accepting
}

// grows returns a function that reports whether n more events were accepted and n more
// delivered.
func (l *load) grows(n int) func() bool {
	accepted, delivered := l.counts()
	return func() bool {
		a, d := l.counts()
		return a >= accepted+n && d >= delivered+n
	}
}

// accepts returns a function that reports whether another event was accepted.
func (l *load) accepts() func() bool {
	before, _ := l.counts()
	return func() bool { now, _ := l.counts(); return now > before }
}

// refuses returns a function that reports whether n more events were refused.
func (l *load) refuses(n int) func() bool {
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.misses["503"]
	}
	before := count()
	return func() bool { return count() >= before+n }
}

// unlikeOutages lists repeated deliveries whose outcome could have been stored.
func (w *witness) unlikeOutages(outages []outage) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.repeats {
		why, at := r.wrong(), r.first.at
		for _, o := range outages {
			if at.After(o.from.Add(-settleReach)) && at.Before(o.to.Add(settleReach)) {
				at = time.Time{}
			}
		}
		if why == "" && !at.IsZero() {
			why = "job " + r.first.job + " was delivered again although the database was there"
		}
		if why != "" {
			all = append(all, why)
		}
	}
	return all
}
