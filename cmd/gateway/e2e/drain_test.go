//go:build linux

package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const (
	slowHandler = 300 * time.Millisecond
	fastHandler = 4 * time.Millisecond
	idleHandler = time.Second     // slower than any database stores events
	drainLimit  = 3 * time.Second // worker.drain_timeout_secs below
	drainGrace  = 6 * time.Second // for the rest of the shutdown, on a busy machine
)

const drainConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 60s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
worker: {max_concurrency: 10, batch_size: 10, drain_timeout_secs: 3}
sources: {app: {type: event}}
handlers: {load: {source: app, url: "${RECEIVER}/load"}}
`

// TestDrain: a gateway that gets SIGTERM or SIGINT under load loses nothing and repeats
// nothing. Attempts under way end and are stored. Jobs that were taken but not begun are
// released.
func TestDrain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		signal  os.Signal
		handler time.Duration // duration of the deliveries under way at the signal
		store   func(testing.TB) *store
	}{
		{"SIGTERM", syscall.SIGTERM, slowHandler, ownFile},
		{"SIGINT", syscall.SIGINT, slowHandler, ownFile},
		{"fast handlers", syscall.SIGTERM, fastHandler, ownFile},
		{"PostgreSQL", syscall.SIGTERM, slowHandler, onPostgres},
		{"fast handlers, PostgreSQL", syscall.SIGTERM, fastHandler, onPostgres},
		{"fast handlers, MySQL", syscall.SIGTERM, fastHandler, onMySQL},
		{"fast handlers, D1", syscall.SIGTERM, fastHandler, onProxy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g, l := backlog(t, tt.store(t), r, tt.handler)
			began := time.Now()
			g.signal(tt.signal)
			code := g.wait(drainLimit + 10*time.Second)
			took := time.Since(began)
			l.end()

			t.Logf("stopped in %v; posts without 202: %v", took.Round(time.Millisecond), l.misses)
			if code != 0 || took > drainLimit+drainGrace {
				t.Errorf("exit code %d after %v, want 0 within %v", code, took, drainLimit+drainGrace)
			}
			if l.misses[noAnswer] > 0 {
				t.Errorf("requests that hung = %d, want 0", l.misses[noAnswer])
			}
			checkStopped(t, g, l)
			r.On("/load", nil)
			g.start()
			l.settle(20 * time.Second)
			g.stop()
			l.judge(0).check(t, 0)
			checkFinished(t, g, l)
		})
	}
}

// backlog starts a gateway with more due deliveries than it can make at once, and a load that
// sends new events.
func backlog(t *testing.T, st *store, r *receiver.Receiver, handler time.Duration) (*gateway, *load) {
	t.Helper()
	r.On("/load", r.Taking(idleHandler))
	g := newGatewayOn(t, st, drainConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	// Each request has its own connection: the server closes an idle connection when it stops,
	// which may break a request that is being sent.
	l := newLoad(g, r, oneShot)
	l.start(4)
	if !l.progress(10*time.Second, func() bool {
		accepted, delivered := l.counts()
		return delivered >= 10 && accepted > delivered+300
	}) {
		t.Fatal("nothing is accepted or delivered for 10 s, and there is no backlog yet")
	}
	// With fast handlers the gateway takes jobs ahead, and has some jobs to release.
	r.On("/load", r.Taking(handler))
	_, before := l.counts()
	if !l.progress(10*time.Second, func() bool {
		_, delivered := l.counts()
		return delivered >= before+30
	}) {
		t.Fatal("nothing is delivered for 10 s")
	}
	return g, l
}

// checkStopped checks the database between the two processes.
func checkStopped(t *testing.T, g *gateway, l *load) {
	t.Helper()
	db := g.ledger()
	db.check(1)
	db.holds(l.acceptedIDs())
	_, delivered := l.counts()
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'completed'`); n != delivered {
		t.Errorf("recorded as completed = %d, want the %d that were delivered", n, delivered)
	}
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'available' AND attempt = 0`); n == 0 {
		t.Error("nothing was left to do, so giving back was not tested")
	}
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed' AND (status <> 'available' OR attempt <> 0)`); n != 0 {
		t.Errorf("jobs given back with an attempt used up = %d, want 0", n)
	}
	db.close() // before the gateway opens it again
}

func checkFinished(t *testing.T, g *gateway, l *load) {
	t.Helper()
	db := g.ledger()
	db.check(1)
	db.holds(l.acceptedIDs())
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed' OR attempt <> 1`); n != 0 {
		t.Errorf("jobs not completed at the first attempt = %d, want 0", n)
	}
	// Each stored event was answered, unless its sender lost the connection.
	if events, accepted := db.count(`SELECT COUNT(*) FROM events`), len(l.acceptedIDs()); events > accepted+l.misses[broken] {
		t.Errorf("stored events = %d, accepted %d, connections broken %d: some were stored and refused", events, accepted, l.misses[broken])
	}
}

// TestDrainLimit: deliveries longer than the drain time do not delay the shutdown further. The
// next process tries them again.
func TestDrainLimit(t *testing.T) {
	t.Parallel()
	g, r := hangingDelivery(t)
	began := time.Now()
	g.signal(syscall.SIGTERM)
	code := g.wait(drainLimit + 10*time.Second)
	if took := time.Since(began); code != 0 || took < drainLimit || took > drainLimit+drainGrace {
		t.Errorf("exit code %d after %v, want 0 after %v to %v", code, took, drainLimit, drainLimit+drainGrace)
	}
	r.On("/load", nil)
	g.start()
	if d := r.Await(t, 10*time.Second, "/load", 2)[1]; d.Attempt() != 2 {
		t.Errorf("attempt after the restart = %d, want 2: the first one was made", d.Attempt())
	}
}

// TestSecondSignal: a second signal ends the process at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
	for _, first := range signals {
		for _, second := range signals {
			t.Run(fmt.Sprintf("%v then %v", first, second), func(t *testing.T) {
				t.Parallel()
				g, _ := hangingDelivery(t)
				g.signal(first)
				wait.For(t, 10*time.Second, "intake stopped", func() bool {
					_, _, err := g.health()
					return err != nil
				})
				if g.ended() {
					t.Fatal("the first signal ended the gateway at once, want that it waits for its delivery")
				}
				began := time.Now()
				g.signal(second)
				g.wait(drainLimit + 10*time.Second)
				if took := time.Since(began); took >= drainLimit {
					t.Errorf("ended %v after the second signal, want before the limit of %v", took, drainLimit)
				}
			})
		}
	}
}

// hangingDelivery starts a gateway with one delivery that does not end by itself.
func hangingDelivery(t *testing.T) (*gateway, *receiver.Receiver) {
	t.Helper()
	r := receiver.New(t)
	r.On("/load", r.Hanging())
	g := newGateway(t, drainConfig, r)
	g.start()
	g.send("/events/order.created", `{}`)
	r.Await(t, 5*time.Second, "/load", 1)
	return g, r
}

// TestDrainDuringTake: a gateway that gets SIGTERM while it takes a job delivers or releases
// the job. It does not leave the job leased.
func TestDrainDuringTake(t *testing.T) {
	t.Parallel()
	st, faults := viaProxy(t, servers.D1(t))
	r := receiver.New(t)
	g := newGatewayOn(t, st, drainConfig, r)
	g.start()
	faults.Once(servers.Stall(0), servers.Stall(500*time.Millisecond)) // for accept and for take
	g.send("/events/order.created", `{}`)
	wait.For(t, 5*time.Second, "a take under way", func() bool { return faults.Counts().Stalled == 2 })
	g.stop()
	db := g.ledger()
	db.check(1) // counts running jobs
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE attempt > 0`); n != len(r.At("/load")) {
		t.Errorf("jobs with an attempt used up = %d, want the %d that were delivered", n, len(r.At("/load")))
	}
}
