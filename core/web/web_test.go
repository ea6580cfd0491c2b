package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core/web"
)

// ask sends a request to a handler without a network in between.
func ask(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestMaxInbound(t *testing.T) { synctest.Test(t, testMaxInbound) }

func testMaxInbound(t *testing.T) {
	w := newWorld(t, "max_inbound 2")
	w.store.hold, w.store.held = make(chan struct{}), make(chan struct{})
	h := w.handler()
	replies := make(chan int)
	for range 2 {
		go func() { replies <- ask(h, "POST", "/webhooks/plain", "{}").Code }()
		<-w.store.held
	}
	for range 10 {
		if got := ask(h, "POST", "/events/order.created", "{}"); got.Code != 503 || got.Header().Get("Retry-After") != "1" {
			t.Fatalf("third request: %d, Retry-After %q; want 503 and 1", got.Code, got.Header().Get("Retry-After"))
		}
	}
	if got := ask(h, "GET", "/health", ""); got.Code != 200 {
		t.Errorf("health of a full gateway: %d, want 200", got.Code)
	}
	close(w.store.hold)
	for range 2 {
		if got := <-replies; got != 200 {
			t.Errorf("request in a slot: %d, want 200", got)
		}
	}
	w.store.hold = nil
	if got := ask(h, "POST", "/webhooks/plain", "{}"); got.Code != 200 {
		t.Errorf("request after the rush: %d, want 200", got.Code)
	}
}

// A panic must give its slot back, and leave a line that says where it was.
func TestPanics(t *testing.T) {
	w := newWorld(t, "max_inbound 1", "store panics")
	h := w.handler()
	for range 3 {
		if got := ask(h, "POST", "/webhooks/plain", "{}"); got.Code != 500 || got.Body.String() != "Internal error" {
			t.Fatalf("reply = %d %q, want 500 Internal error", got.Code, got.Body)
		}
	}
	for _, want := range []string{"out of cheese", "route=/webhooks/{source}", "world_test.go"} {
		if log := w.log.String(); strings.Count(log, want) < 3 {
			t.Errorf("the log does not show %q for every panic:\n%s", want, log)
		}
	}
}

func TestAbortIsPassedOn(t *testing.T) {
	h := web.Handler(web.Settings{MaxBodySize: 1, MaxInbound: 1}, web.Echo(func(web.Echoed) { panic(http.ErrAbortHandler) }))
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("recovered %v, want http.ErrAbortHandler", got)
		}
	}()
	ask(h, "GET", "/_echo", "")
}

// TestFailuresAreLoggedOnce: as an error, unless it is enough to ask again.
func TestFailuresAreLoggedOnce(t *testing.T) {
	levels := map[string]string{"broken": "level=ERROR", "unavailable": "level=WARN"}
	for state, want := range map[string]string{"broken": `syntax error at`, "unavailable": "dial tcp: refused"} {
		w := newWorld(t, "store "+state)
		reply := ask(w.handler(), "POST", "/webhooks/plain?token=s3cret", "{}").Body.String()
		log := w.log.String()
		if strings.Count(log, "\n") != 1 || !strings.Contains(log, want) || !strings.Contains(log, levels[state]) || strings.Contains(log, "s3cret") {
			t.Errorf("store %s: log is not one line at %s with %q:\n%s", state, levels[state], want, log)
		}
		if strings.Contains(reply, want) {
			t.Errorf("store %s: the caller is told %q", state, reply)
		}
	}
	w := newWorld(t)
	ask(w.handler(), "POST", "/webhooks/nobody", "{}")
	if log := w.log.String(); log != "" {
		t.Errorf("a refusal was logged: %s", log)
	}
}

func TestEventOfASenderThatHungUpIsStored(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/events/order.created", strings.NewReader("{}"))
	w.handler().ServeHTTP(httptest.NewRecorder(), r)
	if len(w.store.events) != 1 {
		t.Errorf("%d events stored, want 1", len(w.store.events))
	}
}

func TestPathTypeIsDecodedOnce(t *testing.T) {
	w := newWorld(t)
	h := w.handler()
	for _, path := range []string{"/events/orders%2Fcreate", "/events/shop/orders%2fcreate", "/events/app/a%3Ab.c", "/events/a:b.c"} {
		if got := ask(h, "POST", path, "{}"); got.Code != 202 {
			t.Errorf("POST %s: %d, want 202", path, got.Code)
		}
	}
	var got []string
	for _, e := range w.store.events {
		got = append(got, e.Source+" "+e.Type)
	}
	if diff := cmp.Diff([]string{"app orders/create", "shop orders/create", "app a:b.c", "app a:b.c"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestEcho(t *testing.T) {
	w := newWorld(t)
	if got := ask(w.handler(), "PUT", "/_echo", "hello"); got.Code != 200 {
		t.Fatalf("PUT /_echo: %d, want 200", got.Code)
	}
	if e := <-w.echoed; e.Method != "PUT" || string(e.Body) != "hello" || e.Header == nil {
		t.Errorf("reported %+v", e)
	}
	bare := web.Handler(web.Settings{MaxBodySize: 9, MaxInbound: 1}, web.Ops(web.OpsOptions{}))
	if got := ask(bare, "PUT", "/_echo", ""); got.Code != 404 {
		t.Errorf("PUT /_echo where it is not served: %d, want 404", got.Code)
	}
}

// A long reply has its length, as a short one has, and is not sent in chunks.
func TestReplyOfKnownLength(t *testing.T) {
	server := httptest.NewServer(newWorld(t).handler())
	defer server.Close()
	for _, n := range []int{1, 100} {
		events := make([]string, n)
		for i := range events {
			events[i] = fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/a","type":"t"}`, i)
		}
		res, err := http.Post(server.URL+"/events/app", "application/cloudevents-batch+json", strings.NewReader("["+strings.Join(events, ",")+"]"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 202 {
			t.Fatalf("%d events: status %d, %v: %s", n, res.StatusCode, err, body)
		}
		if res.ContentLength != int64(len(body)) {
			t.Errorf("%d events: Content-Length %d of %d bytes", n, res.ContentLength, len(body))
		}
	}
}

// A body without a length, as a proxy may pass it on, has the same limit.
func TestBodyOfUnknownLength(t *testing.T) {
	h := newWorld(t, "max_body_size 4").handler()
	for body, want := range map[string]int{"1234": 200, "12345": 413} {
		r := httptest.NewRequest("POST", "/webhooks/plain", io.MultiReader(strings.NewReader(body)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%d bytes: %d, want %d", len(body), w.Code, want)
		}
	}
}

func TestRateLimitComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWorld(t, "ip_rate_limit 5").handler()
		burst := func() (passed int) {
			for range 20 {
				if ask(h, "GET", "/nothing", "").Code != 429 {
					passed++
				}
			}
			return passed
		}
		if got := burst(); got != 5 {
			t.Errorf("%d of a burst passed, want 5", got)
		}
		time.Sleep(2 * time.Second)
		if got := burst(); got != 5 {
			t.Errorf("%d of a burst after two seconds passed, want 5", got)
		}
	})
}
