package core_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMapHasEachFolder: the map in CONTRIBUTING.md has a line for each folder of core, and no line
// for a folder that is gone.
func TestMapHasEachFolder(t *testing.T) {
	const path = ".github/CONTRIBUTING.md"
	text, err := os.ReadFile("../" + path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\ncore/ ")
	part, _, _ := strings.Cut(rest, "\nstore/ ")
	listed := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z]+)/ +\S`).FindAllStringSubmatch(part, -1) {
		listed[line[1]] = true
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "testdata" && !listed[e.Name()] {
			t.Errorf("%s, Find your way: the map has no line for core/%s", path, e.Name())
		}
		delete(listed, e.Name())
	}
	for name := range listed {
		t.Errorf("%s, Find your way: the map has core/%s, and there is no such folder", path, name)
	}
}
