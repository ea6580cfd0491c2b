package store

import (
	"os"
	"path/filepath"
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
		name, file string
		got, want  int
	}{
		{"takenStep", "columns.go", takenStep, len(jobs) + len(events)},
		{"takenRun", "columns.go", takenRun, len(jobs) + len(events) + len(steps)},
		{"stepWidth", "runcolumns.go", stepWidth, len(steps)},
		{"situationWidth", "runcolumns.go", situationWidth, len(steps) + len(runs)},
		{"stateAt", "runcolumns.go", stateAt, slices.Index(steps, "state")},
		{"outputAt", "runcolumns.go", outputAt, slices.Index(steps, "output")},
		{"stateInAt", "runcolumns.go", stateInAt, slices.Index(steps, "state_in")},
		{"outputInAt", "runcolumns.go", outputInAt, slices.Index(steps, "output_in")},
		{"abovePath", "runcolumns.go", abovePath, slices.Index(split(aboveColumns), "path")},
		{"eventRowSource", "inbox.go", eventRowSource, slices.Index(events, "source")},
		{"eventRowDeliveryID", "inbox.go", eventRowDeliveryID, slices.Index(events, "delivery_id")},
		{"straySince", "gates.go", straySince, len(split("lane, " + gateState))},
	} {
		if tt.got != tt.want {
			t.Errorf("the constant %s in store/%s is %d, want %d: a list of columns has changed", tt.name, tt.file, tt.got, tt.want)
		}
	}
}

// TestInsertsAreInTheGuide: the guide to a new column names each statement that inserts jobs or
// events, so that a contributor finds all lists of values.
func TestInsertsAreInTheGuide(t *testing.T) {
	const path = "../.github/CONTRIBUTING.md"
	guide, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	insert, found := regexp.MustCompile(`(\w+): +(?:d\.(?:returningRows|counting)\()?(?:onPicks\(|(?:writing|uncounted)\("\w+", \w+\.insert(?:IfAbsent|Once)?\("(?:jobs|events)")`), 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range insert.FindAllStringSubmatch(string(text), -1) {
			if found++; !strings.Contains(string(guide), "`"+name[1]+"`") {
				t.Errorf("%s, A column: it does not name the statement %s of store/%s", path, name[1], source)
			}
		}
	}
	if found != 17 {
		t.Errorf("%d statements insert jobs or events, and %s counts 13 and 4: correct it, and this number", found, path)
	}
}

// TestRowPlaces: the constants of value places agree with the row sources of the statements.
func TestRowPlaces(t *testing.T) {
	q := newStatements(Postgres)
	column := regexp.MustCompile(`unnest\(\?::\w+\[\]\) AS (\w+)`)
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
		{q.insertKeylessIf, "lane_", jobRowLane},
		{q.insertKeylessIf, "job_key_", jobRowKey},
		{q.insertKeylessLaterIf, "lane_", jobRowLane},
		{q.insertKeylessLaterIf, "job_key_", jobRowKey},
		{q.insertEvent, "source_", eventRowSource},
		{q.insertEvent, "delivery_id_", eventRowDeliveryID},
		{q.insertDefinition, "hash_", keyColumn},
		{q.lockRuns, "run_", keyColumn},
		{q.lockEvents, "id_", keyColumn},
	} {
		if tt.sql == "" {
			continue // not sent on this database
		}
		at := slices.IndexFunc(column.FindAllStringSubmatch(tt.sql, -1), func(c []string) bool { return c[1] == tt.column })
		if at != tt.place {
			t.Errorf("%s has the column %s at %d, want %d", tt.name, tt.column, at, tt.place)
		}
	}
}
