//go:build man

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
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
			if err := doc.GenManTree(c.Root(), &header, args[0]); err != nil {
				return err
			}
			return setOptions(args[0])
		},
	}
}

// options are how the generator writes them: with a tab in text that is filled, which
// some readers complain about and none shows well.
var options = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t(.*)$`)

// setOptions has the options of all pages in a folder stand above what they mean.
func setOptions(folder string) error {
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		return err
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, pathless(err))
		}
		if err := os.WriteFile(name, options.ReplaceAll(page, []byte(".TP\n$1\n$2")), 0o666); err != nil {
			return fmt.Errorf("write %s: %w", name, pathless(err))
		}
	}
	return nil
}

// markdown escapes what plain text means and Markdown takes for something else.
var markdown = strings.NewReplacer(`\`, `\\`, "<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`, "[", `\[`, "`", "\\`")

// usageMarkdown leaves the marks around the value of a flag, which pages show too.
var usageMarkdown = strings.NewReplacer("<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`)

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
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = usageMarkdown.Replace(f.Usage) })
	for _, child := range c.Commands() {
		asMarkdown(child)
	}
}
