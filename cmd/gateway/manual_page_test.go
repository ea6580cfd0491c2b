package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/cmd/gateway/manual"
)

// TestLinked: a link of a chapter leads a reader in a terminal to the command, the file or the
// address behind it.
func TestLinked(t *testing.T) {
	for _, c := range []struct{ text, target, want string }{
		{"here", "#section", "here"},
		{"a chapter", "databases.md", "a chapter (`gateway help databases`)"},
		{"a chapter", "databases.md#pools", "a chapter (`gateway help databases`)"},
		{"a file", "../../../infra/proxy/Caddyfile", "a file (infra/proxy/Caddyfile)"},
		{"`infra/proxy/Caddyfile`", "../../../infra/proxy/Caddyfile", "`infra/proxy/Caddyfile`"},
		{"site", "https://example.com/", "site (https://example.com/)"},
	} {
		if got := linked(c.text, c.target); got != c.want {
			t.Errorf("linked(%q, %q) = %q, want %q", c.text, c.target, got, c.want)
		}
	}
}

// TestChaptersFit: in any terminal no line of a chapter is too long, except lines of code, and
// no mark of Markdown is left.
func TestChaptersFit(t *testing.T) {
	for _, topic := range manual.Topics() {
		text, _ := topic.Text()
		for _, width := range []int{terminal.MinWidth, terminal.PipeWidth, terminal.MaxWidth} {
			for line := range strings.Lines(terminal.Page(text, width, linked)) {
				if strings.HasPrefix(line, "    ") {
					continue
				}
				if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > width {
					t.Errorf("%s at %d: %q is too long", topic.Name, width, line)
				}
				if strings.Contains(line, "](") || strings.Contains(line, "**") || strings.HasPrefix(line, "```") {
					t.Errorf("%s at %d: %q has a mark", topic.Name, width, line)
				}
			}
		}
	}
}
