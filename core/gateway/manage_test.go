package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	record "github.com/eventgateway/gateway/core/wire"
)

// These tests check that the management API shows the stored records, and uses the current
// configuration.

// told returns the reply of a gateway, decoded as a record.
func told[T any](t *testing.T, h http.Handler, route, body string) (reply T) {
	t.Helper()
	got := httpAsk(h, route, body)
	if got.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", route, body, got.Code, got.Body)
	}
	d := json.NewDecoder(got.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&reply); err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	return reply
}

const before = `
sources: {shop: {type: event}}
handlers:
  billing: {source: shop, url: "http://192.0.2.1/", idempotency_key: $.id}
  audit: {source: shop, url: "http://192.0.2.1/"}
`

const after = `
sources: {shop: {type: event}}
handlers:
  billing: {source: shop, url: "http://192.0.2.1/", idempotency_key: $.id, filter: "$.total > 10"}
  mail: {source: shop, url: "http://192.0.2.1/", events: [order.created]}
queues:
  work: {source: shop, events: ["order.*"]}
workflows:
  fulfil:
    source: shop
    events: [order.created]
    params: [{name: total, type: number, required: true}]
    steps: [{name: call, type: http, url: "http://192.0.2.1/"}]
`

// A replay goes to the consumers of the current configuration, with filters and params. Keys
// of earlier jobs do not prevent it. Inspect and export show all jobs and runs of the events.
func TestReplayIsForThoseConfiguredNow(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	old := newGateway(t, load(t, before), s).Handler()
	bodies := []struct{ path, body string }{
		{"order.created", `{"id": 1, "total": 50}`}, {"order.created", `{"id": 2, "total": 5}`},
		{"order.paid", `{"id": 3, "total": 50}`}, {"order.created", `{"id": 4, "total": "much"}`}, {"refund", `{"id": 5}`},
	}
	for _, b := range bodies {
		if got := httpAsk(old, "POST /events/shop/"+b.path, b.body); got.Code != http.StatusAccepted {
			t.Fatalf("%s: %d %s", b.path, got.Code, got.Body)
		}
	}
	h := newGateway(t, load(t, after), s).Handler()
	listed := told[record.Events](t, h, "GET /api/events", "").Events
	if len(listed) != 5 || listed[0].EventType != "refund" {
		t.Fatalf("events %+v, want five, the newest first", listed)
	}
	want := record.Replayed{Looked: 5, Events: 4, Jobs: 11, First: record.Text(listed[4].ID), Last: record.Text(listed[0].ID)}
	for range 2 { // a replay is not a duplicate of an earlier replay
		for _, body := range []string{`{"dry_run": true}`, `{"limit": 5}`} {
			if got := told[record.Replayed](t, h, "POST /api/events/replay", body); got != want {
				t.Errorf("replay %s = %+v, want %+v", body, got, want)
			}
		}
	}
	lanes := [][]string{ // of each event, the oldest first, after two replays
		{"audit", "billing", "billing", "mail", "queue/work", "workflow/fulfil/call", "billing", "mail", "queue/work", "workflow/fulfil/call"},
		{"audit", "billing", "mail", "queue/work", "workflow/fulfil/call", "mail", "queue/work", "workflow/fulfil/call"},
		{"audit", "billing", "billing", "queue/work", "billing", "queue/work"},
		{"audit", "billing", "mail", "queue/work", "mail", "queue/work"},
		{"audit", "billing"},
	}
	unwanted := [][]string{nil, nil, {"mail", "workflow/fulfil"}, {"workflow/fulfil"}, {"mail", "queue/work", "workflow/fulfil"}}
	i := 0
	for line := range strings.Lines(httpAsk(h, "GET /api/export/events", "").Body.String()) {
		var event record.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range event.Jobs {
			got = append(got, j.Handler)
		}
		if diff := cmp.Diff(lanes[i], got); diff != "" || string(event.Payload) != strings.ReplaceAll(bodies[i].body, " ", "") {
			t.Errorf("event %d has the payload %s; jobs (-want +got):\n%s", i, event.Payload, diff)
		}
		if runs := strings.Count(strings.Join(got, " "), "workflow"); len(event.WorkflowRuns) != runs {
			t.Errorf("event %d has %d runs, want %d", i, len(event.WorkflowRuns), runs)
		}
		one := told[record.Event](t, h, "GET /api/events/"+string(event.ID), "")
		one.Payload = event.Payload
		for k, j := range one.Jobs {
			if tried := told[record.Attempts](t, h, "GET /api/jobs/"+string(j.ID)+"/attempts", ""); len(tried.Attempts) != len(event.Jobs[k].Attempts) {
				t.Errorf("event %d, job %d: exported with %d attempts, want %d", i, k, len(event.Jobs[k].Attempts), len(tried.Attempts))
			}
			one.Jobs[k].Waiting = nil // exports leave it out, since it changes without a write
			one.Jobs[k].Attempts = event.Jobs[k].Attempts
		}
		var declined []string
		for _, d := range one.Declined {
			declined = append(declined, d.Handler)
		}
		if diff := cmp.Diff(unwanted[i], declined); diff != "" {
			t.Errorf("event %d is not wanted by (-want +got):\n%s", i, diff)
		}
		one.Declined = nil // it depends on the current configuration, so it is not exported
		if diff := cmp.Diff(event, one); diff != "" {
			t.Errorf("event %d (-exported +inspected):\n%s", i, diff)
		}
		i++
	}
	if i != 5 {
		t.Errorf("%d events were exported, want 5", i)
	}
}

func TestStatsOfAllThatIsConfigured(t *testing.T) {
	h := newGateway(t, load(t, after+`
alerts: [{url: "http://192.0.2.1/hook", type: slack, "on": [dlq]}]`), openStore(t, filepath.Join(t.TempDir(), "gateway.db"))).Handler()
	httpAsk(h, "POST /events/shop/order.created", `{"id": 1, "total": 50}`)
	stats := told[record.Stats](t, h, "GET /api/stats", "")
	got := fmt.Sprint(len(stats.Handlers), len(stats.Queues), len(stats.Workflows), len(stats.Alerts), stats.Jobs)
	if want := "2 1 1 1 {{4 0 0 0 0 0 0} 0}"; got != want {
		t.Errorf("stats = %s of %+v, want %s", got, stats, want)
	}
	for _, s := range stats.Handlers {
		if s.Available != 1 || s.OldestDue == nil || s.Breaker != record.BreakerClosed {
			t.Errorf("handler %+v, want one available job that is due, and a closed breaker", s)
		}
	}
}

// A tail shows accepted events, and then the changes of their jobs.
func TestTailOfAGateway(t *testing.T) {
	url, got := receiver(t, 200)
	w := wire(t, billing(url, "events: []"))
	h := w.Gateway.Handler()
	news := told[record.News](t, h, "GET /api/tail", "")
	id := w.accept202(t, "order.created")
	w.deliver(t)
	next(t, got)
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		look := fmt.Sprintf("GET /api/tail?event=%s&finished=%s", news.Cursor.Event, core.FormatTime(news.Cursor.Finished.Time))
		found := told[record.News](t, h, look, "")
		if len(found.Events) == 1 && found.Events[0].ID == id && len(found.Jobs) == 1 && found.Jobs[0].Status == core.Completed {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("news are %+v after %v", found, patience)
		}
	}
}

// A job that is retried is delivered at once, even if the worker is idle.
func TestRetryWakesTheWorker(t *testing.T) {
	url, got := receiver(t, 500, 200)
	w := wire(t, billing(url, "retry: {max: 1}"))
	id := w.accept202(t, "order.created")
	w.deliver(t)
	next(t, got)
	var job record.Job
	for deadline := time.Now().Add(patience); job.Status != core.Dead; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the job is %+v after %v", job, patience)
		}
		job = told[record.EventJobs](t, w.Gateway.Handler(), "GET /api/events/"+string(id)+"/jobs", "").Jobs[0]
	}
	if retried := told[record.Retried](t, w.Gateway.Handler(), "POST /api/jobs/"+string(job.ID)+"/retry", ""); retried.Retried != 1 {
		t.Fatalf("retried %+v, want 1", retried)
	}
	next(t, got)
	if again := httpAsk(w.Gateway.Handler(), "POST /api/jobs/"+string(job.ID)+"/retry", ""); again.Code != http.StatusBadRequest {
		t.Errorf("retry of a job that is not dead: %d %s, want 400", again.Code, again.Body)
	}
}
