package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/web"
)

// Each request of an operator calls the service with the parameters of the request.
func TestParametersReachTheRuns(t *testing.T) {
	failed := string(runNumber(4))
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "", "", `list "" "" "" "" 50`},
		{"GET", "?status=running&workflow=a&event_id=" + strings.ToLower(someID) + "&after=" + failed + "&limit=1", "",
			fmt.Sprintf(`list "running" "a" "%s" "%s" 1`, someID, failed)},
		{"GET", "?status=done", "", ""},
		{"GET", "/" + strings.ToLower(failed), "", "inspect " + failed + ` "" 5000`},
		{"GET", "/" + failed + "?limit=1&after=s2-" + strings.ToLower(someID), "", "inspect " + failed + ` "s2-` + someID + `" 1`},
		{"GET", "/" + failed + "?after=h17", "", "inspect " + failed + ` "h17" 5000`},
		{"GET", "/" + failed + "?after=17", "", ""},
		{"GET", "/" + failed + "?after=s0-" + someID, "", ""},
		{"GET", "/" + failed + "?limit=0", "", ""},
		{"GET", "/" + failed + "?limit=5001", "", ""},
		{"GET", "/" + failed + "?steps=1", "", ""},
		{"POST", "/" + failed + "/redrive", "", "redrive " + failed + " start stored"},
		{"POST", "/" + failed + "/redrive", "{}", "redrive " + failed + " start stored"},
		{"POST", "/" + failed + "/redrive", `{"from": "start"}`, "redrive " + failed + " start stored"},
		{"POST", "/" + failed + "/redrive", `{"from": "failed"}`, "redrive " + failed + " failed stored"},
		{"POST", "/" + failed + "/redrive", `{"from": "failed", "definition": "current"}`, "redrive " + failed + " failed current"},
		{"POST", "/" + failed + "/redrive", `{"definition": "newest"}`, ""},
		{"POST", "/" + failed + "/redrive", `{"from": ""}`, ""},
		{"POST", "/" + failed + "/redrive", `{"from": "Failed"}`, ""},
		{"POST", "/" + failed + "/redrive", `["failed"]`, ""},
		{"POST", "/" + failed + "/cancel", "", "cancel 4"},
		{"POST", "/" + failed + "/cancel", `{"from": "failed"}`, ""},
		{"POST", "/" + failed, "", ""},
	} {
		w := newWorld(t)
		got := ask(w.handler(), tt.method, "/api/workflow-runs"+tt.path, tt.body)
		if calls := strings.Join(w.clerk.calls, "; "); calls != tt.want {
			t.Errorf("%s %s %s: reported %q, want %q", tt.method, tt.path, tt.body, calls, tt.want)
		}
		if (got.Code == 200) != (tt.want != "") || !json.Valid(got.Body.Bytes()) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, got.Code, got.Body)
		}
	}
}

// A caller without the token gets the same reply for runs that exist and for others.
func TestRunsNeedTheToken(t *testing.T) {
	w := newWorld(t, "auth_token s3cret")
	h := w.handler()
	for _, path := range []string{"", "/" + string(runNumber(4)), "/" + someID} {
		for _, method := range []string{"GET", "POST /redrive", "POST /cancel"} {
			method, end, _ := strings.Cut(method, " ")
			if path == "" && method == "POST" {
				continue
			}
			if got := ask(h, method, "/api/workflow-runs"+path+end, "{"); got.Code != 401 || got.Body.String() != "Invalid token" {
				t.Errorf("%s %s%s: %d %s, want 401", method, path, end, got.Code, got.Body)
			}
		}
	}
	if len(w.clerk.calls) > 0 {
		t.Errorf("reported %q", w.clerk.calls)
	}
	r := httptest.NewRequest("GET", "/api/workflow-runs", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	got := httptest.NewRecorder()
	h.ServeHTTP(got, r)
	if got.Code != 200 {
		t.Errorf("with the token: %d, want 200", got.Code)
	}
}

// The largest page of a run is sent completely. A document that is not JSON, which should never
// occur, does not spoil the rest.
func TestARunOfManySteps(t *testing.T) {
	large := manage.Inspected{Run: core.Run{Output: []byte("\xff")}}
	for i := range 1000 {
		state := fmt.Appendf(nil, `{"n": %d, "pad": "%s"}`, i, strings.Repeat("x", 1000))
		large.Steps = append(large.Steps, core.Step{Name: "pack", State: state, Output: []byte(`{"n":`)})
	}
	for i := range 10_000 {
		large.History = append(large.History, core.Entry{Seq: i + 1, Type: core.EntrySucceeded, Data: "{"})
	}
	h := web.Handler(web.Settings{MaxBodySize: 9, MaxInbound: 1}, web.Runs(web.RunsOptions{Manager: only{run: large}}))
	got := ask(h, "GET", "/api/workflow-runs/"+someID, "")
	var body struct {
		Output string
		Steps  []struct {
			Input  struct{ N int }
			Output string
		}
		History []struct {
			Seq  int
			Data string
		}
	}
	if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
		t.Fatalf("the reply is no JSON: %v", err)
	}
	if n, m := len(body.Steps), len(body.History); n != 1000 || m != 10_000 || body.Output != "\ufffd" {
		t.Fatalf("%d steps, %d entries, output %q; want 1000, 10000 and a replacement character", n, m, body.Output)
	}
	if s, e := body.Steps[999], body.History[9999]; s.Input.N != 999 || s.Output != `{"n":` || e.Seq != 10_000 || e.Data != "{" {
		t.Errorf("the last step is %+v, the last entry %+v", s, e)
	}
	if length := got.Header().Get("Content-Length"); length != fmt.Sprint(got.Body.Len()) {
		t.Errorf("Content-Length %s, want %d", length, got.Body.Len())
	}
}

// only is a manager that knows one run under every id.
type only struct {
	web.RunManager
	run manage.Inspected
}

func (o only) Inspect(context.Context, core.ID, manage.Place, int) (manage.Inspected, error) {
	return o.run, nil
}
