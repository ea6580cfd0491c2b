package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

func TestFactsOfWorkflowsAsLines(t *testing.T) {
	at := time.Date(2026, 11, 20, 7, 28, 11, 0, time.UTC)
	run := core.Run{ID: "R1", Workflow: "fulfil-order", EventID: "E1", Epoch: 1, Output: []byte("s3cret"), CreatedAt: at}
	ran := func(s core.RunStatus, epoch int, err string) core.Fact {
		r := run
		r.Status, r.Epoch, r.Error = s, epoch, err
		if s.Finished() {
			r.FinishedAt = at.Add(90 * time.Second)
		}
		return core.RunMoved{Run: r}
	}
	call := core.Attempt{Number: 2, StatusCode: 503, Error: "status: 503", Response: "s3cret", Duration: 12 * time.Millisecond}
	moved := func(s core.StepStatus, err string, a core.Attempt, due time.Time) core.Fact {
		step := core.Step{
			ID: "J1", RunID: "R1", Path: "prepare/pack#2", Status: s, Error: err, Attempt: 7,
			State: []byte("s3cret"), Output: []byte("s3cret"), Carry: "s3cret",
		}
		return core.StepMoved{Run: run, Step: step, Attempt: a, DueAt: due}
	}
	const of = `"target":"workflow","event":"E1","workflow":"fulfil-order","run":"R1"`
	const ofStep = of + `,"step":"prepare/pack#2"`
	none := time.Time{}
	tests := []struct {
		fact core.Fact
		want string // the line, as JSON without its time
	}{
		{ran(core.RunPending, 1, ""), `{"level":"INFO","msg":"workflow run created",` + of + `}`},
		{ran(core.RunPending, 2, ""), `{"level":"INFO","msg":"workflow run redriven",` + of + `,"epoch":2}`},
		{ran(core.RunRunning, 2, ""), `{"level":"INFO","msg":"workflow run started",` + of + `}`},
		{ran(core.RunCompleted, 1, ""), `{"level":"INFO","msg":"workflow run completed",` + of + `,"duration_ms":90000}`},
		{ran(core.RunFailed, 1, "step pack: status: 503"), `{"level":"ERROR","msg":"workflow run failed",` + of + `,"duration_ms":90000,"error":"step pack: status: 503"}`},
		{ran(core.RunCanceled, 1, "canceled"), `{"level":"INFO","msg":"workflow run canceled",` + of + `,"duration_ms":90000}`},

		{moved(core.StepReady, "", core.Attempt{}, none), `{"level":"DEBUG","msg":"step is ready",` + ofStep + `}`},
		{moved(core.StepReady, "", core.Attempt{}, at), `{"level":"DEBUG","msg":"step is ready",` + ofStep + `,"due":"2026-11-20T07:28:11.000"}`},
		{moved(core.StepReady, "status: 503", core.Attempt{}, none), `{"level":"DEBUG","msg":"step is ready",` + ofStep + `}`},
		{moved(core.StepReady, "status: 503", call, at), `{"level":"WARN","msg":"step failed, will retry",` + ofStep +
			`,"attempt":2,"status":503,"duration_ms":12,"error":"status: 503","due":"2026-11-20T07:28:11.000"}`},
		{moved(core.StepRunning, "", core.Attempt{}, none), `{"level":"DEBUG","msg":"step runs",` + ofStep + `}`},
		{moved(core.StepWaiting, "", core.Attempt{}, at), `{"level":"INFO","msg":"step waits",` + ofStep + `,"due":"2026-11-20T07:28:11.000"}`},
		{moved(core.StepSucceeded, "status: 503", core.Attempt{Number: 3, StatusCode: 200}, none), `{"level":"INFO","msg":"step succeeded",` + ofStep +
			`,"attempt":3,"status":200,"duration_ms":0}`},
		{moved(core.StepSucceeded, "", core.Attempt{}, none), `{"level":"INFO","msg":"step succeeded",` + ofStep + `}`},
		{moved(core.StepFailed, "timeout: no callback", core.Attempt{}, none), `{"level":"WARN","msg":"step failed",` + ofStep + `,"error":"timeout: no callback"}`},
		{moved(core.StepCanceled, "status: 503", core.Attempt{}, none), `{"level":"INFO","msg":"step canceled",` + ofStep + `}`},
		{moved(core.StepSkipped, "", core.Attempt{}, none), `{"level":"WARN","msg":"step skipped: the time of its run is over",` + ofStep + `}`},

		{core.CalledIn{Result: core.CallbackReceived, Run: run, Path: "approve"}, `{"level":"INFO","msg":"callback received",` + of + `,"step":"approve"}`},
		{core.CalledIn{Result: core.CallbackRepeated, Run: core.Run{ID: run.ID}}, `{"level":"DEBUG","msg":"callback repeated; it was received before","target":"workflow","run":"` + string(run.ID) + `"}`},
		{core.CalledIn{Result: core.CallbackUnknown}, `{"level":"WARN","msg":"callback with a token that is not, or no longer, good","target":"workflow"}`},
	}
	for _, tt := range tests {
		if got := lineOf(t, tt.fact); got != tt.want {
			t.Errorf("%T\n got %s\nwant %s", tt.fact, got, tt.want)
		}
	}
}

// TestStaleJobsAsLines: a job whose run has moved on is settled like the jobs of other lanes.
func TestStaleJobsAsLines(t *testing.T) {
	job := core.Job{ID: "J1", EventID: "E1", Lane: core.WorkflowLane("fulfil-order"), Attempt: 2, MaxAttempts: core.Unlimited}
	closed := core.Outcome{Status: core.Completed, Attempt: core.Attempt{Number: 2, Error: "the run has moved on"}}
	tests := []struct {
		fact core.Fact
		want string
	}{
		{core.Settled{Job: job, Outcome: closed}, `{"level":"INFO","msg":"job closed","target":"workflow","event":"E1","job":"J1",` +
			`"workflow":"fulfil-order","attempt":2,"status":0,"duration_ms":0,"error":"the run has moved on"}`},
		{core.Superseded{Job: job}, `{"level":"WARN","msg":"outcome came after its lease; another attempt stands","target":"workflow","job":"J1",` +
			`"workflow":"fulfil-order","attempt":2}`},
		{core.Superseded{Job: job, Why: "the run was redriven from its start"}, `{"level":"WARN","msg":"outcome of a step came too late and changes nothing",` +
			`"target":"workflow","job":"J1","workflow":"fulfil-order","attempt":2,"why":"the run was redriven from its start"}`},
	}
	for _, tt := range tests {
		if got := lineOf(t, tt.fact); got != tt.want {
			t.Errorf("%T\n got %s\nwant %s", tt.fact, got, tt.want)
		}
	}
}

// lineOf returns the log line of a fact, as JSON without its time.
func lineOf(t *testing.T, f core.Fact) string {
	t.Helper()
	var out bytes.Buffer
	log, err := NewLogger(LogOptions{Out: &out, Format: "json", Filter: "debug"})
	if err != nil {
		t.Fatal(err)
	}
	Log(log)(f)
	if !json.Valid(out.Bytes()) {
		t.Errorf("%T makes %q, want one line of JSON", f, out.String())
	}
	_, rest, _ := strings.Cut(out.String(), ",")
	return "{" + strings.TrimSpace(rest)
}
