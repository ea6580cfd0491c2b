package web_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core/web"
)

// successor is the handler of a world with another configuration that takes this one's
// place.
func (w *world) successor(setting string) http.Handler {
	w.set(setting)
	return w.handler()
}

// Requests that an old handler still serves take slots of the new one, even if the new one has
// fewer slots.
func TestSlotsOutliveTheirHandler(t *testing.T) {
	w := newWorld(t, "max_inbound 3")
	w.settings.Counts = &web.Counts{}
	w.store.hold, w.store.held = make(chan struct{}), make(chan struct{})
	h, replies := w.handler(), make(chan int)
	enter := func() {
		go func(h http.Handler) { replies <- ask(h, "POST", "/webhooks/plain", "{}").Code }(h)
		<-w.store.held
	}
	enter()
	enter()
	h = w.successor("max_inbound 2")
	if got := ask(h, "POST", "/webhooks/plain", "{}"); got.Code != 503 {
		t.Errorf("a third request within two slots: %d, want 503", got.Code)
	}
	h = w.successor("max_inbound 4")
	enter()
	enter()
	if got := ask(h, "POST", "/webhooks/plain", "{}"); got.Code != 503 {
		t.Errorf("a fifth request within four slots: %d, want 503", got.Code)
	}
	close(w.store.hold)
	for range 4 {
		if got := <-replies; got != 200 {
			t.Errorf("a request in a slot: %d, want 200", got)
		}
	}
	w.store.hold = nil
	h = w.successor("max_inbound 1")
	for range 3 {
		if got := ask(h, "POST", "/webhooks/plain", "{}"); got.Code != 200 {
			t.Errorf("a request after the rush: %d, want 200: slots were not given back", got.Code)
		}
	}
}

// Buckets that fill up again with each reload are no limit (hookaido #209).
func TestRateOutlivesItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ip_rate_limit 4")
		w.settings.Counts = &web.Counts{}
		h := w.handler()
		var got []string
		post := func(n int) {
			for range n {
				got = append(got, map[int]string{200: "+", 429: "-"}[ask(h, "POST", "/webhooks/plain", "{}").Code])
			}
		}
		post(3)
		h = w.successor("max_body_size 100")
		post(3)
		h = w.successor("ip_rate_limit 2") // another limit counts anew
		post(3)
		h = w.successor("ip_rate_limit 0")
		post(3)
		time.Sleep(3 * time.Second)
		h = w.successor("ip_rate_limit 2")
		post(3)
		if got, want := strings.Join(got, ""), "+++"+"+--"+"++-"+"+++"+"++-"; got != want {
			t.Errorf("requests that were served (+) and not (-): %s, want %s", got, want)
		}
	})
}
