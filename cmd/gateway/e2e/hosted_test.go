//go:build linux

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestHostedChaos: between the gateway and D1 requests fail, answers get lost after their
// request took effect, and some requests take effect after their timeout. No event is lost. A
// delivery is repeated only if its outcome could not be stored.
func TestHostedChaos(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		via  func(*testing.T, servers.Hosted) (*store, *servers.Faults)
	}{
		{"API", viaAPI},
		{"proxy", viaProxy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && tt.name == "API" {
				t.Skip("differs from the other in the address alone")
			}
			t.Parallel()
			st, faults := tt.via(t, servers.D1(t))
			testChaos(t, st, faults)
		})
	}
}

// viaAPI and viaProxy put a server that injects faults before a D1 database.
func viaAPI(t *testing.T, h servers.Hosted) (*store, *servers.Faults) {
	f := servers.NewFaults(t, h.API)
	return apiStore(h, f.URL), f
}

func viaProxy(t *testing.T, h servers.Hosted) (*store, *servers.Faults) {
	f := servers.NewFaults(t, h.Endpoint)
	return proxyStore(h, f.URL), f
}

// internalError is the body of an answer of D1 without details.
const internalError = `{"success":false,"errors":[{"code":7500,"message":"internal error"}],"messages":[],"result":null}`

func testChaos(t *testing.T, st *store, faults *servers.Faults) {
	r := receiver.New(t)
	g := newGatewayOn(t, st, outageConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=error")
	g.start()
	// Stalls last longer than the gateway waits for an answer.
	faults.Chance(0.04, servers.Before(http.StatusInternalServerError, internalError))
	faults.Chance(0.01, servers.Before(http.StatusServiceUnavailable, servers.Overloaded))
	faults.Chance(0.05, servers.After())
	faults.Chance(0.01, servers.Stall(6*time.Second))
	want := 400
	if testing.Short() {
		want = 150
	}
	l := newLoad(g, r, pooled)
	l.pause = 5 * time.Millisecond // batches of few events make more requests
	l.start(4)
	wait.For(t, 90*time.Second, "events accepted", func() bool { n, _ := l.counts(); return n >= want })
	l.end()
	l.settle(outageLease + 30*time.Second)
	faults.Clear()
	g.awaitIdle(outageLease + 10*time.Second)
	g.stop()

	did := faults.Counts()
	accepted, delivered := l.counts()
	lost, duplicates, ambiguous := len(l.missing()), len(l.repeats), did.After+did.Stalled
	t.Logf("requests %d, errors %d, answers lost %d, stalls %d: accepted %d, delivered %d, lost %d, duplicates %d; posts without 202: %v",
		did.Calls, did.Before, did.After, did.Stalled, accepted, delivered, lost, duplicates, l.misses)
	if did.Before == 0 || did.After == 0 {
		t.Error("nothing failed, so nothing was tested")
	}
	if lost > 0 || len(l.alien) > 0 {
		t.Errorf("lost %d accepted events, delivered %d of what was never sent, want 0", lost, len(l.alien))
	}
	if duplicates > ambiguous {
		t.Errorf("duplicates = %d, want no more than the %d answers that were lost", duplicates, ambiguous)
	}
	if wrong := l.twice(); len(wrong) > 0 {
		t.Errorf("what no lost answer explains: %s", strings.Join(wrong, "; "))
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

// TestHostedBudget: Cloudflare's API allows four requests a second. An event needs three
// requests: to store it, to take its job, to settle the delivery. An idle gateway sends less
// than one a second.
func TestHostedBudget(t *testing.T) {
	t.Parallel()
	st, faults := viaAPI(t, servers.D1(t))
	r := receiver.New(t)
	g := newGatewayOn(t, st, plainConfig, r)
	g.start()
	db := st.open(t) // without passing the counter
	one := func(n int) (requests int, looking time.Duration) {
		before, began := faults.Counts().Calls, time.Now()
		g.send("/events/order.created", `{}`)
		r.Await(t, 10*time.Second, "/ok", n)
		wait.For(t, 10*time.Second, "the delivery recorded", func() bool {
			return db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'completed'`) == n
		})
		return faults.Counts().Calls - before, time.Since(began)
	}
	const events = 20
	var requests int
	var looking time.Duration
	for i := range events {
		n, took := one(i + 1)
		requests, looking = requests+n, looking+took
	}
	// The gateway looks by itself for due work of other processes, at most every 3.75 s, and for
	// lanes that it could adopt, at most every 7.5 s. Within ten seconds of its start it purges once.
	const purge = 5
	looks := 1 + int(looking/(3750*time.Millisecond)) + 1 + int(looking/(7500*time.Millisecond)) + purge
	t.Logf("%d events in %.1f s: %d requests", events, looking.Seconds(), requests)
	if requests > 3*events+looks {
		t.Errorf("%d events took %d requests, want at most 3 each and %d beside", events, requests, looks)
	}
	if testing.Short() {
		return
	}
	const watch = 10 * time.Second
	before := faults.Counts().Calls
	<-time.After(watch) // an idle time has no condition to wait for
	idle := faults.Counts().Calls - before
	t.Logf("idle for %v: %d requests", watch, idle)
	if idle >= int(watch/time.Second) {
		t.Errorf("requests of an idle gateway in %v = %d, want less than one a second", watch, idle)
	}
	if idle == 0 {
		t.Error("an idle gateway never looks, want that it finds the work of others")
	}
}

const largeConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
  max_body_size: 4000000
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources: {app: {type: event}}
handlers: {ok: {source: app, url: "${RECEIVER}/ok"}}
`

// TestHostedLargeEvents: D1 holds rows of up to 2 MB. The gateway refuses an event that is too
// large, and delivers an accepted event complete.
func TestHostedLargeEvents(t *testing.T) {
	t.Parallel()
	for _, tt := range []place{{"API", onD1}, {"proxy", onProxy}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGatewayOn(t, tt.on(t), largeConfig, r)
			g.env = append(g.env, "GATEWAY_LOG=warn")
			g.start()
			accepted := map[string]bool{}
			for _, size := range []int{1_000_000, 1_890_000, 1_900_000, 1_930_000, 1_960_000, 1_999_000, 2_000_000, 3_000_000} {
				// Text that has the same length in JSON, and text that is longer.
				for _, of := range []string{"xx", `\"`, "é"} {
					body := jsonText(of, size)
					a := g.post("/events/order.created", body)
					switch {
					case a.status == http.StatusAccepted && size < 2_000_000:
						accepted[body] = true
					case a.status != http.StatusRequestEntityTooLarge, size <= 1_890_000:
						t.Errorf("event of %d bytes of %s = %d %q, want 202 or, above 1890000 bytes, 413", size, of, a.status, a.body)
					}
				}
			}
			for _, d := range r.Await(t, 30*time.Second, "/ok", len(accepted)) {
				if !accepted[d.Body] {
					t.Errorf("a body of %d bytes arrived that was not accepted, or twice", len(d.Body))
				}
				delete(accepted, d.Body)
			}
			g.awaitIdle(10 * time.Second)
			g.stop()
			if lines := grumbles(g); len(lines) > 0 {
				t.Errorf("logged\n%s\nwant no line", strings.Join(lines, "\n"))
			}
			g.ledger().check(1)
		})
	}
}

// jsonText is a JSON string of this many bytes, an even number.
func jsonText(of string, size int) string { return `"` + strings.Repeat(of, size/2-1) + `"` }
