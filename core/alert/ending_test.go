package alert

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestEndings compares the posted alerts about operations with testdata/endings.txtar.
func TestEndings(t *testing.T) {
	wants := Place{Lane: Lane("https://example.com/b"), On: []Kind{OperationFinished}}
	e := NewEndings(core.NewIDs(time.Now), 5, []Place{wants, anywhere})
	op := core.Operation{ID: "01KAG3Y8ZT9B3H7W2N5Q4R6S8V", Action: core.RetryAction, Acted: 1200, Skipped: 3, CreatedAt: diedAt.Add(-time.Hour)}
	var payloads []txtar.File
	for _, tt := range []struct {
		name  string
		state core.OperationState
		err   string
	}{
		{"finished", core.OperationFinished, ""},
		{"failed", core.OperationFailed, "match: at column 3: <!channel>"},
	} {
		op.State, op.Error = tt.state, tt.err
		a := e.Of(op, diedAt)
		if a == nil || len(a.Jobs) != 1 || a.Jobs[0].Lane != wants.Lane || a.Jobs[0].MaxAttempts != 5 {
			t.Fatalf("%s: %+v, want one job for the place that wants it", tt.name, a)
		}
		payloads = append(payloads, txtar.File{Name: tt.name, Data: a.Event.Payload})
	}
	compare(t, "testdata/endings.txtar", payloads)
	for _, state := range []core.OperationState{core.OperationRunning, core.OperationCanceled} {
		op.State = state
		if a := e.Of(op, diedAt); a != nil {
			t.Errorf("%s: %s, want no alert", state, a.Event.Payload)
		}
	}
	if NewEndings(core.NewIDs(time.Now), 5, []Place{anywhere}).Of(core.Operation{State: core.OperationFinished}, diedAt) != nil {
		t.Error("an alert, although no place wants it")
	}
}
