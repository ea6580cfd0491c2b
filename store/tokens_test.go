package store

import (
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTokens: a statement is split as this expression splits it, the leftmost alternative first.
func TestTokens(t *testing.T) {
	token := regexp.MustCompile("\"[^\"]*\"|`[^`]*`|\\[[^\\]]*\\]|'(?:[^']|'')*'|[A-Za-z0-9_.]+|[<>!]=|<>|::|[^\\s]")
	same := func(t rapid.TB, sql string) {
		t.Helper()
		if got, want := tokens(sql), token.FindAllString(sql, -1); !slices.Equal(got, want) {
			t.Fatalf("tokens of %q = %q, want %q", sql, got, want)
		}
	}
	for _, d := range []Dialect{SQLite, Postgres, MySQL, D1} {
		for _, step := range schemaSteps {
			same(t, d.sql(step))
		}
	}
	parts := rapid.SampledFrom([]string{"'", "''", `"`, "`", "[", "]", "a", "B2_", ".5", " ", "\t\n", "<", ">", "=", "!", ":", "::", "(", ",", "é", "\xff", "x y"})
	rapid.Check(t, func(t *rapid.T) {
		sql := ""
		for _, part := range rapid.SliceOfN(parts, 0, 12).Draw(t, "parts") {
			sql += part
		}
		same(t, sql)
	})
}
