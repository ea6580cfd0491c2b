package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/cmd/gateway/manual"
	"github.com/spf13/cobra"
)

const (
	readmeFile  = "../../README.md"
	readmeBytes = 8192
)

// chapterFile is the file of a chapter of the manual.
func chapterFile(topic string) string { return "manual/" + topic + ".md" }

// documents are the Markdown files that users and developers read.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{readmeFile}
	for _, pattern := range []string{chapterFile("*"), "../../.github/*.md", "../../.github/*/*.md", "../../infra/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	return files
}

// TestReadmeSize: README is a front page; details are in the chapters.
func TestReadmeSize(t *testing.T) {
	if n := len(read(t, readmeFile)); n > readmeBytes {
		t.Errorf("README.md has %d bytes, want at most %d", n, readmeBytes)
	}
}

// TestTopics: each chapter is a topic, in the order of README's table, and no topic is a command.
func TestTopics(t *testing.T) {
	root := newRoot(session{}.app(io.Discard))
	readme, place := read(t, readmeFile), 0
	for _, topic := range manual.Topics() {
		if c, _, err := root.Find([]string{topic.Name}); err == nil && c != root {
			t.Errorf("the topic %s is a command, too: %s", topic.Name, c.CommandPath())
		}
		if _, ok := topic.Text(); !ok {
			t.Errorf("the topic %s has no chapter", topic.Name)
			continue
		}
		at := strings.LastIndex(readme, "(cmd/gateway/manual/"+topic.Name+".md)")
		if at < place {
			t.Errorf("README does not link the chapter %s, or not in its place", topic.Name)
		}
		place = at
	}
	files, err := filepath.Glob(chapterFile("*"))
	if err != nil || len(files) != len(manual.Topics()) {
		t.Errorf("there are %d chapters and %d topics: %v (%v)", len(files), len(manual.Topics()), files, err)
	}
}

var (
	fenced   = regexp.MustCompile("(?sm)^ *```(\\w*)\\n(.*?)^ *```$")
	codeSpan = regexp.MustCompile("(?s)`+([^`]+)`+")
	link     = regexp.MustCompile(`(?s)\[[^\]]*\]\(([^)\s]+)\)`)
	headline = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestLinksResolve: each relative link leads to a file, and each anchor to a heading.
func TestLinksResolve(t *testing.T) {
	seen := 0
	for _, file := range documents(t) {
		prose := codeSpan.ReplaceAllString(fenced.ReplaceAllString(read(t, file), ""), "x")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			seen++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", file, m[1])
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: %s has no heading for the link %s", file, target, m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d relative links were found", seen)
	}
}

// anchors returns the names of the headings of a text, as links use them.
func anchors(text string) (names []string) {
	for _, m := range headline.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")
		names = append(names, regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(name, ""))
	}
	return names
}

// placeholder stands for an argument.
var placeholder = regexp.MustCompile(`<[a-z ]+>`)

// called are the command lines of this program in a line of code.
var called = regexp.MustCompile(`(?:^|[\s(|;&/"'])gateway ([a-z][^|;&>#)"']*)`)

// TestDocumentedCommands: each command of this program that a text names exists, with its
// flags. Flags that a text names alone are flags of some command.
func TestDocumentedCommands(t *testing.T) {
	root := newRoot(session{}.app(io.Discard))
	seen, flags := 0, everyFlag(root)
	for _, file := range documents(t) {
		for _, code := range codeLines(read(t, file)) {
			for _, m := range called.FindAllStringSubmatch(placeholder.ReplaceAllString(code, "X"), -1) {
				seen++
				checkNamed(t, root, file, strings.Fields(m[1]))
			}
			if name, _, _ := strings.Cut(strings.TrimLeft(code, "-"), " "); strings.HasPrefix(code, "--") && !flags[name] && code != "--guided" {
				t.Errorf("%s: no command has a flag %s", file, code)
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d commands were found", seen)
	}
}

// codeLines are the spans of code in a text, and the lines of those of its blocks that a
// shell runs.
func codeLines(text string) (lines []string) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		if m[1] != "sh" && m[1] != "" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(m[2], "\\\n", "")) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		lines = append(lines, strings.Join(strings.Fields(m[1]), " "))
	}
	return lines
}

// checkNamed fails unless a command line names an existing command and its flags, or "help" and
// an existing chapter or command.
func checkNamed(t *testing.T, root *cobra.Command, file string, args []string) {
	t.Helper()
	if args[0] == "gateway" { // the program in a container of that name
		args = args[1:]
	}
	if args[0] == "help" {
		_, err := os.Stat(chapterFile(args[1]))
		if c, _, missing := root.Find(args[1:]); args[1] != "X" && err != nil && (missing != nil || c == root) {
			t.Errorf("%s: there is no chapter and no command for gateway help %s", file, args[1])
		}
		return
	}
	c, rest, err := root.Find(args)
	if err != nil || c == root || c.HasSubCommands() && len(rest) > 0 {
		t.Errorf("%s: there is no command gateway %s", file, strings.Join(args, " "))
		return
	}
	for _, word := range rest {
		flag, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		long, short := strings.HasPrefix(word, "--"), len(word) == 2 && word[0] == '-'
		if long && c.Flag(flag) == nil || short && c.Flags().ShorthandLookup(flag) == nil && root.PersistentFlags().ShorthandLookup(flag) == nil {
			t.Errorf("%s: %q has no flag %s", file, c.CommandPath(), word)
		}
	}
}

// everyFlag are the names of the flags of c and the commands below it.
func everyFlag(c *cobra.Command) map[string]bool {
	names := map[string]bool{"help": true}
	for line := range strings.Lines(c.Flags().FlagUsages() + c.PersistentFlags().FlagUsages()) {
		if m := regexp.MustCompile(`--([\w-]+)`).FindStringSubmatch(line); m != nil {
			names[m[1]] = true
		}
	}
	for _, child := range c.Commands() {
		for name := range everyFlag(child) {
			names[name] = true
		}
	}
	return names
}
