//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const consoleToken = "a-token-of-the-console-for-tests"

func withConsole(t *testing.T, db *database, r *receiver.Receiver) *deployment {
	t.Helper()
	return deploy{config: storyConfig + "console: true\napi: {auth_token: " + consoleToken + "}\n", receiver: r}.new(t, db)
}

// signIn returns the cookie of a browser that has signed in to the console.
func (d *deployment) signIn() string {
	d.t.Helper()
	in := d.must(200, "POST", "/console/session", `{"token": "`+consoleToken+`"}`)
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	return cookie
}

// TestConsole: the function pull serves the console: its page, its files, and the API to a browser
// that has signed in.
func TestConsole(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d := withConsole(t, db, receiver.New(t))
		page := d.must(200, "GET", "/console", "")
		path, _, ok := strings.Cut(page.body[strings.Index(page.body, "console/assets/"):], "/icon.svg")
		if !ok || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
			t.Fatalf("page %v: %s", page.header, page.body)
		}
		// Compressed, an asset is no text, and travels as base64.
		if script := d.must(200, "GET", "/"+path+"/app.js", "", "Accept-Encoding", "gzip"); script.header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(script.body, "\x1f\x8b") {
			t.Errorf("script %v: %.20q", script.header, script.body)
		}
		d.must(401, "GET", "/console/api/stats", "")
		d.must(401, "POST", "/console/session", `{"token": "wrong"}`)
		cookie := d.signIn()
		if got := d.must(200, "GET", "/console/api/stats", "", "Cookie", cookie); !strings.Contains(got.body, `"handlers"`) {
			t.Errorf("stats: %s", got.body)
		}
		d.must(401, "GET", "/console/manual", "")
		if got := d.must(200, "GET", "/console/manual", "", "Cookie", cookie); !strings.Contains(got.body, `"name":"pull-queues"`) {
			t.Errorf("manual: %.200s", got.body)
		}
		d.must(200, "POST", "/console/api/holds", `{"target": "orders"}`, "Cookie", cookie)
		if got := d.must(200, "DELETE", "/console/api/holds?target=orders", "", "Cookie", cookie); got.body != `{"released":true}` {
			t.Errorf("release: %s", got.body)
		}
		d.must(204, "DELETE", "/console/session", "", "Cookie", cookie)
	})
}

// curves are the sums of the curves of a source or consumer.
type curves struct {
	Name                              string
	Accepted, Completed, Failed, Dead []int
}

func (c curves) sums() [4]int {
	var s [4]int
	for i, curve := range [][]int{c.Accepted, c.Completed, c.Failed, c.Dead} {
		for _, n := range curve {
			s[i] += n
		}
	}
	return s
}

// TestCurvesAndGraph: the console draws the work of four functions: its curves have the
// deliveries of a worker and the events of the intake, and the graph of a run has the states of
// its steps.
func TestCurvesAndGraph(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		back := make(chan string, 1)
		r.On("/ask", asking(back))
		r.On("/orders", receiver.Failing(1))
		d := withConsole(t, db, r)
		cookie := d.signIn()
		get := func(path string, into any) {
			t.Helper()
			a := d.must(200, "GET", "/console/api/"+path, "", "Cookie", cookie)
			if err := json.Unmarshal([]byte(a.body), into); err != nil {
				t.Fatalf("%s: %v: %.300s", path, err, a.body)
			}
		}
		for range 3 {
			d.must(202, "POST", "/events/order.created", `{}`, "Authorization", "Bearer "+consoleToken)
		}
		d.must(202, "POST", "/events/approval.wanted", `{}`, "Authorization", "Bearer "+consoleToken)
		url := <-back
		graphOf := func() (states map[string]string) {
			var runs struct {
				Runs []struct{ ID string } `json:"workflow_runs"`
			}
			get("workflow-runs", &runs)
			if len(runs.Runs) != 1 {
				t.Fatalf("runs %+v, want one", runs)
			}
			var graph struct {
				Width int
				Steps []struct{ Name, Status string }
			}
			get("workflow-runs/"+runs.Runs[0].ID+"/graph", &graph)
			if graph.Width == 0 {
				t.Error("the graph has no width")
			}
			states = map[string]string{}
			for _, s := range graph.Steps {
				states[s.Name] = s.Status
			}
			return states
		}
		wait.For(t, 20*time.Second, "the graph of a run that waits for its callback", func() bool {
			g := graphOf()
			return g["ask"] == "waiting" && g["notify"] == ""
		})
		wait.For(t, 20*time.Second, "the callback is taken", func() bool {
			a, err := ask("POST", url, `{"by": "desk"}`)
			return err == nil && a.status == 200
		})
		r.Await(t, 20*time.Second, "/notify", 1)
		d.awaitIdle(20 * time.Second)
		if g := graphOf(); g["ask"] != "succeeded" || g["pause"] != "succeeded" || g["notify"] != "succeeded" {
			t.Errorf("graph of the completed run: %v", g)
		}
		d.stop() // a copy stores its counts when its invocation ends
		// The curves end two minutes ago, and a scheduled worker counts the events of past minutes.
		// So all that happened is moved three minutes back.
		const past = 3 * time.Minute
		db.exec(fmt.Sprintf(`UPDATE minutes SET at = at - %d`, past.Milliseconds()))
		for i, id := range db.column(`SELECT id FROM events`) {
			older := core.FirstID(time.Now().Add(time.Duration(i)*time.Millisecond - past))
			db.exec(fmt.Sprintf(`UPDATE events SET id = '%s' WHERE id = '%s'`, older, id))
		}
		d.tick(d.worker)
		var series struct{ Sources, Consumers []curves }
		get("series?window=hour", &series)
		for name, want := range map[string][4]int{"app": {4, 0, 0, 0}, "orders": {0, 3, 1, 0}, "workflow/approval": {0, 1, 0, 0}} {
			all := slices.Concat(series.Sources, series.Consumers)
			i := slices.IndexFunc(all, func(c curves) bool { return c.Name == name })
			if i < 0 {
				t.Errorf("no curves of %s in %+v", name, series)
			} else if got := all[i].sums(); got != want {
				t.Errorf("%s: accepted, completed, failed, dead = %v, want %v", name, got, want)
			}
		}
	})
}
