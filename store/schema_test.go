package store

import (
	"regexp"
	"testing"
)

// TestStepNames: each schema step has a name of its own, under which "gateway migrate" lists
// it. The names of the first steps never change.
func TestStepNames(t *testing.T) {
	like := regexp.MustCompile(`^((create (table|index)|drop index) [a-z_]+|add column [a-z_]+\.[a-z_]+)$`)
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
