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

// forgedKinds are the kinds of forged webhooks in TestLogFlood. The gateway logs a reason of
// its own for each kind and source.
var forgedKinds = []struct {
	headers []string
	status  int
}{
	{[]string{"X-Webhook-Signature", strings.Repeat("0", 64)}, http.StatusUnauthorized},
	{nil, http.StatusUnauthorized},
}

// TestLogFlood: of 20,000 forged webhooks in a few seconds, the log has about one line a
// second for each source and reason. Metrics count each webhook.
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
	// Each source and reason may have a line a second, a line for the current second, and a
	// line with the number of left-out lines. A few lines are about other things.
	seconds := int(took.Seconds()) + 1
	most := (2*seconds+2)*len(sources)*len(forgedKinds) + 20
	lines := g.log.count() - before
	t.Logf("%d forged webhooks in %v: %d lines of log", forged, took.Round(time.Millisecond), lines)
	if lines > most || lines == 0 {
		t.Errorf("lines of log = %d, want 1 to %d", lines, most)
	}
}
