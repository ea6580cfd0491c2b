package terminal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPage: a chapter as it is shown in a terminal of 40 characters. A reader sees no marks of
// Markdown, and each link in the form that the caller gives it.
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
	links := map[string]string{
		"databases.md#pools":             " (`gateway help databases`)",
		"../../../infra/proxy/Caddyfile": " (infra/proxy/Caddyfile)",
		"#section":                       "",
		"https://example.com/":           " (https://example.com/)",
	}
	link := func(text, target string) string { return text + links[target] }
	if diff := cmp.Diff(want, Page(markdown, 40, link)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}
