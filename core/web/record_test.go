package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/web"
)

// TestServed: Served gets the patterns of routes, and never paths, which may hold tokens.
func TestServed(t *testing.T) {
	tests := []struct {
		setting, method, path string
		want                  string
	}{
		{"", "POST", "/webhooks/plain", "/webhooks/{source} POST 200"},
		{"", "POST", "/webhooks/nope", "/webhooks/{source} POST 404"},
		{"", "POST", "/events/order.created", "/events/{event_type} POST 202"},
		{"", "POST", "/events/shop/a%2Fb", "/events/{source}/{event_type} POST 202"},
		{"auth_token s3cret", "POST", "/events/order.created", "/events/{event_type} POST 401"},
		{"store panics", "POST", "/webhooks/plain", "/webhooks/{source} POST 500"},
		{"ip_rate_limit 0", "GET", "/health", "/health GET 200"},
		{"", "GET", "/webhooks/plain", " GET 405"},
		{"", "BREW", "/webhooks/plain", " BREW 405"},
		{"", "GET", "/s3cret", " GET 404"},
		{"", "POST", "/callback/s3cret", "/callback/{token} POST 404"},
	}
	for _, tt := range tests {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			var served []string
			w := newWorld(t, tt.setting)
			w.settings.Served = func(pattern, method string, status int) {
				served = append(served, fmt.Sprintf("%s %s %d", pattern, method, status))
			}
			got := ask(w.handler(), tt.method, tt.path, "{}")
			if !slices.Equal(served, []string{tt.want}) || !strings.HasSuffix(tt.want, fmt.Sprint(got.Code)) {
				t.Errorf("reported %q of a reply %d, want %q", served, got.Code, tt.want)
			}
		})
	}
}

// The limit of a client's requests is looked at before any route is.
func TestServedOfTooManyRequests(t *testing.T) {
	var last string
	w := newWorld(t, "ip_rate_limit 1")
	w.settings.Served = func(pattern, method string, status int) { last = fmt.Sprintf("%s %s %d", pattern, method, status) }
	h := w.handler()
	for range 3 {
		ask(h, "GET", "/health", "")
	}
	if last != " GET 429" {
		t.Errorf("reported %q, want a refusal without route", last)
	}
}

// TestServedOfOddWriters: a handler of another library may write no status or a provisional one,
// and may use optional methods of its writer.
func TestServedOfOddWriters(t *testing.T) {
	for want, serve := range map[string]http.HandlerFunc{
		"/metrics GET 200": func(w http.ResponseWriter, _ *http.Request) {},
		"/metrics GET 200 ": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			w.WriteHeader(500) // too late
		},
		"/metrics GET 203": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(203)
			w.WriteHeader(500) // too late
		},
		"/metrics GET 200 and flushed": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("x"))
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("Flush = %v, want nil", err)
			}
			panic("too late for another status")
		},
	} {
		var served string
		h := web.Handler(web.Settings{MaxInbound: 1, Served: func(pattern, method string, status int) {
			served = fmt.Sprintf("%s %s %d", pattern, method, status)
		}}, web.Ops(web.OpsOptions{Metrics: serve}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.HasPrefix(want, served) || served == "" || w.Flushed != strings.HasSuffix(want, "flushed") {
			t.Errorf("reported %q, flushed %v; want %q", served, w.Flushed, want)
		}
	}
}

func TestRoutes(t *testing.T) {
	h := web.Handler(web.Settings{MaxInbound: 1}, web.Ops(web.OpsOptions{}), web.Callback(web.CallbackOptions{}))
	got := web.Routes(h)
	want := []web.Route{{Method: "GET", Pattern: "/health"}, {Method: "HEAD", Pattern: "/health"}, {Method: "POST", Pattern: "/callback/{token}"}}
	less := func(a, b web.Route) int { return strings.Compare(a.Pattern+a.Method, b.Pattern+b.Method) }
	slices.SortFunc(got, less)
	slices.SortFunc(want, less)
	if !slices.Equal(got, want) {
		t.Errorf("Routes = %v, want %v", got, want)
	}
}

// TestMetricsRoute: it has a token of its own, takes no slot, and is absent where
// nothing is measured.
func TestMetricsRoute(t *testing.T) {
	exposition := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1")) })
	tests := []struct {
		options web.OpsOptions
		token   string
		status  int
		body    string
	}{
		{web.OpsOptions{}, "", 404, "{\"error\":\"not found\"}"},
		{web.OpsOptions{Metrics: exposition}, "", 200, "up 1"},
		{web.OpsOptions{Metrics: exposition, MetricsTokens: []string{"m3trics"}}, "", 401, "Invalid token"},
		{web.OpsOptions{Metrics: exposition, MetricsTokens: []string{"m3trics"}}, "other", 401, "Invalid token"},
		{web.OpsOptions{Metrics: exposition, MetricsTokens: []string{"m3trics"}}, "m3trics", 200, "up 1"},
	}
	for _, tt := range tests {
		h := web.Handler(web.Settings{MaxInbound: 0}, web.Ops(tt.options)) // no slots
		r := httptest.NewRequest("GET", "/metrics", nil)
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("token %q of %v: %d %s, want %d %s", tt.token, tt.options.MetricsTokens, w.Code, w.Body, tt.status, tt.body)
		}
		if challenged := w.Header().Get("WWW-Authenticate") == "Bearer"; challenged != (tt.status == 401) {
			t.Errorf("token %q of %v: challenged %v", tt.token, tt.options.MetricsTokens, challenged)
		}
	}
}
