package store

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFilesAreInTheMap: the package comment names each file of the package, and no other. A
// newcomer finds the place of a change there.
func TestFilesAreInTheMap(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, files, found := strings.Cut(string(doc), "// # The files\n")
	files, _, ends := strings.Cut(files, "// # Times\n")
	if !found || !ends {
		t.Fatal("doc.go has no section of the files")
	}
	named := regexp.MustCompile(`[a-z_]+\.go\b`).FindAllString(files, -1)
	there, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if file != "doc.go" && !strings.HasSuffix(file, "_test.go") && !slices.Contains(named, file) {
			t.Errorf("the package comment does not name %s", file)
		}
	}
	for _, file := range named {
		if !slices.Contains(there, file) {
			t.Errorf("the package comment names %s, which does not exist", file)
		}
	}
}
