package alert

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"
)

const failedRun core.ID = "01KAG3Y8ZR5E2G7H9K1M4N6Q8W"

// ended returns a failed run and the step at which it failed.
func ended(path string, attempts int, cause string) (core.Run, core.Step) {
	run := core.Run{
		ID: failedRun, Workflow: "fulfil-order", EventID: deadEvent, Status: core.RunFailed, Epoch: 2,
		Output: []byte("p4yload"), Error: "step " + path + ": " + cause, FinishedAt: diedAt,
	}
	step := core.Step{
		ID: deadJob, RunID: failedRun, Path: path, Type: "http", Status: core.StepFailed, Attempt: attempts, Error: cause,
		State: []byte("p4yload"), Carry: "p4yload",
	}
	return run, step
}

func event() core.Event {
	job, _ := died("", 1, "")
	return job.Event
}

// TestObituariesOfRuns compares the posted alerts with testdata/runs.txtar. The file has a
// section for each failure and format.
func TestObituariesOfRuns(t *testing.T) {
	b := newObituaries(anywhere)
	var payloads []txtar.File
	add := func(name string, run core.Run, step core.Step) {
		t.Helper()
		a := b.OfRun(run, step, event())
		if a == nil {
			t.Fatalf("%s: no obituary", name)
		}
		payloads = append(payloads, txtar.File{Name: name, Data: a.Event.Payload})
	}
	run, step := ended("charge", 4, "status: 503 Service Unavailable")
	add("step", run, step)
	run, step = ended("prepare/parcels/pack/17/pack-item#2", 1, "timeout: no answer within 5s")
	add("item", run, step)
	run, step = ended("route", 0, "no_choice: none of the choices holds, and there is no default")
	step.Type = "choice"
	add("step without a job", run, step)
	run, _ = ended("", 0, "")
	run.Error = "timeout: the workflow's timeout of 3600 s is over"
	add("no step", run, core.Step{})
	run, step = ended("charge", 2, "status: <!channel> & @everyone `x` *b* [l](http://e)\r\n\x1b[31m\u202ed\xff")
	add("hostile", run, step)
	compare(t, "testdata/runs.txtar", payloads)
}

func TestObituaryOfARunIsAnEvent(t *testing.T) {
	b := newObituaries(Place{Lane: "alert/a", On: []Kind{VerificationFailure}}, Place{Lane: "alert/b", On: []Kind{DLQ}})
	run, step := ended("charge", 4, "status: 503")
	got := b.OfRun(run, step, event())
	want := b.Of(died("handler/billing", 5, "status: 500"))
	if got.Event.Source != "_alerts" || got.Event.Type != "alert.dlq" || !got.Event.CreatedAt.Equal(want.Event.CreatedAt) {
		t.Errorf("event %+v, want one such as that of a job, %+v", got.Event, want.Event)
	}
	if len(got.Jobs) != 1 || got.Jobs[0].Lane != "alert/b" || got.Jobs[0].MaxAttempts != 5 || len(got.Runs) > 0 {
		t.Errorf("jobs %+v and runs %+v, want one job for the place that wants to be told", got.Jobs, got.Runs)
	}
	var all map[string]any
	if err := json.Unmarshal(got.Event.Payload, &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"fulfil-order", string(deadEvent), "2026-11-20T06:28:11.123"}, []any{all["workflow"], all["event_id"], all["created_at"]}); diff != "" {
		t.Errorf("payload %s (-want +got):\n%s", got.Event.Payload, diff)
	}
}

func TestNoObituaryOfARun(t *testing.T) {
	b := newObituaries(anywhere)
	run, step := ended("charge", 4, "status: 503")
	for _, s := range core.RunStatuses() {
		run.Status = s
		if a := b.OfRun(run, step, event()); (a != nil) != (s == core.RunFailed) {
			t.Errorf("OfRun of one that is %s = %+v", s, a)
		}
	}
	alert := event()
	alert.Source = core.AlertSource
	if a := b.OfRun(run, step, alert); a != nil {
		t.Errorf("OfRun of an alert's run = %+v, want none", a)
	}
	var none *Obituaries
	if a := none.OfRun(run, step, event()); a != nil {
		t.Errorf("nil.OfRun = %+v, want none", a)
	}
}

// A long path and a long error leave room for the advice.
func TestLongPaths(t *testing.T) {
	path := strings.Repeat(strings.Repeat("_", 63)+"/", 11)
	run, step := ended(path, 4, "data: "+strings.Repeat("&", 2000))
	run.Workflow = strings.Repeat("w", 63)
	payload := newObituaries(anywhere).OfRun(run, step, event()).Event.Payload
	for _, format := range []string{Slack, Discord} {
		body, err := Body(format, payload)
		if err != nil {
			t.Fatal(err)
		}
		checkBody(t, format, body)
		if help := "gateway workflow-runs redrive " + string(failedRun) + " --from failed"; !strings.Contains(string(body), help) {
			t.Errorf("%s does not say %q: %s", format, help, body)
		}
	}
}
