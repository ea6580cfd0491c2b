package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
)

// others are the routes that no token of the API opens, with the reasons.
var others = map[web.Route]string{
	{Method: "POST", Pattern: "/webhooks/{source}"}:               "senders prove themselves by a signature",
	{Method: "POST", Pattern: "/sns/{source}"}:                    "Amazon signs notifications",
	{Method: "OPTIONS", Pattern: "/webhooks/{source}"}:            "a handshake is no permission yet",
	{Method: "OPTIONS", Pattern: "/events/{event_type}"}:          "a handshake is no permission yet",
	{Method: "OPTIONS", Pattern: "/events/{source}/{event_type}"}: "a handshake is no permission yet",
	{Method: "POST", Pattern: "/callback/{token}"}:                "the token in the path is the proof",
	{Method: "GET", Pattern: "/health"}:                           "probes have no token",
	{Method: "HEAD", Pattern: "/health"}:                          "probes have no token",
	{Method: "GET", Pattern: "/metrics"}:                          "metrics have tokens of their own",
}

// TestEachRouteHasARole: each route is in the table of roles or among the others, and each entry
// of both is a route.
func TestEachRouteHasARole(t *testing.T) {
	w := newWorld(t)
	w.metrics = http.NotFoundHandler()
	served := web.Routes(w.handler())
	for _, r := range served {
		_, listed := web.Roles[r]
		if r.Pattern != "/_echo" && listed == (others[r] != "") {
			t.Errorf("%s %s: in the table of roles: %v, and among the other routes: %q; want it in one of the two", r.Method, r.Pattern, listed, others[r])
		}
	}
	for r, role := range web.Roles {
		if !slices.Contains(served, r) || !core.RoleAdmin.Includes(role) {
			t.Errorf("%s %s needs the role %q; want a route that is served, and a role that is known", r.Method, r.Pattern, role)
		}
	}
	for r := range others {
		if !slices.Contains(served, r) {
			t.Errorf("%s %s is not served", r.Method, r.Pattern)
		}
	}
}

// TestEachRoleIsDescribed: openapi.yaml has the role that each route needs, and no other roles.
func TestEachRoleIsDescribed(t *testing.T) {
	for path, item := range described(t).Paths.Map() {
		for method, operation := range item.Operations() {
			got, _ := operation.Extensions["x-role"].(string)
			if want := web.Roles[web.Route{Method: method, Pattern: path}]; got != string(want) {
				t.Errorf("openapi.yaml: %s %s has x-role %q, want %q", method, path, got, want)
			}
		}
	}
}

// TestReadingChangesNothing: a role below operate opens no route that changes something.
func TestReadingChangesNothing(t *testing.T) {
	for r, role := range web.Roles {
		if r.Method == http.MethodGet && r.Pattern != "/api/queues/{name}/messages" {
			continue
		}
		if core.RoleRead.Includes(role) {
			t.Errorf("%s %s needs the role %s; want one that %s does not include", r.Method, r.Pattern, role, core.RoleRead)
		}
	}
}

// pathOf fills in the parameters of a pattern. The queue "locked" has a key, and the queue "work"
// is open.
func pathOf(pattern, queue string) string {
	return strings.NewReplacer("{name}", queue, "{source}", "shop", "{event_type}", "order.created", "{id}", string(eventNumber(1))).Replace(pattern)
}

// withToken sends a request with a body that most routes accept.
func withToken(h http.Handler, method, path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestRoles sends a request with a token of each role to each route. A token whose role is too
// low gets 403, and reaches no service.
func TestRoles(t *testing.T) {
	allowed, denied := 0, 0
	for r, need := range web.Roles {
		for _, role := range []core.Role{core.RoleSend, core.RoleRead, core.RoleOperate, core.RoleAdmin} {
			for _, queue := range []string{"work", "locked"} {
				w := newWorld(t, "token ci "+string(role)+" s3cret", "auth_token all-rights")
				got := withToken(w.handler(), r.Method, pathOf(r.Pattern, queue), "s3cret")
				what := r.Method + " " + r.Pattern + " of " + queue + " with the role " + string(role)
				if role.Includes(need) {
					allowed++
					if got.Code == 401 || got.Code == 403 || got.Code >= 500 {
						t.Errorf("%s: %d %s", what, got.Code, got.Body)
					}
					continue
				}
				denied++
				text := `token "ci" has the role ` + string(role) + `; this needs ` + string(need)
				if said := refusalIn(got); got.Code != 403 || said != text || got.Header().Get("WWW-Authenticate") != `Bearer error="insufficient_scope"` {
					t.Errorf("%s: %d %q %q, want 403 %q", what, got.Code, said, got.Header()["Www-Authenticate"], text)
				}
				calls := slices.Concat(w.counter.calls, w.clerk.calls, w.archive.calls)
				if len(calls) > 0 || len(w.store.events) > 0 {
					t.Errorf("%s reached %q, and stored %d events", what, calls, len(w.store.events))
				}
			}
		}
	}
	if allowed < 100 || denied < 100 {
		t.Errorf("%d requests were allowed and %d denied, want all combinations", allowed, denied)
	}
}

// refusalIn returns the text of an error, which is plain or {"error": ...}.
func refusalIn(w *httptest.ResponseRecorder) string {
	var refused struct{ Error string }
	if json.Unmarshal(w.Body.Bytes(), &refused) == nil {
		return refused.Error
	}
	return w.Body.String()
}

// TestRolesOfQueues: a queue's own key opens its queue, with and without tokens of the API. A
// token with a role opens the queues that have keys, and the token with all rights does not.
func TestRolesOfQueues(t *testing.T) {
	for _, tt := range []struct {
		queue, token string
		want         int
	}{
		{"locked", "k3y", 200}, {"locked", "n3w", 200}, {"locked", "operates", 200}, {"locked", "reads", 403}, {"locked", "sends", 403},
		{"locked", "other", 401}, {"locked", "all-rights", 401},
		{"work", "operates", 200}, {"work", "reads", 403}, {"work", "other", 200}, {"work", "all-rights", 200},
		{"missing", "operates", 404}, {"missing", "reads", 404},
	} {
		w := newWorld(t, "auth_token all-rights", "token a operate operates", "token b read reads", "token c send sends")
		for _, route := range []string{"GET messages", "POST ack", "POST nack", "POST extend"} {
			method, end, _ := strings.Cut(route, " ")
			body := `{"ids":["x"]}`
			if end == "extend" {
				body = `{"ids":["x"],"visibility_timeout":"5s"}`
			}
			r := httptest.NewRequest(method, "/api/queues/"+tt.queue+"/"+end, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+tt.token)
			got := httptest.NewRecorder()
			w.handler().ServeHTTP(got, r)
			if got.Code != tt.want {
				t.Errorf("%s of %s with the token %q: %d %s, want %d", route, tt.queue, tt.token, got.Code, got.Body, tt.want)
			}
		}
	}
}

// TestDeniedRolesAreSeen: a denied request is counted with a reason of its own, and the log names
// the token.
func TestDeniedRolesAreSeen(t *testing.T) {
	w := newWorld(t, "token ci read s3cret")
	var reasons []string
	w.settings.Refused = func(reason string) { reasons = append(reasons, reason) }
	h := w.handler()
	withToken(h, "POST", "/api/queues/work/drain", "s3cret")
	withToken(h, "POST", "/api/queues/work/drain", "other")
	if !slices.Equal(reasons, []string{"role"}) {
		t.Errorf("the reasons are %q, want one role", reasons)
	}
	if log := w.log.String(); strings.Count(log, "request refused") != 1 || !strings.Contains(log, "reason=role") ||
		!strings.Contains(log, `token \"ci\" has the role read`) || !strings.Contains(log, "route=/api/queues/{name}/drain") || strings.Contains(log, "s3cret") {
		t.Errorf("the log is %s", log)
	}
}

// TestOnlyTokensWithRoles: tokens with roles protect the API also without a token that has all
// rights.
func TestOnlyTokensWithRoles(t *testing.T) {
	w := newWorld(t, "token shop send s3cret")
	h := w.handler()
	for _, token := range []string{"", "other"} {
		for r := range web.Roles {
			if strings.Contains(r.Pattern, "{name}/messages") || strings.HasSuffix(r.Pattern, "ack") || strings.HasSuffix(r.Pattern, "extend") {
				continue // the queue has no key
			}
			if got := withToken(h, r.Method, pathOf(r.Pattern, "work"), token); got.Code != 401 || got.Body.String() != "Invalid token" {
				t.Errorf("%s %s with the token %q: %d %s, want 401", r.Method, r.Pattern, token, got.Code, got.Body)
			}
		}
	}
	if got := withToken(h, "POST", "/events/shop/order.created", "s3cret"); got.Code != 202 {
		t.Errorf("an event: %d %s, want 202", got.Code, got.Body)
	}
}

// TestChangesAreNoted: each route of operators that changes something calls Settings.Changed once, also if it
// refuses, and no other route does: pages that poll share answers until then.
func TestChangesAreNoted(t *testing.T) {
	w := newWorld(t, "auth_token admin")
	changes := 0
	w.settings.Changed = func() { changes++ }
	h := w.handler()
	for route, role := range web.Roles {
		consumer := strings.HasPrefix(route.Pattern, "/api/queues/{name}/") && slices.Contains([]string{"ack", "nack", "extend"}, route.Pattern[strings.LastIndex(route.Pattern, "/")+1:])
		want := 0
		if route.Method != http.MethodGet && role.Includes(core.RoleOperate) && !consumer {
			want = 1
		}
		for token, want := range map[string]int{"admin": want, "wrong": 0} {
			changes = 0
			r := httptest.NewRequest(route.Method, pathOf(route.Pattern, "work"), nil)
			r.Header.Set("Authorization", "Bearer "+token)
			h.ServeHTTP(httptest.NewRecorder(), r)
			if changes != want {
				t.Errorf("%s %s with the token %s: noted %d times, want %d", route.Method, route.Pattern, token, changes, want)
			}
		}
	}
}
