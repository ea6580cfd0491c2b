package store

import (
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestSuccess: the column has all of an attempt that completed its job. Other attempts are rows.
func TestSuccess(t *testing.T) {
	for _, reply := range []string{"", "ok", " a  b ", "\x00\u2028\n", strings.Repeat("a", maxSuccessReply)} {
		want := core.Attempt{Number: 3, StatusCode: 204, Response: reply, Duration: 7 * time.Millisecond, StartedAt: time.UnixMilli(1_700_000_000_123).UTC()}
		text, _ := successOf(&want, core.Completed).(string)
		if got, ok := decodeSuccess(text); !ok || got != want {
			t.Errorf("%q is read as %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for name, a := range map[string]core.Attempt{
		"a failed one": {Error: "status: 500"}, "one with an exchange": {Exchange: &core.Exchange{}}, "a long reply": {Response: strings.Repeat("a", maxSuccessReply+1)},
	} {
		if text := successOf(&a, core.Completed); text != nil {
			t.Errorf("%s is kept as %q", name, text)
		}
	}
	if text := successOf(&core.Attempt{}, core.Retryable); text != nil {
		t.Errorf("the attempt of a job that goes on is kept as %q", text)
	}
	for _, odd := range []string{"", "1", "1 200 3 4", "1 200 x 4 ok", "1 200 3 4x ok"} {
		if a, ok := decodeSuccess(odd); ok {
			t.Errorf("%q is read as %+v", odd, a)
		}
	}
}

// TestSuccessOfStep: of the attempts in a transition, the last success of a step that succeeds is kept
// in its job. All others are rows.
func TestSuccessOfStep(t *testing.T) {
	const step = core.ID("s")
	attempts := []core.AttemptRecord{
		{JobID: step, Lease: "a", Attempt: core.Attempt{Number: 1, StartedAt: time.UnixMilli(1)}},
		{JobID: step, Lease: "b", Attempt: core.Attempt{Number: 2, StartedAt: time.UnixMilli(2)}},
		{JobID: "other", Lease: "c", Attempt: core.Attempt{Number: 1, StartedAt: time.UnixMilli(3)}},
	}
	for _, tt := range []struct {
		name   string
		status core.StepStatus
		job    core.Status
		rows   string
		kept   any
	}{
		{"succeeds", core.StepSucceeded, core.Completed, "a c", "2 0 0 2 "},
		{"fails", core.StepFailed, core.Completed, "a b c", nil},
		{"waits for its callback", core.StepSucceeded, core.Scheduled, "a b c", nil},
	} {
		u := core.Transition{Attempts: attempts, Changed: []core.StepChange{{ID: step, Status: tt.status}}, JobsEnd: []core.JobChange{{ID: step, Status: tt.job}},
			Entries: []core.Entry{{}}}
		var leases []string
		m := motionsOf([]core.Transition{u})[0]
		m.stepAttempts(false)
		for _, row := range m.rows {
			leases = append(leases, row[1].(string))
		}
		if rows, kept := strings.Join(leases, " "), successIn(&u, u.JobsEnd[0]); rows != tt.rows || kept != tt.kept {
			t.Errorf("%s: rows of the leases %s, kept %v; want %s, %v", tt.name, rows, kept, tt.rows, tt.kept)
		}
	}
}
