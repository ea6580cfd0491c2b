package store

import (
	"os"
	"strings"
	"testing"
)

// TestSettingsAreInTheManual: the manual's sections on durability and on autovacuum name each setting of a
// database server of which doctor warns.
func TestSettingsAreInTheManual(t *testing.T) {
	const path = "../cmd/gateway/manual/databases.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for title, settings := range map[string]func(checkQuestions) []setting{
		"Durability": func(q checkQuestions) []setting { return q.settings },
		"Autovacuum": func(q checkQuestions) []setting { return q.growth },
	} {
		_, section, _ := strings.Cut(string(text), "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		checked := 0
		for dialect, questions := range questionsOf {
			for _, s := range settings(questions) {
				if checked++; !strings.Contains(section, "`"+s.name) {
					t.Errorf("%s: the section %s does not name `%s`, of which doctor warns on %s", path, title, s.name, dialect)
				}
			}
		}
		if checked == 0 {
			t.Errorf("store.Check asks for no setting of the section %s", title)
		}
	}
}
