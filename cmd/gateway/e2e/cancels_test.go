//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const cancelsConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: 5s}
sources: {app: {type: event}}
handlers:
  mail: {source: app, url: "${RECEIVER}/mail"}
  stock: {source: app, url: "${RECEIVER}/stock"}
queues: {line: {source: app}}
workflows:
  flow:
    source: app
    steps: [{name: only, url: "${RECEIVER}/step", end: true}]
`

// A canceled is the reply to a cancel.
type canceled struct {
	EventID      string   `json:"event_id"`
	Canceled     int      `json:"canceled"`
	Running      int      `json:"running"`
	Finished     int      `json:"finished"`
	CanceledRuns []string `json:"canceled_workflow_runs"`
	RunningRuns  []string `json:"running_workflow_runs"`
}

// TestCancels: a canceled event is not delivered, over a kill, and of a cancel and a claim exactly
// one wins, on each database.
func TestCancels(t *testing.T) {
	t.Parallel()
	for _, p := range append(everyServer(), place{"SQLite", ownFile}) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGatewayOn(t, p.on(t), cancelsConfig, r)
			g.start()
			testCancelDelayed(t, g, r)
			testCancelAtOnce(t, g, r)
			if a := g.post("/api/events/01J90000000000000000000001/cancel", ""); a.status != http.StatusNotFound {
				t.Errorf("cancel of a missing event = %d %q, want 404", a.status, a.body)
			}
		})
	}
}

// cancel cancels an event over HTTP.
func (g *gateway) cancel(id string) (c canceled, a answer, err error) {
	a, err = fetch(pooled, request{method: http.MethodPost, url: g.url("/api/events/" + id + "/cancel")})
	if err == nil && a.status == http.StatusOK {
		err = json.Unmarshal([]byte(a.body), &c)
	}
	return c, a, err
}

// testCancelDelayed cancels one of two delayed events with the command. The other one comes.
func testCancelDelayed(t *testing.T, g *gateway, r *receiver.Receiver) {
	stopped := g.send("/events/order.created", `{}`, "X-Gateway-Delay", "3s")
	wanted := g.send("/events/order.created", `{}`, "X-Gateway-Delay", "3s")
	var got canceled
	g.runJSON(&got, "events", "cancel", stopped)
	if got.EventID != stopped || got.Canceled != 3 || got.Running+got.Finished+len(got.RunningRuns) != 0 || len(got.CanceledRuns) != 1 {
		t.Errorf("cancel of a delayed event = %+v, want three jobs and a run canceled", got)
	}
	g.kill()
	g.start()
	if again, a, err := g.cancel(stopped); err != nil || again.Canceled+again.Running != 0 || again.Finished != 3 || len(again.CanceledRuns)+len(again.RunningRuns) != 0 {
		t.Errorf("cancel again = %s, %v, want three finished jobs", a.body, err)
	}
	for _, path := range []string{"/mail", "/stock", "/step"} {
		r.Await(t, 20*time.Second, path, 1)
	}
	q := queue{g: g, name: "line"}
	if m := q.await(1)[0]; m.EventID != wanted {
		t.Errorf("message of %s, want of %s", m.EventID, wanted)
	} else {
		q.ack(m.ID)
	}
	q.none("the other one is canceled")
	for _, d := range r.All() {
		if d.Event() != wanted {
			t.Errorf("%s got event %s, which was canceled", d.Path, d.Event())
		}
	}
	if list := g.run("jobs", "list", "--status", "canceled"); strings.Count(list, stopped) != 4 {
		t.Errorf("jobs list --status canceled:\n%s\nwant four jobs of %s", list, stopped)
	}
}

// testCancelAtOnce cancels events right after they are accepted, while the worker takes them. Each job
// is either canceled and never delivered, or is delivered once.
func testCancelAtOnce(t *testing.T, g *gateway, r *receiver.Receiver) {
	const events = 30
	counts := make([]canceled, events)
	var wg sync.WaitGroup
	for i := range events {
		id := g.send("/events/order.created", `{}`)
		wg.Go(func() {
			c, a, err := g.cancel(id)
			if err != nil || a.status != http.StatusOK || c.Canceled+c.Running+c.Finished != 3 {
				t.Errorf("cancel of %s = %d %s, %v, want three jobs", id, a.status, a.body, err)
			}
			c.EventID = id
			counts[i] = c
		})
	}
	wg.Wait()
	// No job is left to be taken by the worker. Messages that were not canceled wait for a consumer.
	var jobs map[string][]struct {
		Handler, Status string
	}
	for _, c := range counts {
		wait.For(t, 20*time.Second, "the jobs of a canceled event are finished", func() bool {
			a, err := fetch(pooled, request{method: http.MethodGet, url: g.url("/api/events/" + c.EventID + "/jobs")})
			return err == nil && json.Unmarshal([]byte(a.body), &jobs) == nil && !strings.Contains(a.body, `"status":"running"`) && !strings.Contains(a.body, `"status":"available"`)
		})
		ended := 0
		for _, j := range jobs["jobs"] {
			delivered := 0
			path := "/" + j.Handler
			if strings.HasPrefix(j.Handler, "workflow/") {
				path = "/step"
			}
			for _, d := range r.At(path) {
				if d.Event() == c.EventID {
					delivered++
				}
			}
			if want := map[string]int{"completed": 1, "canceled": 0}[j.Status]; j.Handler != "queue/line" && delivered != want {
				t.Errorf("job of %s is %s after %d deliveries of %s", j.Handler, j.Status, delivered, c.EventID)
			}
			if j.Status == "canceled" && !strings.HasPrefix(j.Handler, "workflow/") {
				ended++
			}
		}
		if ended != c.Canceled {
			t.Errorf("%d jobs of %s are canceled, and the reply said %+v", ended, c.EventID, c)
		}
	}
}
