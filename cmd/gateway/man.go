//go:build man

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// generators are commands of the one who builds the program: "make man" runs this one.
// The binary that users get does without, and without a Markdown library.
var generators = []func(*app) *cobra.Command{newMan}

func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "man <folder>",
		Short:   "Write the manual pages",
		Long:    "Write a manual page for each command into a folder.",
		Example: "  gateway man man",
		Hidden:  true,
		Args:    arguments(1, 1, "the folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return fmt.Errorf("make folder %s: %w", args[0], pathless(err))
			}
			c.Root().DisableAutoGenTag = true
			asMarkdown(c.Root())
			header := doc.GenManHeader{Section: "1", Source: "gateway " + readBuild().Version, Manual: "Event gateway"}
			return doc.GenManTree(c.Root(), &header, args[0])
		},
	}
}

// markdown escapes what plain text means and Markdown takes for something else.
var markdown = strings.NewReplacer(`\`, `\\`, "<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`, "[", `\[`, "`", "\\`")

// asMarkdown makes the texts of a command and those below what the generator expects.
func asMarkdown(c *cobra.Command) {
	name, rest, _ := strings.Cut(c.Use, " ")
	c.Use = strings.TrimSpace(name + " " + markdown.Replace(rest))
	c.Short = markdown.Replace(c.Short)
	var long strings.Builder
	for line := range strings.Lines(c.Long) {
		if strings.HasPrefix(line, "  ") {
			long.WriteString("  " + line) // four blanks: as it stands
		} else {
			long.WriteString(markdown.Replace(line))
		}
	}
	c.Long = long.String()
	for _, child := range c.Commands() {
		asMarkdown(child)
	}
}
