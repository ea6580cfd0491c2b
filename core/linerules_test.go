package core_test

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

// An outcome passes the slot of its job on if the job has ended, or gives its slot to others
// while it waits for its retry.
func TestLineRules(t *testing.T) {
	for _, tt := range []struct {
		name          string
		rules         core.LineRules
		status        core.Status
		stops, passes bool
	}{
		{"completed", core.LineRules{Limit: 1}, core.Completed, false, true},
		{"a retry keeps its slot", core.LineRules{Limit: 1}, core.Retryable, false, false},
		{"a retry gives its slot away", core.LineRules{Limit: 2}, core.Retryable, false, true},
		{"dead, and the line goes on", core.LineRules{Limit: 1}, core.Dead, false, true},
		{"dead, and the line stops", core.LineRules{Limit: 1, StopOnDead: true}, core.Dead, true, false},
		{"completed in a line that would stop", core.LineRules{Limit: 1, StopOnDead: true}, core.Completed, false, true},
		{"a retry in a lane without lines", core.LineRules{}, core.Retryable, false, true},
		{"dead in a lane without lines", core.LineRules{StopOnDead: true}, core.Dead, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.rules.Apply(core.Job{Line: "a"}, core.Outcome{Status: tt.status})
			if want := (core.Line{Key: "a", Limit: tt.rules.Limit}); o.Line != want || o.StopsLine != tt.stops || o.PassesSlot() != tt.passes {
				t.Errorf("line %+v, stops it %v, passes its slot on %v; want %+v, %v, %v", o.Line, o.StopsLine, o.PassesSlot(), want, tt.stops, tt.passes)
			}
			none := tt.rules.Apply(core.Job{}, core.Outcome{Status: tt.status})
			if none.Line != (core.Line{}) || none.StopsLine || none.PassesSlot() {
				t.Errorf("a job without a line: line %+v, stops it %v, passes its slot on %v", none.Line, none.StopsLine, none.PassesSlot())
			}
		})
	}
}
