// Package golden compares results of tests with the expected results in testdata. With
// -update, a test binary writes the expected results anew:
//
//	go test ./core/web -run TestTranscripts -update
package golden

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

var update = flag.Bool("update", false, "write the expected results in testdata anew")

// Updating reports whether -update is set: tests write the expected results and do not
// compare.
func Updating() bool { return *update }

// Compare fails a test if a result is not the expected one, and shows the lines that differ.
// The name identifies the result in the message. With -update it compares nothing.
func Compare(t testing.TB, name, want, got string) {
	t.Helper()
	if lines := Diff(want, got); lines != "" && !*update {
		t.Errorf("%s: got other lines than expected; -update writes them anew\n%s", name, lines)
	}
}

// Diff returns the lines in which two texts differ, as a unified diff; "" if they are equal.
func Diff(want, got string) string {
	return string(diff.Diff("want", []byte(want), "got", []byte(got)))
}

// Write writes a file of expected results, and fails the test if that fails.
func Write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(fmt.Errorf("write the expected results: %w", err))
	}
}
