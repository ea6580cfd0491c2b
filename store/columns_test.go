package store

import (
	"slices"
	"strings"
	"testing"
)

// TestColumnPlaces: the places of columns are those in the lists of columns.
func TestColumnPlaces(t *testing.T) {
	split := func(columns string) []string { return strings.Split(columns, ", ") }
	jobs, events, steps, runs := split(jobStored), split(eventStored), split(stepColumns), split(runRest)
	for _, tt := range []struct {
		name      string
		got, want int
	}{
		{"takenStep", takenStep, len(jobs) + len(events)},
		{"takenRun", takenRun, len(jobs) + len(events) + len(steps)},
		{"stepWidth", stepWidth, len(steps)},
		{"situationWidth", situationWidth, len(steps) + len(runs)},
		{"stateAt", stateAt, slices.Index(steps, "state")},
		{"outputAt", outputAt, slices.Index(steps, "output")},
		{"stateInAt", stateInAt, slices.Index(steps, "state_in")},
		{"outputInAt", outputInAt, slices.Index(steps, "output_in")},
		{"abovePath", abovePath, slices.Index(split(aboveColumns), "path")},
		{"eventRowSource", eventRowSource, slices.Index(events, "source")},
		{"eventRowDeliveryID", eventRowDeliveryID, slices.Index(events, "delivery_id")},
		{"straySince", straySince, len(split("lane, " + gateState))},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %d, want %d", tt.name, tt.got, tt.want)
		}
	}
}
