package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMarkers(t *testing.T) {
	for sentence, want := range map[string]string{
		"Expired jobs are taken again.":           "",
		"What has expired is taken again.":        "what",
		"What happens if the lease ends?":         "",
		"Those who wait are woken by nobody.":     "those who, nobody",
		"The one that runs is told of it.":        "the one that, is told",
		"Its rate is that of the handler.":        "is that of",
		"A caller who waits is woken.":            "(who)",
		"The caller itself who waits, and a who.": "(who), who",
		"Whatever comes, whoever sends it.":       "whatever, whoever",
		"Somewhat wholesale.":                     "",
		`It does not say "nobody".`:               "",
	} {
		var got []string
		for _, m := range markersIn(sentence) {
			if m.attached {
				m.word = "(" + m.word + ")"
			}
			got = append(got, m.word)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: markers %q, want %q", sentence, got, want)
		}
	}
}

func texts(x text) (all []string) {
	for _, s := range x.sentences {
		all = append(all, s.text)
	}
	return all
}

func TestGo(t *testing.T) {
	x, err := readGo([]byte(`// Package a has comments, e.g. this. It has
// two sentences.
//
//	what is code
package a

//go:generate what who

// A heading without a full stop
var x = "// what" // trailing
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Package a has comments, e.g. this.", "It has two sentences.", "A heading without a full stop", "trailing"}
	if got := texts(x); !slices.Equal(got, want) {
		t.Errorf("sentences %q, want %q", got, want)
	}
	if x.lines != 8 || x.comments != 7 {
		t.Errorf("%d lines, %d comments; want 8 and 7", x.lines, x.comments)
	}
}

func TestMarkdown(t *testing.T) {
	x, _ := readMarkdown([]byte("# What it is\n\n" +
		"See `who` in [the\nmanual](who.md). It\nis short.\n" +
		"```sh\nwhat who\n```\n" +
		"| a | b |\n|---|---|\n| c | d |\n" +
		"- one\n- two\n"))
	want := []string{"What it is", "See code in [the manual](who.md).", "It is short.", "a", "b", "c", "d", "- one", "- two"}
	if got := texts(x); !slices.Equal(got, want) {
		t.Errorf("sentences %q, want %q", got, want)
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"a.go":            "// Package a says what is so.\npackage a\n",
		"a_test.go":       "// Nobody reads this.\npackage a\n",
		"testdata/b.go":   "not Go, and not read",
		"node_modules/m":  "not read",
		".hidden/what.md": "what",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	report := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(&out, append(args, dir)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	all := strings.Fields(report())
	if i := slices.Index(all, "all"); i < 0 || !slices.Equal(all[i+1:i+7], []string{"9", "2", "222.22", "2", "222.22", "50.0%"}) {
		t.Errorf("rates %q", all)
	}
	if got := report("-show", "-tests=false"); !strings.HasSuffix(got, "a.go:1: what: Package a says what is so.\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("shown: %q", got)
	}
	if got := report("-sample", "5"); strings.Count(got, "\n") != 1 {
		t.Errorf("sample: %q", got)
	}
	if a, b := report("-sample", "1", "-seed", "3"), report("-sample", "1", "-seed", "3"); a != b {
		t.Errorf("the same seed gave %q and %q", a, b)
	}
}
