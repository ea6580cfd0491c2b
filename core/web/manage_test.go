package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each request of an operator calls the service with the parameters of the request.
func TestParametersReachTheManagers(t *testing.T) {
	one, after := string(eventNumber(1)), string(eventNumber(9))
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "events", "", `list "" ""   "" 50`},
		{"GET", "events?source=shop&event_type=a.b&since=2026-11-20&until=2026-11-20T08:00:00.0009%2B01:00&limit=1&after=" + strings.ToLower(after), "",
			`list "shop" "a.b" 2026-11-20T00:00:00.000 2026-11-20T07:00:00.000 "` + after + `" 1`},
		{"GET", "events/" + strings.ToLower(one), "", "inspect " + one},
		{"GET", "events/" + one + "/jobs", "", "jobs " + one},
		{"POST", "events/" + one + "/replay", "", "replay " + one},
		{"POST", "events/" + one + "/replay", `{"to": ["a", "queue/b", "workflow/c"]}`, "replay " + one + " to [handler/a queue/b workflow/c]"},
		{"POST", "events/" + one + "/replay", `{"to": ["alert/1"]}`, ""},
		{"POST", "events/" + one + "/cancel", "", "cancel " + one},
		{"POST", "events/" + one + "/cancel", `{"handler": "a"}`, ""},
		{"POST", "events/" + one + "/cancel?all=true", "", ""},
		{"POST", "events/replay", "", `replay "" ""   "" 0 "" to "" false`},
		{"POST", "events/replay", `{"limit": 1, "dry_run": true, "until": "2026-11-20", "source": "\u0073"}`, `replay "s" ""  2026-11-20T00:00:00.000 "" 1 "" to "" true`},
		{"POST", "events/replay", `{"first": "` + strings.ToLower(one) + `", "last": "` + after + `", "event_type": "a"}`, `replay "" "a"   "" 0 "` + one + `" to "` + after + `" false`},
		{"POST", "events/replay", `{"delivery_id": "evt_7"}`, `replay "" ""   "" 0 delivery "evt_7" "" to "" false`},
		{"POST", "events/replay", `{"delivery_id": 7}`, ""},
		{"POST", "events/replay", `{"first": "", "last": ""}`, ""},
		{"POST", "events/replay", `{"last": 7}`, ""},
		{"POST", "events/replay", `{"dry_run": null}`, ""},
		{"POST", "events/replay", `{"limit": null}`, ""},
		{"POST", "events/replay", `{"limit": "5"}`, ""},
		{"POST", "events/replay", `{"source": null}`, ""},
		{"GET", "export/events", "", `export "" ""   "" 0 0`},
		{"GET", "export/events?limit=20000000&source=idle", "", `export "idle" ""   "" 0 20000000`},
		{"GET", "export/events?delivery_id=evt_7", "", `export "" ""   "" 0 delivery "evt_7" 0`},
		{"GET", "export/events?type=a", "", ""},
		{"GET", "export/events?after=" + after, "", ""},
		{"POST", "events/replay?dry_run=true&source=shop", "", ""},
		{"POST", "events/replay?limit=1", `{"limit": 1}`, ""},
		{"POST", "events/" + one + "/replay?dry_run=true", "", ""},
		{"POST", "jobs/retry?handler=billing", "", ""},
		{"GET", "jobs", "", `list jobs "" "" "" 50`},
		{"GET", "jobs?status=dead&handler=billing&limit=7&after=" + after, "", `list jobs "dead" "handler/billing" "` + after + `" 7`},
		{"GET", "jobs?handler=queue/work", "", `list jobs "" "queue/work" "" 50`},
		{"GET", "jobs/errors", "", `errors ""  `},
		{"GET", "jobs/errors?handler=queue/work&since=2026-11-20T12:00:00&until=2026-11-20T13:00:00.5", "", `errors "queue/work" 2026-11-20T12:00:00.000 2026-11-20T13:00:00.500`},
		{"GET", "jobs/errors?status=dead", "", ""},
		{"POST", "jobs/" + string(jobNumber(1)) + "/retry", "{}", "job " + string(jobNumber(1)) + "; retry " + string(jobNumber(1))},
		{"POST", "jobs/retry", "", `retry all ""`},
		{"POST", "jobs/retry", `{"handler": "queue/work"}`, `retry all "queue/work"`},
		{"GET", "lines?consumer=billing", "", `list lines handler/billing "" 50`},
		{"GET", "lines?consumer=queue/work&after=%2F%20%23&limit=2", "", `list lines queue/work "/ #" 2`},
		{"GET", "lines", "", ""},
		{"GET", "lines?consumer=workflow/fulfil-order", "", ""},
		{"GET", "lines?consumer=billing&after=", "", ""},
		{"GET", "lines?consumer=billing&limit=0", "", ""},
		{"GET", "lines/inspect?consumer=billing&key=%2F%20%23", "", `inspect the line handler/billing "/ #"`},
		{"GET", "lines/inspect?consumer=billing", "", ""},
		{"GET", "lines/inspect?consumer=billing&key=%00", "", ""},
		{"GET", "lines/inspect?key=7", "", ""},
		{"POST", "jobs/" + string(jobNumber(1)) + "/skip", "{}", "job " + string(jobNumber(1)) + "; skip " + string(jobNumber(1))},
		{"POST", "jobs/" + string(jobNumber(1)) + "/skip", `{"force": true}`, ""},
		{"GET", "holds", "", "list holds"},
		{"POST", "holds", `{"target": "billing"}`, `hold handler/billing  ""`},
		{"POST", "holds", `{"target": "queue/work", "until": "2026-11-20T08:00:00+01:00", "reason": "r"}`, `hold queue/work 2026-11-20T07:00:00.000 "r"`},
		{"POST", "holds", `{"target": "workflow/fulfil-order", "reason": ""}`, `hold workflow/fulfil-order  ""`},
		{"POST", "holds", `{"target": "alert/1"}`, ""},
		{"POST", "holds", `{"target": "source/shop"}`, `hold source/shop  ""`},
		{"POST", "holds", `{"target": "source/"}`, ""},
		{"POST", "holds", `{"target": "source/shop/a"}`, ""},
		{"POST", "holds", `{"target": ["billing"]}`, ""},
		{"POST", "holds", `{"target": "billing", "until": 7}`, ""},
		{"POST", "holds", `{"target": "billing", "until": "2h"}`, ""},
		{"POST", "holds", `{"target": "billing", "reason": null}`, ""},
		{"POST", "holds", `{}`, ""},
		{"POST", "holds", "", ""},
		{"POST", "holds?target=billing", "", ""},
		{"DELETE", "holds?target=queue/work", "", "release queue/work"},
		{"DELETE", "holds?target=queue%2Fwork", "", "release queue/work"},
		{"DELETE", "holds?target=source/shop", "", "release source/shop"},
		{"DELETE", "holds", "", ""},
		{"DELETE", "holds?target=a&target=b", "", ""},
		{"DELETE", "holds?target=billing", `{"target": "billing"}`, ""},
		{"GET", "stats", "", "stats"},
		{"GET", "tail", "", `look "" `},
		{"GET", "tail?finished=2026-11-20&job=" + strings.ToLower(after) + "&follow=" + one + "," + after, "",
			`look "" 2026-11-20T00:00:00.000 "` + after + `" ["` + one + `" "` + after + `"]`},
		{"GET", "tail?job=" + after, "", ""},
		{"GET", "tail?follow=", "", ""},
		{"GET", "tail?follow=" + one + ",", "", ""},
		{"GET", "tail?follow=" + one + strings.Repeat(","+one, 99), "", `look ""  "" ["` + one + strings.Repeat(`" "`+one, 99) + `"]`},
		{"GET", "tail?follow=" + one + strings.Repeat(","+one, 100), "", ""},
		{"GET", "tail?event=" + strings.ToLower(one) + "&finished=2026-11-20T12:00:00.007", "", `look "` + one + `" 2026-11-20T12:00:00.007`},
	} {
		w := newWorld(t)
		got := ask(w.handler(), tt.method, "/api/"+tt.path, tt.body)
		if calls := strings.Join(w.archive.calls, "; "); calls != tt.want {
			t.Errorf("%s %s %s: reported %q, want %q", tt.method, tt.path, tt.body, calls, tt.want)
		}
		if (got.Code == 200) != (tt.want != "") {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, got.Code, got.Body)
		}
	}
}

// A parameter or field that a route does not know is refused, and nothing is done.
func TestUnknownParameters(t *testing.T) {
	w := newWorld(t)
	h := w.handler()
	names := strings.NewReplacer("{name}", "work", "events/{id}", "events/"+string(eventNumber(1)),
		"jobs/{id}", "jobs/"+string(jobNumber(1)), "workflow-runs/{id}", "workflow-runs/"+string(runNumber(1)))
	routes := 0
	for path, item := range described(t).Paths.Map() {
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		for method := range item.Operations() {
			routes++
			got := ask(h, method, names.Replace(path)+"?typo=1", "")
			if want := `"unknown parameter \"typo\"; `; got.Code != 400 || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s %s?typo=1: %d %s, want 400 and %s", method, path, got.Code, got.Body, want)
			}
		}
	}
	if routes < 20 || len(w.archive.calls) > 0 {
		t.Errorf("of %d routes, some reported %q", routes, w.archive.calls)
	}
}

// An export that fails after its first lines is cut off, and the error is logged. An export that
// fails before them gets an ordinary error reply.
func TestExportThatBreaksOff(t *testing.T) {
	w := newWorld(t, "export breaks")
	w.archive.events = 1000
	c := dial(t, w.serve())
	if _, err := io.WriteString(c, "GET /api/export/events?limit=5000 HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || reply.StatusCode != 200 {
		t.Fatalf("reply %v, %v", reply, err)
	}
	got, err := io.ReadAll(reply.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) == 0 {
		t.Errorf("read %d bytes, %v; want some, and that there should be more", len(got), err)
	}
	if log := w.log.String(); !strings.Contains(log, `syntax error`) || !strings.Contains(log, "/api/export/events") {
		t.Errorf("logged %q", log)
	}
}

func TestExportThatBreaksAtOnce(t *testing.T) {
	w := newWorld(t, "export breaks") // it breaks before 64 KiB of lines, so no head is sent
	got := ask(w.handler(), "GET", "/api/export/events", "")
	if got.Code != 500 || got.Body.String() != `{"error":"Internal error"}` {
		t.Errorf("%d %s, want 500", got.Code, got.Body)
	}
}

// A client that disconnects ends the export, and nothing is logged.
func TestExportWhoseClientDisconnects(t *testing.T) {
	w := newWorld(t)
	w.archive.events = 100_000
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	writer := &brokenWriter{httptest.NewRecorder(), 300_000}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v, want http.ErrAbortHandler", v)
		}
		if log := w.log.String(); log != "" {
			t.Errorf("that a client hung up was logged: %s", log)
		}
	}()
	hangUp()
	w.handler().ServeHTTP(writer, httptest.NewRequestWithContext(ctx, "GET", "/api/export/events?limit=100000", nil))
}

// meter counts the written bytes, and keeps the size of the largest write.
type meter struct {
	http.ResponseWriter
	bytes, largest, writes int
}

func (m *meter) Write(p []byte) (int, error) {
	m.bytes += len(p)
	m.writes++
	m.largest = max(m.largest, len(p))
	return len(p), nil
}

// However many events there are, they are sent as they come.
func TestExportIsSentInPieces(t *testing.T) {
	w := newWorld(t)
	w.archive.events = 2000
	m := &meter{ResponseWriter: httptest.NewRecorder()}
	w.handler().ServeHTTP(m, httptest.NewRequest("GET", "/api/export/events?limit=2000", nil))
	if m.bytes < 1<<20 || m.largest > 80<<10 || m.writes < m.bytes/(80<<10) {
		t.Errorf("%d bytes in %d writes, the largest %d; want pieces of 64 KiB or little more", m.bytes, m.writes, m.largest)
	}
}

// slow is a writer that remembers until when a client may read.
type slow struct {
	http.ResponseWriter
	deadlines []time.Time
}

func (s *slow) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

// Two kinds of requests may take longer than the server's timeout: an export while its client
// reads, and a change of many jobs.
func TestDeadlines(t *testing.T) {
	w := newWorld(t)
	w.archive.events = 500
	s := &slow{ResponseWriter: httptest.NewRecorder()}
	began := time.Now()
	w.handler().ServeHTTP(s, httptest.NewRequest("GET", "/api/export/events", nil))
	if len(s.deadlines) < 2 || s.deadlines[0].Before(began.Add(10*time.Second)) || !s.deadlines[len(s.deadlines)-1].After(s.deadlines[0]) {
		t.Errorf("deadlines %v of an export begun at %v; want them to move", s.deadlines, began)
	}
	for _, path := range []string{"events/replay", "jobs/retry", "queues/work/retry", "queues/work/drain"} {
		s.deadlines = nil
		w.handler().ServeHTTP(s, httptest.NewRequest("POST", "/api/"+path, nil))
		if diff := cmp.Diff([]time.Time{{}}, s.deadlines); diff != "" {
			t.Errorf("deadlines of %s (-want +got):\n%s", path, diff)
		}
	}
}

// A caller without the token gets the same reply for ids that exist and for others.
func TestManagersNeedTheToken(t *testing.T) {
	w := newWorld(t, "auth_token s3cret")
	h := w.handler()
	for _, route := range []string{
		"GET /api/events", "GET /api/events/E", "GET /api/events/E/jobs", "POST /api/events/E/replay", "POST /api/events/E/cancel", "POST /api/events/replay", "GET /api/export/events",
		"GET /api/jobs", "GET /api/jobs/errors", "GET /api/jobs/J", "GET /api/jobs/J/attempts", "POST /api/jobs/J/retry", "POST /api/jobs/retry",
		"GET /api/stats", "GET /api/config", "GET /api/tail", "GET /api/topology", "GET /openapi.json",
	} {
		method, path, _ := strings.Cut(route, " ")
		if got := ask(h, method, path, "{"); got.Code != 401 || got.Body.String() != "Invalid token" {
			t.Errorf("%s: %d %s, want 401", route, got.Code, got.Body)
		}
	}
	if len(w.archive.calls) > 0 {
		t.Errorf("reported %q", w.archive.calls)
	}
}
