package store

import (
	"os"
	"strings"
	"testing"
)

// TestDurabilityIsInTheManual: the manual's section on durability names each setting of a database
// server of which doctor warns.
func TestDurabilityIsInTheManual(t *testing.T) {
	const path = "../cmd/gateway/manual/databases.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Durability\n")
	section, _, _ = strings.Cut(section, "\n## ")
	checked := 0
	for dialect, questions := range questionsOf {
		for _, s := range questions.settings {
			if checked++; !strings.Contains(section, "`"+s.name) {
				t.Errorf("%s: the section Durability does not name `%s`, of which doctor warns on %s", path, s.name, dialect)
			}
		}
	}
	if checked == 0 {
		t.Error("store.Check asks for no setting")
	}
}
