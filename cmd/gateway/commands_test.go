package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// everyCommand returns the commands that run, by their words on the command line.
func everyCommand(c *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	if !c.HasSubCommands() && !c.Hidden && c.Name() != "help" {
		all[c.CommandPath()] = c
	}
	for _, child := range c.Commands() {
		for path, c := range everyCommand(child) {
			all[path] = c
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryCommandIsShown: each command has examples that run it, a row in the manual's table,
// and transcripts of a success, a failure and a usage error.
func TestEveryCommandIsShown(t *testing.T) {
	paths, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var transcripts strings.Builder
	for _, p := range paths {
		transcripts.WriteString(read(t, p))
	}
	chapter := read(t, chapterFile("production"))
	commands := everyCommand(newRoot(newApp(session{}.system(nil, nil))))
	for path, c := range commands {
		if c.Short == "" || c.Long == "" || strings.HasSuffix(c.Short, ".") || !strings.HasSuffix(strings.TrimSpace(c.Long), ".") {
			t.Errorf("%s: its texts are %q and %q", path, c.Short, c.Long)
		}
		if !regexp.MustCompile(`(?m)^  (source <\()?` + path + `\b`).MatchString(c.Example) {
			t.Errorf("%s: its examples do not run it: %s", path, c.Example)
		}
		if !strings.Contains(chapter, "\n| `"+path) {
			t.Errorf("%s has no row in the table of the chapter production", path)
		}
		for what, line := range map[string]string{"works": "^(! )?exec (sh -c .*)?", "is used wrongly": "^exits 2 "} {
			if !regexp.MustCompile("(?m)" + line + path + `( |$)`).MatchString(transcripts.String()) {
				t.Errorf("no transcript shows how %s %s", path, what)
			}
		}
		// These two commands fail only after a usage error.
		if !slices.Contains([]string{"gateway version", "gateway completion"}, path) &&
			!regexp.MustCompile(`(?m)^exits 1 `+path+`( |$)`).MatchString(transcripts.String()) {
			t.Errorf("no transcript shows how %s fails", path)
		}
	}
	if len(commands) < 20 {
		t.Errorf("%d commands were found", len(commands))
	}
}

// TestEveryFlagIsTold: each flag has a description, and a flag with a value names the value.
func TestEveryFlagIsTold(t *testing.T) {
	for path, c := range everyCommand(newRoot(newApp(session{}.system(nil, nil)))) {
		for line := range strings.Lines(c.LocalFlags().FlagUsages()) {
			if fields := strings.Fields(line); len(fields) < 3 {
				t.Errorf("%s: flag %q says nothing", path, line)
			}
		}
	}
}
