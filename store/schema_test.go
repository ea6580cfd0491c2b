package store

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestStepNames: each schema step has a name of its own, under which "gateway migrate" lists
// it. The names of the first steps never change.
func TestStepNames(t *testing.T) {
	like := regexp.MustCompile(`^((create (table|index)|drop index) [a-z_]+|(add|drop) column [a-z_]+\.[a-z_]+)( \((except )?mysql\))?$`)
	seen := map[string]bool{}
	all := SchemaSteps()
	for i, s := range all {
		if s.Number != i+1 || !like.MatchString(s.Name) || seen[s.Name] {
			t.Errorf("step %d is called %q, want a name of its own such as \"create index jobs_due\"", s.Number, s.Name)
		}
		seen[s.Name] = true
	}
	for n, want := range map[int]string{1: "create table events", 2: "create index events_delivery", 4: "create index jobs_due", 25: "drop index jobs_due"} {
		if got := all[n-1].Name; got != want {
			t.Errorf("step %d is called %q, want %q", n, got, want)
		}
	}
}

// TestColumnRecipe: the form of a new column in CONTRIBUTING.md is the form of a schema step, and
// each dialect replaces all of its fragments.
func TestColumnRecipe(t *testing.T) {
	text, err := os.ReadFile("../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("one step at the end of `schemaSteps` in `store/schema.go`, in the form `([^`]+) name {int}`")
	found := recipe.FindStringSubmatch(strings.Join(strings.Fields(string(text)), " "))
	if found == nil {
		t.Fatalf("CONTRIBUTING.md lacks the recipe for a column, %s", recipe)
	}
	beginsSo := func(step string) bool { return strings.HasPrefix(step, found[1]+" ") }
	if !slices.ContainsFunc(schemaSteps, beginsSo) {
		t.Errorf("no step has the form %q of CONTRIBUTING.md", found[1])
	}
	for _, d := range []Dialect{SQLite, Postgres, MySQL} {
		if sql := d.sql(found[1] + " name {int}, {text}, {key}"); strings.Contains(sql, "{") {
			t.Errorf("%s does not replace all fragments: %s", d.Name, sql)
		}
	}
}

// A migratedByOther is a database in which another process makes each step first: a step fails, and is
// found made. The first few reads after it fail, as on a database under load.
type migratedByOther struct {
	made     int64 // number of steps
	failures int   // how many reads fail after a step
	left     int
}

func (m *migratedByOther) Close() error { return nil }

func (m *migratedByOther) Batch(_ context.Context, stmts ...Stmt) ([]Result, error) {
	if stmts[0].Name != "schema_read" {
		m.made, m.left = m.made+1, m.failures
		return nil, errors.New("duplicate column name")
	}
	if m.left > 0 {
		m.left--
		return nil, Unavailable(errors.New("deadline exceeded"))
	}
	var rows [][]any
	for n := range m.made {
		rows = append(rows, []any{n + 1})
	}
	return []Result{{Rows: rows}}, nil
}

// TestStepsOfAnotherProcess: a step that another process has made is no error. If the database cannot
// say so, Migrate reports that, and not the error of the step.
func TestStepsOfAnotherProcess(t *testing.T) {
	for _, failures := range []int{0, 1, 2} {
		s := New(&migratedByOther{failures: failures}, SQLite, core.SystemClock)
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("Migrate, where %d reads fail after each step = %v, want none", failures, err)
		}
	}
	s := New(&migratedByOther{failures: 100}, SQLite, core.SystemClock)
	if err := s.Migrate(t.Context()); !core.IsKind(err, core.Unavailable) || strings.Contains(err.Error(), "duplicate") {
		t.Errorf("Migrate, where all reads fail = %v, want that the database is unavailable", err)
	}
}
