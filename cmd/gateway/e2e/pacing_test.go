//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const pacingConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 1h}}
worker: {max_concurrency: 20, batch_size: 100}
sources: {app: {type: event}}
handlers:
  paced: {source: app, events: [paced], url: "${RECEIVER}/paced", rate_limit: 50}
  frail: {source: app, events: [frail], url: "${RECEIVER}/frail"}
`

// pacedFleet starts two processes on one PostgreSQL database.
func pacedFleet(t *testing.T, r *receiver.Receiver) []*gateway {
	t.Helper()
	st := onPostgres(t)
	fleet := make([]*gateway, 2)
	for i := range fleet {
		fleet[i] = newGatewayOn(t, st, pacingConfig, r)
		fleet[i].env = append(fleet[i].env, "GATEWAY_LOG=warn")
		fleet[i].launch()
	}
	for _, g := range fleet {
		g.awaitReady()
	}
	return fleet
}

// pour sends n events of a type to a fleet.
func pour(t *testing.T, fleet []*gateway, kind string, n int) {
	t.Helper()
	var next, failed atomic.Int64
	var senders [16]chan struct{}
	for i := range senders {
		senders[i] = make(chan struct{})
		go func() {
			defer close(senders[i])
			for s := next.Add(1); s <= int64(n); s = next.Add(1) {
				g := fleet[int(s)%len(fleet)]
				a, err := fetch(pooled, request{method: http.MethodPost, url: g.url("/events/" + kind), body: fmt.Sprintf(`{"serial":%d}`, s)})
				if err != nil || a.status != http.StatusAccepted {
					failed.Add(1)
				}
			}
		}()
	}
	for _, done := range senders {
		<-done
	}
	if failed.Load() > 0 {
		t.Fatalf("%d of %d events were not accepted", failed.Load(), n)
	}
}

// counted returns the number of deliveries between two times after the first.
func counted(ds []receiver.Delivery, first time.Time, from, to time.Duration) (n int) {
	for _, d := range ds {
		if after := d.At.Sub(first); from <= after && after < to {
			n++
		}
	}
	return n
}

// TestRateLimitOfFleet: 50 deliveries a second in all, from both processes together. A start that a busy
// machine misses for long is not made up for, so only two of four parts of the time must have all.
func TestRateLimitOfFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("in full runs only")
	}
	t.Parallel()
	r := receiver.New(t)
	fleet := pacedFleet(t, r)
	pour(t, fleet, "paced", 1500)
	first := r.Await(t, 10*time.Second, "/paced", 1)[0].At
	<-time.After(22*time.Second - time.Since(first))
	ds := r.At("/paced")
	got := counted(ds, first, time.Second, 21*time.Second)
	var parts []int
	for from := time.Second; from < 21*time.Second; from += 5 * time.Second {
		parts = append(parts, counted(ds, first, from, from+5*time.Second))
	}
	slices.Sort(parts)
	busiest := 0
	for _, d := range ds {
		busiest = max(busiest, counted(ds, d.At, 0, time.Second))
	}
	t.Logf("%d deliveries in 20 s, %d in the busiest second, %v in 5 s", got, busiest, parts)
	if got > 1050 || parts[2] < 237 {
		t.Errorf("deliveries in 20 s at 50 a second = %d, want at most 1050; in 5 s %v, want at least 237 in two parts", got, parts)
	}
}

// TestBreakerOfFleet: five failures open the breaker for both processes. One of them sends one
// probe a minute. After a successful probe, 2,000 waiting jobs come slowly at first. Kills of
// processes do not change this.
func TestBreakerOfFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("in full runs only")
	}
	t.Parallel()
	r := receiver.New(t)
	var healthy atomic.Bool
	r.On("/frail", func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			http.Error(w, "down", http.StatusInternalServerError)
		}
	})
	fleet := pacedFleet(t, r)
	pour(t, fleet, "frail", 2000)
	first := r.Await(t, 10*time.Second, "/frail", 5)[0].At
	opened := len(r.Await(t, 5*time.Second, "/frail", 5))
	fleet[0].kill()
	fleet[0].start() // the breaker outlives the process

	probe := func(n int) time.Time {
		t.Helper()
		ds := r.Await(t, 75*time.Second, "/frail", opened+n)
		return ds[opened+n-1].At
	}
	opened = len(r.At("/frail"))
	one := probe(1)
	healthy.Store(true)
	two := probe(2)
	if a, b := one.Sub(first), two.Sub(one); a < 59*time.Second || b < 59*time.Second {
		t.Errorf("probes came %v after the first failure and %v after the first probe, want a minute each", a, b)
	}
	if opened > 2*20+5 {
		t.Errorf("%d deliveries until the breaker opened, want 5 and what was under way", opened)
	}

	wait.For(t, 60*time.Second, "all delivered", func() bool { return len(r.At("/frail")) >= 2000 })
	var seconds []int
	for s := range 12 {
		seconds = append(seconds, counted(r.At("/frail"), two, time.Duration(s)*time.Second+100*time.Millisecond, time.Duration(s+1)*time.Second+100*time.Millisecond))
	}
	t.Logf("%d deliveries until it opened; after it closed, second by second: %v", opened, seconds)
	if seconds[0] > 10 || seconds[1] > 20 || seconds[2] > 40 {
		t.Errorf("deliveries in the seconds after the breaker closed = %v, want about 5, 10, 20, ...", seconds)
	}
	if distinct := jobsOf(r.At("/frail")); distinct != 2000 {
		t.Errorf("jobs seen = %d, want 2,000", distinct)
	}
	db := fleet[0].ledger()
	if n := db.count(`SELECT COUNT(*) FROM gates WHERE failures > 0 OR closed_at = 0`); n != 0 {
		t.Errorf("gates that are not closed again: %d", n)
	}
	for i, g := range fleet {
		var bad []string
		for _, line := range grumbles(g) {
			if !strings.Contains(line, "circuit breaker") && !strings.Contains(line, "delivery failed, will retry") {
				bad = append(bad, line)
			}
		}
		if len(bad) > 0 {
			t.Errorf("process %d logged\n%s", i, strings.Join(bad, "\n"))
		}
	}
}

func jobsOf(ds []receiver.Delivery) int {
	seen := map[string]bool{}
	for _, d := range ds {
		seen[d.Job()] = true
	}
	return len(seen)
}

// TestNeighbourHangs: nine handlers work while a tenth one hangs and all its jobs are due.
func TestNeighbourHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("in full runs only")
	}
	t.Parallel()
	var handlers strings.Builder
	for i := range 9 {
		fmt.Fprintf(&handlers, "  h%d: {source: app, events: [work], url: \"${RECEIVER}/h%d\"}\n", i, i)
	}
	r := receiver.New(t)
	g := newGateway(t, `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 30s}
sources: {app: {type: event}}
handlers:
  hangs: {source: app, events: [hang], url: "${RECEIVER}/hangs"}
`+handlers.String(), r)
	r.On("/hangs", r.Hanging())
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	round := func() (p50, p99 time.Duration) {
		sent := map[string]time.Time{}
		before := map[string]int{}
		for i := range 9 {
			before[fmt.Sprint("/h", i)] = len(r.At(fmt.Sprint("/h", i)))
		}
		beat := time.NewTicker(15 * time.Millisecond)
		defer beat.Stop()
		for n := range 200 {
			at := time.Now()
			id := g.send("/events/work", fmt.Sprintf(`{"n":%d}`, n))
			sent[id] = at
			<-beat.C
		}
		var took []time.Duration
		for i := range 9 {
			path := fmt.Sprint("/h", i)
			for _, d := range r.Await(t, 10*time.Second, path, before[path]+200)[before[path]:] {
				took = append(took, d.At.Sub(sent[d.Event()]))
			}
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)*99/100]
	}
	p50, p99 := round()
	pour(t, []*gateway{g}, "hang", 1000)
	r.Await(t, 10*time.Second, "/hangs", 1)
	h50, h99 := round() // round fails if a delivery takes 10 s; the hanging ones take 30 s
	t.Logf("alone p50 %v, p99 %v; beside one that hangs p50 %v, p99 %v: %.2f of it", p50, p99, h50, h99, float64(h99)/float64(p99))
	if n := len(r.At("/hangs")); n >= 10 {
		t.Errorf("the handler that hangs holds %d slots of 10", n)
	}
}
