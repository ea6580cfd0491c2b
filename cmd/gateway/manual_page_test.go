package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestPage: a chapter as it is shown in a terminal of 40 characters.
func TestPage(t *testing.T) {
	const markdown = "# A **chapter** `x`\n\nProse with [a chapter](databases.md#pools), `a|b` and\n" +
		"[a file](../../../infra/proxy/Caddyfile).\n\n## Section\n- first\n  goes on [here](#section)\n" +
		"- [site](https://example.com/)\n  ```sh\n  gateway start   # *kept*\n  ```\n\n" +
		"| Name | Meaning |\n|---|---:|\n| `a|b` | short |\n| `c` | a long text that is wrapped in its column |\n\n" +
		"| Name | Header | Other |\n|---|---|---|\n| `github` | `X-Hub-Signature-256` | `X-GitHub-Delivery` |\n"
	const want = "A chapter `x`\n=============\n\nProse with a chapter (`gateway help\ndatabases`), `a|b` and a file\n" +
		"(infra/proxy/Caddyfile).\n\nSection\n-------\n- first goes on here\n- site (https://example.com/)\n" +
		"      gateway start   # *kept*\n\n" +
		"Name   Meaning\n-----  ---------------------------------\n`a|b`  short\n`c`    a long text that is wrapped in\n       its column\n\n" +
		"`github`\n  Header: `X-Hub-Signature-256`\n  Other: `X-GitHub-Delivery`\n"
	if diff := cmp.Diff(want, (&page{width: 40}).render(markdown)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

// TestChaptersFit: in any terminal no line of a chapter is too long, except lines of code, and
// no mark of Markdown is left.
func TestChaptersFit(t *testing.T) {
	for _, topic := range manual {
		text, _ := topic.text()
		for _, width := range []int{slimmest, pipeWidth, widestPage} {
			shown := (&page{width: width}).render(text)
			for line := range strings.Lines(shown) {
				if strings.HasPrefix(line, "    ") {
					continue
				}
				if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > width {
					t.Errorf("%s at %d: %q is too long", topic.name, width, line)
				}
				if strings.Contains(line, "](") || strings.Contains(line, "**") || strings.HasPrefix(line, "```") {
					t.Errorf("%s at %d: %q has a mark", topic.name, width, line)
				}
			}
		}
	}
}
