package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestLoopEnds: a gateway whose handler is the gateway itself takes an event as often as
// its bound says, and then refuses it; the job of that attempt is dead like that of any
// receiver who refuses. The deliveries are signed, and so no CloudEvent's id ends the
// loop before.
func TestLoopEnds(t *testing.T) {
	var handler atomic.Pointer[http.Handler]
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(front.Close)
	s := &spy{openStore(t, filepath.Join(t.TempDir(), "gateway.db")), make(chan core.Outcome, 100), make(chan int, 100), nil}
	g := newGateway(t, load(t, strings.ReplaceAll(`
server: {allow_private_urls: true}
delivery: {signing_secret: whsec_bG9vcC1sb29wLWxvb3AtbG9vcC1sb29w, default_retry: {max: 1}}
sources:
  shop: {type: event}
  ring: {type: webhook, verify: standard-webhooks, secret: whsec_bG9vcC1sb29wLWxvb3AtbG9vcC1sb29w}
handlers:
  begin: {source: shop, url: URL/webhooks/ring}
  again: {source: ring, url: URL/webhooks/ring}
`, "URL", front.URL)), s)
	served := g.Handler()
	handler.Store(&served)
	w := &wired{g, s, front.URL}
	w.send(t)
	statuses := map[core.Status]int{}
	var last core.Outcome
	for range core.MaxHops + 1 {
		select {
		case last = <-s.outcomes:
			statuses[last.Status]++
		case <-time.After(patience):
			t.Fatalf("outcomes so far: %v; want %d completed and 1 dead", statuses, core.MaxHops)
		}
	}
	if statuses[core.Completed] != core.MaxHops || last.Status != core.Dead || last.Attempt.StatusCode != http.StatusLoopDetected {
		t.Errorf("outcomes: %v, the last %s with %d %s; want %d completed, then dead with 508",
			statuses, last.Status, last.Attempt.StatusCode, last.Attempt.Response, core.MaxHops)
	}
	if !strings.Contains(last.Attempt.Response, "Loop detected") {
		t.Errorf("the reply was %q, want one that says what to look for", last.Attempt.Response)
	}
	page, err := s.Store.Jobs(context.Background(), core.JobFilter{Limit: 100})
	if err != nil || len(page.Items) != core.MaxHops+1 {
		t.Errorf("jobs: %d, %v, want %d: nothing came of what was refused", len(page.Items), err, core.MaxHops+1)
	}
}
