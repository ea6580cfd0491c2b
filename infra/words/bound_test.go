package main

import (
	"strings"
	"testing"
)

// TestRateOfRepository holds the rate of markers down in all comments and documents, test files
// included.
func TestRateOfRepository(t *testing.T) {
	texts, err := walk(root, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, total := tallies(texts); total.words < 200_000 {
		t.Fatalf("%d words were found; want all of the repository, some 350,000", total.words)
	}
	if problem := tooMany(texts, maxRate); problem != "" {
		t.Error(problem)
	}
}

func TestTooMany(t *testing.T) {
	file := func(path string, sentences ...string) text {
		x := text{path: root + "/" + path}
		for _, s := range sentences {
			x.sentences = append(x.sentences, sentence{1, s})
		}
		return x
	}
	// 3 markers among 1,000 words. The attached "who" counts.
	texts := []text{
		file("core/plain.go", strings.TrimSpace(strings.Repeat("word ", 991))),
		file("core/bad.go", "Nobody waits."),
		file("worse.md", "What waits is due.", "Callers who wait."),
	}
	got := tooMany(texts, 3)
	for _, want := range []string{"3.00 of 1,000 words", "must be below 3.00", "\n   2 worse.md\n   1 core/bad.go\n", "go run ./infra/words -show worse.md core/bad.go"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
	if strings.Contains(got, "plain.go") {
		t.Errorf("a file without markers is among the worst: %s", got)
	}
	if got := tooMany(texts, 3.01); got != "" {
		t.Errorf("a rate below the bound: %s", got)
	}
}
