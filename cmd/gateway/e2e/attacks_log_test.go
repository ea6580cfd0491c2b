//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// forgedKinds are the ways in which the forged webhooks of TestLogFlood are refused: the
// reasons that the gateway tells, for each source.
var forgedKinds = []struct {
	headers []string
	status  int
}{
	{[]string{"X-Webhook-Signature", strings.Repeat("0", 64)}, http.StatusUnauthorized},
	{nil, http.StatusUnauthorized},
}

// TestLogFlood: 20,000 forged webhooks in a few seconds are about one line of log a second
// for each source and reason, and the metrics count each of them.
func TestLogFlood(t *testing.T) {
	const forged, senders = 20_000, 32
	g, _ := besiege(t, "")
	v := newVictim(t, g, g.loopback(attackerAddress))
	sources := []string{"shop", "other"}
	before := g.log.count()
	began := time.Now()
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			for n := i; n < forged && !t.Failed(); n += senders {
				kind := forgedKinds[n/len(sources)%len(forgedKinds)]
				a, err := fetch(v.kept, request{method: http.MethodPost, url: g.url("/webhooks/" + sources[n%len(sources)]), body: `{}`, headers: kind.headers})
				if err != nil || a.status != kind.status {
					t.Errorf("forged webhook %d: %d %q, %v, want %d", n, a.status, a.body, err, kind.status)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	for _, source := range sources {
		for _, series := range []string{
			fmt.Sprintf(`gateway_verification_failures_total{source="%s"}`, source),
			fmt.Sprintf(`gateway_events_received_total{result="unverified",source="%s"}`, source),
		} {
			if got, want := g.series(series), fmt.Sprint(forged/len(sources)); got != want {
				t.Errorf("%s = %q, want %s", series, got, want)
			}
		}
	}
	// A line a second for each, one more for a second that has begun, one for how many were
	// left out, and a few about other things.
	seconds := int(took.Seconds()) + 1
	most := (2*seconds+2)*len(sources)*len(forgedKinds) + 20
	lines := g.log.count() - before
	t.Logf("%d forged webhooks in %v: %d lines of log", forged, took.Round(time.Millisecond), lines)
	if lines > most || lines == 0 {
		t.Errorf("lines of log = %d, want 1 to %d", lines, most)
	}
}
