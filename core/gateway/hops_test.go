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
	"github.com/eventgateway/gateway/core/endpoint"
)

// TestLoopEnds: a gateway whose handler is the gateway itself accepts an event as often as
// the bound on hops allows, and then refuses it. The job of the refused attempt is dead, as
// after any refusal by a receiver. The deliveries are signed, so that no CloudEvent id ends
// the loop earlier.
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
	var last core.Outcome // of the refused delivery; the outcome of the delivery before it may come later
	for range core.MaxHops + 1 {
		select {
		case o := <-s.outcomes:
			if statuses[o.Status]++; o.Status == core.Dead {
				last = o
			}
		case <-time.After(patience):
			t.Fatalf("outcomes so far: %v; want %d completed and 1 dead", statuses, core.MaxHops)
		}
	}
	if statuses[core.Completed] != core.MaxHops || last.Attempt.StatusCode != http.StatusLoopDetected {
		t.Errorf("outcomes: %v, the dead one with %d %s; want %d completed, and one dead with 508",
			statuses, last.Attempt.StatusCode, last.Attempt.Response, core.MaxHops)
	}
	if !strings.Contains(last.Attempt.Response, "Loop detected") {
		t.Errorf("the reply was %q, want one that says what to look for", last.Attempt.Response)
	}
	page, err := s.Store.Jobs(context.Background(), core.JobFilter{Limit: 100})
	if err != nil || len(page.Items) != core.MaxHops+1 {
		t.Errorf("jobs: %d, %v, want %d: nothing came of what was refused", len(page.Items), err, core.MaxHops+1)
	}
}

// TestHopsAreReserved: a handler's configuration cannot set the header that ends loops.
func TestHopsAreReserved(t *testing.T) {
	if endpoint.CheckHeader(core.HopsHeader, "1") == nil {
		t.Error("a handler may set the header with the count of hops")
	}
}
