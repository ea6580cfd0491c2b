package storetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/store"
)

// TestEachGuardIsInAStatement requires that each guard of the table is in each statement that it
// names, in some dialect, and has a name of its own there. Otherwise a change of a statement would
// take its guards out of the table without a word.
func TestEachGuardIsInAStatement(t *testing.T) {
	sent := statementTexts(t)
	for _, s := range sent {
		names := guardsOf(s)
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) < len(names) {
			t.Errorf("two guards of a statement have the same name: %q", names)
		}
	}
	for _, g := range guards {
		names := g.in
		if names == nil {
			names = []string{""} // any statement
		}
		for _, name := range names {
			if !slices.ContainsFunc(sent, func(s store.Stmt) bool { return (name == "" || s.Name == name) && g.find.MatchString(s.SQL) }) {
				t.Errorf("guard %q is not in statement %q of any dialect: %s", g.name, name, g.find)
			}
		}
	}
}

// statementTexts returns the statements of all dialects, from the files that the store's own test
// compares with the statements that the store sends.
func statementTexts(t *testing.T) (all []store.Stmt) {
	files, err := filepath.Glob("../testdata/sql/*/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("files of statements = %d, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
			name, sql, _ := strings.Cut(part, "\n")
			all = append(all, store.Stmt{Name: name, SQL: plain(sql)})
		}
	}
	return all
}
