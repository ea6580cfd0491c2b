package store

import "testing"

// TestEachDialectHasCheckQuestions: each dialect has queries for its clock and its tables.
// Without them, Check would send empty statements.
func TestEachDialectHasCheckQuestions(t *testing.T) {
	for _, d := range []Dialect{SQLite, D1, Postgres, MySQL} {
		if v := questionsOf[d.Name]; v.clock == "" || v.tables == "" {
			t.Errorf("%s has no question for its clock or its tables", d.Name)
		}
	}
}
