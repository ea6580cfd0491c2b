package store

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestColumnPlaces: the constants of column places agree with the lists of columns.
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
			t.Errorf("the constant %s is %d, want %d: a list of columns has changed", tt.name, tt.got, tt.want)
		}
	}
}

// TestRowPlaces: the constants of value places agree with the row sources of the statements.
func TestRowPlaces(t *testing.T) {
	q := newStatements(Postgres)
	source := regexp.MustCompile(`AS r\(([^)]*)\)`)
	for _, tt := range []struct {
		statement
		column string
		place  int
	}{
		{q.insertHistory, "run_", historyRunAt},
		{q.succeed, "lane_", succeededLane},
		{q.closeGate, "lane_", closedLane},
		{q.unhold, "lane_", unheldLane},
		{q.endProbe, "lane_", endedLane},
		{q.insertJobIf, "lane_", jobRowLane},
		{q.insertJobIf, "job_key_", jobRowKey},
		{q.insertLaterIf, "lane_", jobRowLane},
		{q.insertLaterIf, "job_key_", jobRowKey},
		{q.insertEvent, "source_", eventRowSource},
		{q.insertEvent, "delivery_id_", eventRowDeliveryID},
		{q.insertDefinition, "hash_", keyColumn},
		{q.lockRuns, "run_", keyColumn},
		{q.lockEvents, "id_", keyColumn},
	} {
		if tt.sql == "" {
			continue // not sent on this database
		}
		columns := source.FindStringSubmatch(tt.sql)
		if columns == nil || slices.Index(strings.Split(columns[1], ", "), tt.column) != tt.place {
			t.Errorf("%s has the columns %v; want %s at %d", tt.name, columns, tt.column, tt.place)
		}
	}
}
