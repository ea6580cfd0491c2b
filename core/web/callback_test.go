package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core/web"
)

// Token and body reach the service as they were sent, also if the sender has hung up.
func TestWhatACallbackTells(t *testing.T) {
	for _, tt := range []struct{ path, body, want string }{
		{"/callback/g00d", `{"a": 1.0}`, `resume "g00d" "{\"a\": 1.0}" <nil>`},
		{"/callback/g00d", "", `resume "g00d" "" <nil>`},
		{"/callback/g00d?token=x", "[]", `resume "g00d" "[]" <nil>`},
		{"/callback/odd%2Ftoken", "", `resume "odd/token" "" <nil>`},
		{"/callback/g%30%30d", "", `resume "g00d" "" <nil>`},
		{"/callback/%252F", "", `resume "%2F" "" <nil>`},
		{"/callback/a/b", "", ""},
		{"/callback", "", ""},
	} {
		w := newWorld(t)
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		r := httptest.NewRequestWithContext(ctx, "POST", tt.path, strings.NewReader(tt.body))
		w.handler().ServeHTTP(httptest.NewRecorder(), r)
		if got := strings.Join(w.clerk.calls, "; "); got != tt.want {
			t.Errorf("POST %s: reported %s, want %s", tt.path, got, tt.want)
		}
	}
}

// Each invalid token, in any form, causes one look-up and gets the same reply. So a reply does not
// help to guess a token.
func TestInvalidTokensLookTheSame(t *testing.T) {
	w := newWorld(t)
	h := w.handler()
	tokens := []string{
		"x", "G00D", "g00d%20", "g00d%00", "%FF", "%C3%A9", ".", "*", "{token}", "null", "'--",
		strings.Repeat("A", 52), strings.Repeat("a", 52), strings.Repeat("2", 10_000),
	}
	var want http.Header
	for i, token := range tokens {
		got := ask(h, "POST", "/callback/"+token, `{"approved": true}`)
		if want == nil {
			want = got.Header()
		}
		if got.Code != 404 || got.Body.String() != `{"error":"not found"}` || cmp.Diff(want, got.Header()) != "" {
			t.Errorf("token %.60s: %d %s\n%v, want 404, not found\n%v", token, got.Code, got.Body, got.Header(), want)
		}
		if len(w.clerk.calls) != i+1 {
			t.Errorf("token %.60s: asked for %d times, want once", token, len(w.clerk.calls)-i)
		}
	}
	if log := w.log.String(); log != "" {
		t.Errorf("they were logged: %s", log)
	}
}

// The token is a credential in a path: no log line contains it, also after an error.
func TestTokensAreNotLogged(t *testing.T) {
	for _, state := range []string{"works", "unavailable", "broken", "panics"} {
		w := newWorld(t, "store "+state)
		h := w.handler()
		for _, token := range []string{"g00d", "s3cret"} {
			for _, method := range []string{"POST", "GET", "OPTIONS"} {
				ask(h, method, "/callback/"+token, `{"card": "p4yload"}`)
			}
			ask(h, "POST", "/callback/"+token+"/", "")
		}
		log := w.log.String()
		if lines := strings.Count(log, "route=/callback/{token}"); (lines == 2) != (state != "works") {
			t.Errorf("store %s: %d lines, want one for each request that could not be served:\n%s", state, lines, log)
		}
		for _, secret := range []string{"g00d", "s3cret", "p4yload"} {
			if strings.Contains(log, secret) {
				t.Errorf("store %s: the log says %q:\n%s", state, secret, log)
			}
		}
	}
}

// Guessing costs as much as sending events: callbacks share their limits.
func TestCallbacksAreLimited(t *testing.T) {
	h := newWorld(t, "ip_rate_limit 3").handler()
	for i := range 3 {
		if got := ask(h, "POST", "/callback/b4d", ""); got.Code != 404 {
			t.Fatalf("callback %d: %d, want 404", i, got.Code)
		}
	}
	for _, path := range []string{"/callback/g00d", "/webhooks/plain"} {
		if got := ask(h, "POST", path, ""); got.Code != 429 || got.Header().Get("Retry-After") == "" {
			t.Errorf("POST %s after the last one allowed: %d, want 429", path, got.Code)
		}
	}
	if got := ask(h, "POST", "/callback/g00d", "").Body.String(); got != `{"error":"Too many requests"}` {
		t.Errorf("one callback too many is told %q", got)
	}

	arrived, leave := make(chan struct{}), make(chan struct{})
	h = web.Handler(web.Settings{MaxBodySize: 9, MaxInbound: 1}, web.Callback(web.CallbackOptions{
		Resume: func(context.Context, string, []byte) error {
			arrived <- struct{}{}
			<-leave
			return nil
		},
	}))
	first := make(chan int)
	go func() { first <- ask(h, "POST", "/callback/g00d", "").Code }()
	<-arrived
	if got := ask(h, "POST", "/callback/g00d", ""); got.Code != 503 || got.Header().Get("Retry-After") != "1" {
		t.Errorf("callback beside another: %d, Retry-After %q; want 503, 1", got.Code, got.Header().Get("Retry-After"))
	}
	close(leave)
	if got := <-first; got != 200 {
		t.Errorf("callback in the slot: %d, want 200", got)
	}
}
