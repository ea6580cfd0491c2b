package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
)

// audited is a configuration with consumers of each kind, and tokens of several roles.
const audited = `
server: {trust_proxy: true}
api:
  auth_token: master
  tokens: [{name: alice, token: s3cret, role: admin}, {name: viewer, token: l00k, role: read}]
sources: {shop: {type: event}, nightly: {type: cron, schedule: "0 3 * * *"}}
handlers:
  billing: {source: shop, url: "https://a.example"}
  flaky: {source: shop, url: "https://a.example"}
  ordered: {source: shop, url: "https://a.example", lines: {key: $.total}}
queues: {mail: {source: shop}}
workflows: {ship: {source: shop, steps: [{name: call, url: "https://a.example"}]}}
`

// An auditedWorld is a gateway without a worker, whose jobs the test ends.
type auditedWorld struct {
	*wired
	*testing.T
}

// ask sends a request with a token, from the address 203.0.113.9, and returns the status and the
// reply.
func (w auditedWorld) ask(token, method, path, body string) (int, string) {
	w.Helper()
	resp, reply := w.send(token, method, path, body)
	return resp.StatusCode, reply
}

func (w auditedWorld) send(token, method, path, body string) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.9")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp, string(reply)
}

// must sends a request that has to succeed, and returns a text field of the reply.
func (w auditedWorld) must(method, path, body, field string) string {
	w.Helper()
	code, reply := w.ask("master", method, path, body)
	var got map[string]any
	if err := json.Unmarshal([]byte(reply), &got); code/100 != 2 || err != nil {
		w.Fatalf("%s %s = %d %s", method, path, code, reply)
	}
	text, _ := got[field].(string)
	return text
}

// event stores an event, and returns its id.
func (w auditedWorld) event() string {
	w.Helper()
	resp, reply := w.send("master", "POST", "/events/shop/order", `{"total": 42}`)
	if resp.StatusCode != 202 {
		w.Fatalf("POST = %d %s, want 202", resp.StatusCode, reply)
	}
	return resp.Header.Get("X-Gateway-Event-Id")
}

// run stores an event, and returns the run of it.
func (w auditedWorld) run() string {
	w.Helper()
	page, err := w.spy.Runs(w.Context(), core.RunFilter{EventID: core.ID(w.event())})
	if err != nil || len(page.Items) != 1 {
		w.Fatalf("Runs = %+v, %v; want one", page, err)
	}
	return string(page.Items[0].ID)
}

// dead stores an event, lets a job of a lane die, and returns the job. A failure opens the breaker of
// the lane.
func (w auditedWorld) dead(lane core.Lane, v core.Verdict) string {
	w.Helper()
	w.event()
	lines := 0
	if lane == "handler/ordered" {
		lines = 1
	}
	now := time.Now()
	jobs, err := w.spy.Store.Take(w.Context(), now, []core.Quota{{Lane: lane, N: 1, Hold: time.Minute, Lines: lines}})
	if err != nil || len(jobs) != 1 {
		w.Fatalf("Take(%s) = %d jobs, %v; want one", lane, len(jobs), err)
	}
	j := jobs[0]
	o := core.Outcome{JobID: j.ID, Lease: j.Lease, Status: core.Dead, At: now, Lane: lane, Verdict: v, Breaker: core.Breaker{Failures: 1},
		Attempt: core.Attempt{Number: j.Attempt, StartedAt: now}, Line: core.Line{Key: j.Line, Limit: lines}, StopsLine: true}
	if _, err := w.spy.Store.Settle(w.Context(), o); err != nil {
		w.Fatal(err)
	}
	return string(j.ID)
}

// entries returns the newest entries of the audit.
func (w auditedWorld) entries() []core.AuditEntry {
	w.Helper()
	page, err := w.spy.Audited(w.Context(), core.AuditFilter{Limit: core.MaxPage})
	if err != nil {
		w.Fatal(err)
	}
	return page.Items
}

// A request is a request that changes something. ID stands in its path and its entry.
type request struct {
	id, path, body string
	want           core.Change // the entry; ID is the target if that is empty
	again          int         // the status of the same request sent again; 0 if it changes something again
}

// changes make a request for each route that changes something.
var changes = map[web.Route]func(w auditedWorld) request{
	{Method: "POST", Pattern: "/api/events/{id}/cancel"}: func(w auditedWorld) request {
		return request{id: w.event(), path: "/api/events/ID/cancel", want: core.Change{Action: core.AuditCancel}, again: 200}
	},
	{Method: "POST", Pattern: "/api/events/{id}/replay"}: func(w auditedWorld) request {
		return request{id: w.event(), path: "/api/events/ID/replay", want: core.Change{Action: core.AuditReplay}}
	},
	{Method: "POST", Pattern: "/api/events/replay"}: func(w auditedWorld) request {
		id := w.event()
		return request{id: id, path: "/api/events/replay", body: `{"source": "shop", "first": "` + id + `", "last": "` + id + `"}`,
			want: core.Change{Action: core.AuditReplay, Target: core.AllTargets, Detail: map[string]string{"source": "shop", "first": id, "last": id}}}
	},
	{Method: "POST", Pattern: "/api/jobs/{id}/retry"}: func(w auditedWorld) request {
		return request{id: w.dead("handler/billing", core.NoVerdict), path: "/api/jobs/ID/retry",
			want: core.Change{Action: core.AuditRetry, Detail: map[string]string{"consumer": "billing"}}, again: 400}
	},
	{Method: "POST", Pattern: "/api/jobs/{id}/skip"}: func(w auditedWorld) request {
		return request{id: w.dead("handler/ordered", core.NoVerdict), path: "/api/jobs/ID/skip", want: core.Change{Action: core.AuditSkip}, again: 400}
	},
	{Method: "POST", Pattern: "/api/jobs/retry"}: func(w auditedWorld) request {
		w.dead("handler/billing", core.NoVerdict)
		return request{path: "/api/jobs/retry", body: `{"handler": "billing"}`, want: core.Change{Action: core.AuditRetry, Target: "handler/billing"}, again: 200}
	},
	{Method: "POST", Pattern: "/api/handlers/{name}/breaker/reset"}: func(w auditedWorld) request {
		w.dead("handler/flaky", core.Failure)
		return request{path: "/api/handlers/flaky/breaker/reset", want: core.Change{Action: core.AuditResetBreaker, Target: "handler/flaky"}, again: 200}
	},
	{Method: "POST", Pattern: "/api/schedules/{source}/fire"}: func(auditedWorld) request {
		return request{path: "/api/schedules/nightly/fire", want: core.Change{Action: core.AuditFire, Target: "source/nightly"}}
	},
	{Method: "POST", Pattern: "/api/operations"}: func(auditedWorld) request {
		return request{path: "/api/operations", body: `{"action": "retry", "rate": 7, "filter": {"consumer": "billing", "error": "timeout", "since": "2026-11-20"}}`,
			want: core.Change{Action: core.AuditOperation, Detail: map[string]string{"action": "retry", "rate": "7", "consumer": "billing", "error": "timeout", "since": "2026-11-20T00:00:00.000"}}}
	},
	{Method: "POST", Pattern: "/api/operations/{id}/cancel"}: func(w auditedWorld) request {
		id := w.must("POST", "/api/operations", `{"action": "replay", "filter": {"source": "shop"}, "to": ["billing"]}`, "id")
		return request{id: id, path: "/api/operations/ID/cancel", want: core.Change{Action: core.AuditCancelOperation}, again: 400}
	},
	{Method: "POST", Pattern: "/api/holds"}: func(auditedWorld) request {
		return request{path: "/api/holds", body: `{"target": "workflow/ship", "reason": "they deploy"}`,
			want: core.Change{Action: core.AuditHold, Target: "workflow/ship", Detail: map[string]string{"reason": "they deploy"}}, again: 200}
	},
	{Method: "DELETE", Pattern: "/api/holds"}: func(w auditedWorld) request {
		w.must("POST", "/api/holds", `{"target": "source/shop"}`, "target")
		return request{path: "/api/holds?target=source/shop", want: core.Change{Action: core.AuditRelease, Target: "source/shop"}, again: 200}
	},
	{Method: "POST", Pattern: "/api/queues/{name}/retry"}: func(w auditedWorld) request {
		id := w.dead("queue/mail", core.NoVerdict)
		return request{path: "/api/queues/mail/retry", body: `{"id": "` + id + `"}`,
			want: core.Change{Action: core.AuditRetryQueue, Target: "queue/mail", Detail: map[string]string{"message": id}}, again: 200}
	},
	{Method: "POST", Pattern: "/api/queues/{name}/drain"}: func(w auditedWorld) request {
		w.event()
		return request{path: "/api/queues/mail/drain", want: core.Change{Action: core.AuditDrain, Target: "queue/mail"}, again: 200}
	},
	{Method: "POST", Pattern: "/api/workflow-runs/{id}/redrive"}: func(w auditedWorld) request {
		id := w.run()
		w.must("POST", "/api/workflow-runs/"+id+"/cancel", "", "id")
		return request{id: id, path: "/api/workflow-runs/ID/redrive", body: `{"from": "failed"}`,
			want: core.Change{Action: core.AuditRedrive, Detail: map[string]string{"from": "failed", "definition": "stored"}}, again: 400}
	},
	{Method: "POST", Pattern: "/api/workflow-runs/{id}/cancel"}: func(w auditedWorld) request {
		return request{id: w.run(), path: "/api/workflow-runs/ID/cancel", want: core.Change{Action: core.AuditCancelRun}, again: 400}
	},
}

// work are the routes that change something and are not audited: programs work through them.
var work = map[web.Route]bool{
	{Method: "POST", Pattern: "/api/queues/{name}/ack"}: true, {Method: "POST", Pattern: "/api/queues/{name}/nack"}: true,
	{Method: "POST", Pattern: "/api/queues/{name}/extend"}: true,
}

// TestEachChangeIsAudited: each route that changes something leaves one entry if it succeeds, and
// none if it is refused or finds nothing to change. No other route leaves one.
func TestEachChangeIsAudited(t *testing.T) {
	changing := 0
	w := auditedWorld{wire(t, audited), t}
	for _, route := range web.Routes(w.Handler()) {
		if !strings.HasPrefix(route.Pattern, "/api/") || work[route] {
			continue
		}
		path := strings.NewReplacer("{id}", "01KAGVBZVT0C0Q1V7Y5C8H5M2N", "{name}", "mail", "{source}", "nightly", "{number}", "1").Replace(route.Pattern)
		if prepare := changes[route]; prepare != nil {
			changing++
			w.wantOne(route, prepare(w))
		} else if route.Method != http.MethodGet {
			t.Errorf("%s %s changes something: the table changes has no request for it", route.Method, route.Pattern)
		}
		before := len(w.entries())
		w.ask("viewer", route.Method, path, "")
		w.ask("wrong", route.Method, path, "")
		w.ask("master", route.Method, path, `{"mistyped": true}`)
		if n := len(w.entries()) - before; n != 0 {
			t.Errorf("%s %s left %d entries for requests that are refused or read; want none", route.Method, route.Pattern, n)
		}
	}
	if changing != len(changes) {
		t.Errorf("%d routes of the table changes are served, want all %d", changing, len(changes))
	}
}

// wantOne sends a request, and fails unless it leaves the entry that it wants. It sends the request
// again: then it leaves none, unless it changes something again.
func (w auditedWorld) wantOne(route web.Route, r request) {
	w.Helper()
	before := w.entries()
	path := strings.ReplaceAll(r.path, "ID", r.id)
	code, reply := w.ask("s3cret", route.Method, path, r.body)
	after := w.entries()
	if code != 200 || len(after) != len(before)+1 {
		w.Errorf("%s %s = %d %s, and left %d entries; want 200 and one", route.Method, path, code, reply, len(after)-len(before))
		return
	}
	if r.want.Target == "" {
		r.want.Target = r.id
	}
	if route.Pattern == "/api/operations" {
		r.want.Target = after[0].Target // the id was made by the request
	}
	// The entry of a bulk change names the operation that makes it.
	if id := after[0].Detail["operation"]; id != "" {
		if op, err := w.spy.Operation(w.Context(), core.ID(id)); err != nil || op.By != "alice" || op.State != core.OperationFinished {
			w.Errorf("operation of %s %s: %+v, %v; want a finished one of alice", route.Method, path, op, err)
		}
		delete(after[0].Detail, "operation")
		if len(after[0].Detail) == 0 {
			after[0].Detail = nil
		}
	}
	want := core.AuditEntry{ID: after[0].ID, Change: r.want, Actor: core.Actor{Name: "alice", Role: core.RoleAdmin, Address: "203.0.113.9", Via: core.ViaAPI}}
	if diff := cmp.Diff(want, after[0]); diff != "" {
		w.Errorf("entry of %s %s (-want +got):\n%s", route.Method, path, diff)
	}
	if at := after[0].ID.Time(); time.Since(at) > time.Minute || time.Since(at) < -time.Second {
		w.Errorf("%s %s: the entry is of %v", route.Method, path, at)
	}
	if r.again == 0 {
		return
	}
	// An entry may be left out only because nothing changes, and not since the time is the same.
	<-time.After(2 * time.Millisecond)
	if code, reply := w.ask("s3cret", route.Method, path, r.body); code != r.again || len(w.entries()) != len(after) {
		w.Errorf("%s %s again = %d %s, and left %d entries; want %d and none", route.Method, path, code, reply, len(w.entries())-len(after), r.again)
	}
}

// TestNamesOfActors: an entry names the caller by the token, and a caller without a token.
func TestNamesOfActors(t *testing.T) {
	hold := func(yaml, token string) core.AuditEntry {
		w := auditedWorld{wire(t, yaml), t}
		if code, reply := w.ask(token, "POST", "/api/holds", `{"target": "source/shop"}`); code != 200 {
			t.Fatalf("POST = %d %s", code, reply)
		}
		return w.entries()[0]
	}
	if e := hold(audited, "master"); e.Name != core.ActorToken || e.Role != core.RoleAdmin {
		t.Errorf("actor of auth_token = %+v", e.Actor)
	}
	e := hold("sources: {shop: {type: event}}", "any")
	if want := (core.Actor{Name: core.ActorAnonymous, Role: core.RoleAdmin, Address: "127.0.0.1", Via: core.ViaAPI}); e.Actor != want {
		t.Errorf("actor without tokens = %+v, want %+v: no proxy is trusted", e.Actor, want)
	}
}

// TestAuditOfTheAPI reads the entries through the API, page by page and with filters.
func TestAuditOfTheAPI(t *testing.T) {
	w := auditedWorld{wire(t, audited), t}
	for _, target := range []string{"billing", "queue/mail", "source/shop"} {
		w.must("POST", "/api/holds", `{"target": "`+target+`"}`, "target")
	}
	w.must("DELETE", "/api/holds?target=billing", "", "target")
	all := w.entries()
	type page struct {
		Entries []struct{ ID, Action, Target string }
		Next    *string
	}
	list := func(query string) (p page) {
		code, reply := w.ask("s3cret", "GET", "/api/audit?"+query, "")
		if err := json.Unmarshal([]byte(reply), &p); code != 200 || err != nil {
			t.Fatalf("GET %s = %d %s", query, code, reply)
		}
		return p
	}
	var got []string
	for query := "limit=3"; ; {
		p := list(query)
		for _, e := range p.Entries {
			got = append(got, e.ID)
		}
		if p.Next == nil {
			break
		}
		query = "limit=3&after=" + *p.Next
	}
	var want []string
	for _, e := range all {
		want = append(want, string(e.ID))
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 4 {
		t.Errorf("ids of all pages (-want +got):\n%s", diff)
	}
	for query, n := range map[string]int{
		"actor=auth_token": 4, "actor=alice": 0, "action=holds.release": 1, "action=holds.hold": 3, "target=queue/mail": 1,
		"since=2026-01-01": 4, "until=2026-01-01": 0, "actor=auth_token&action=holds.hold&target=source/shop": 1,
	} {
		if p := list(query); len(p.Entries) != n {
			t.Errorf("GET %s = %+v, want %d entries", query, p, n)
		}
	}
	for query, words := range map[string]string{
		"action=hold": "action must be one of jobs.retry,", "since=2026-01-02&until=2026-01-01": "since must be before until", "actor=": "actor must be",
		"after=x": "after: ", "limit=0": "limit must be a whole number from 1 to 1000", "who=alice": "who",
	} {
		if code, reply := w.ask("s3cret", "GET", "/api/audit?"+query, ""); code != 400 || !strings.Contains(reply, words) {
			t.Errorf("GET %s = %d %s, want 400 with %q", query, code, reply, words)
		}
	}
	if code, reply := w.ask("l00k", "GET", "/api/audit", ""); code != 403 {
		t.Errorf("GET with the role read = %d %s, want 403", code, reply)
	}
}
