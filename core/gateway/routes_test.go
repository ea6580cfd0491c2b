package gateway_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/web"
)

// everything is a configuration with every route, and with a token for each route that can
// have one.
const everything = `
server: {echo: true}
api:
  auth_token: t0ken
  metrics_auth_token: m3trics
  tokens:
    - {name: shop, token: s3nds, role: send}
    - {name: dashboard, token: r3ads, role: read}
    - {name: on-call, token: 0perates, role: operate}
    - {name: boss, token: adm1n, role: admin}
sources:
  app: {type: event}
  hooks: {type: webhook}
  topic: {type: sns}
queues:
  work: {source: app, api_key: k3y}
workflows:
  flow: {source: app, steps: [{name: call, type: http, url: "http://192.0.2.1/"}]}
`

func everyRoute(t *testing.T) (http.Handler, []string) {
	t.Helper()
	g := newGateway(t, load(t, everything), openStore(t, filepath.Join(t.TempDir(), "gateway.db")))
	var routes []string
	for _, r := range web.Routes(g.Handler()) {
		if r.Pattern == "/_echo" && r.Method != "POST" {
			continue // it accepts any method
		}
		routes = append(routes, r.Method+" "+r.Pattern)
	}
	slices.Sort(routes)
	return g.Handler(), routes
}

// httpAsk sends a request without a token.
func httpAsk(h http.Handler, route, body string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(route, " ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func asked(h http.Handler, route, authorization string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(route, " ")
	path = strings.NewReplacer("{name}", "work", "{source}", "app", "{id}", "01J00000000000000000000001").Replace(path)
	r := httptest.NewRequest(method, strings.NewReplacer("{", "", "}", "").Replace(path), strings.NewReader("{}"))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const handshake = "senders ask whether they may send, which is no permission yet"

// unlocked are the routes without a token, with the reasons.
var unlocked = map[string]string{
	"GET /health":                           "a probe has no token, and learns one number",
	"HEAD /health":                          "a probe has no token, and learns nothing",
	"POST /webhooks/{source}":               "senders prove themselves by their signature",
	"POST /sns/{source}":                    "notifications are signed by Amazon",
	"OPTIONS /webhooks/{source}":            handshake,
	"OPTIONS /events/{event_type}":          handshake,
	"OPTIONS /events/{source}/{event_type}": handshake,
	"POST /callback/{token}":                "the token in the path is the proof",
	"POST /_echo":                           "for trying things out, and off unless it is asked for",
}

func TestEveryRouteAsksForItsToken(t *testing.T) {
	h, routes := everyRoute(t)
	locked := 0
	for _, route := range routes {
		if unlocked[route] != "" {
			if got := asked(h, route, ""); got.Code == http.StatusUnauthorized {
				t.Errorf("%s is answered 401; it should ask for no token: %s", route, unlocked[route])
			}
			continue
		}
		locked++
		for _, authorization := range []string{"", "Bearer", "Bearer wrong", "Basic t0ken", "t0ken"} {
			got := asked(h, route, authorization)
			if got.Code != http.StatusUnauthorized || got.Body.String() != "Invalid token" || got.Header().Get("Www-Authenticate") != "Bearer" {
				t.Errorf("%s with authorization %q: %d %q, want 401", route, authorization, got.Code, got.Body)
			}
		}
		right, others := "Bearer t0ken", []string{"Bearer m3trics", "Bearer k3y"}
		switch {
		case route == "GET /metrics":
			right, others = "Bearer m3trics", []string{"Bearer t0ken", "Bearer k3y"}
		case slices.Contains(consumers, route):
			right, others = "Bearer k3y", []string{"Bearer t0ken", "Bearer m3trics"}
		}
		if got := asked(h, route, right); got.Code == http.StatusUnauthorized {
			t.Errorf("%s with its token is answered 401", route)
		}
		for _, other := range others {
			if got := asked(h, route, other); got.Code != http.StatusUnauthorized {
				t.Errorf("%s with the token of others, %q: %d, want 401", route, other, got.Code)
			}
		}
	}
	if locked < 25 {
		t.Errorf("%d routes ask for a token, want all of them", locked)
	}
	for route := range unlocked {
		if !slices.Contains(routes, route) {
			t.Errorf("%s needs no token, and is not there", route)
		}
	}
}

// TestTokensWithRoles: the tokens of the configuration reach the routes of the program and of both
// functions that serve requests.
func TestTokensWithRoles(t *testing.T) {
	tests := []struct {
		route, token string
		want         int
	}{
		{"POST /events/{source}/{event_type}", "s3nds", 202},
		{"POST /events/{source}/{event_type}", "r3ads", 403},
		{"POST /events/{source}/{event_type}", "0perates", 202},
		{"POST /events/{source}/{event_type}", "adm1n", 202},
		{"GET /api/stats", "s3nds", 403},
		{"GET /api/stats", "r3ads", 200},
		{"POST /api/jobs/retry", "r3ads", 403},
		{"POST /api/jobs/retry", "0perates", 200},
		{"POST /api/queues/{name}/drain", "0perates", 403},
		{"POST /api/queues/{name}/drain", "adm1n", 200},
		{"GET /api/queues/{name}/messages", "r3ads", 403},
		{"GET /api/queues/{name}/messages", "0perates", 200},
	}
	store := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	for name, part := range map[string]gateway.Part{"intake function": gateway.IntakeRoutes, "pull function": gateway.APIRoutes, "program": nil} {
		g := newGateway(t, load(t, everything), store)
		if part != nil {
			var err error
			d := gateway.Deps{Store: store, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler)}
			if g, err = gateway.NewPart(load(t, everything), d, part); err != nil {
				t.Fatal(err)
			}
		}
		h, ran := g.Handler(), 0
		for _, tt := range tests {
			method, pattern, _ := strings.Cut(tt.route, " ")
			if !slices.Contains(web.Routes(h), web.Route{Method: method, Pattern: pattern}) {
				continue
			}
			ran++
			if got := asked(h, tt.route, "Bearer "+tt.token); got.Code != tt.want {
				t.Errorf("%s: %s with the token %s: %d %s, want %d", name, tt.route, tt.token, got.Code, got.Body, tt.want)
			}
		}
		if want := map[string]int{"intake function": 4, "pull function": 8, "program": 12}[name]; ran != want {
			t.Errorf("%s: %d requests fit its routes, want %d", name, ran, want)
		}
	}
}

// consumers are the routes that require the key of a queue, or a token with the role operate.
var consumers = []string{
	"GET /api/queues/{name}/messages", "POST /api/queues/{name}/ack", "POST /api/queues/{name}/nack", "POST /api/queues/{name}/extend",
}

// Every served route is in the API description, and every described route is served.
func TestEveryRouteIsDescribed(t *testing.T) {
	h, routes := everyRoute(t)
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(asked(h, "GET /openapi.json", "Bearer t0ken").Body.Bytes(), &description); err != nil {
		t.Fatal(err)
	}
	var described []string
	for path, item := range description.Paths {
		for _, method := range slices.Sorted(maps.Keys(item)) {
			if method != "parameters" && (path != "/_echo" || method == "post") {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff(routes, described); diff != "" {
		t.Errorf("routes (-served +described):\n%s", diff)
	}
}
