//go:build man

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/eventgateway/gateway/core/once"
)

// generators are commands for the build: "make man" runs this one. The released binary has
// neither this command nor its Markdown library.
var generators = []func(*app) *cobra.Command{newMan}

// newMan makes "gateway man", a hidden command for the build. Each visible command gets a page
// in section 1, made of the texts that --help shows.
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

// options matches an option as the generator writes it: with a tab in filled text. Some
// readers of manual pages complain about the tab, and none shows it well.
var options = once.Regexp(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t(.*)$`)

// setOptions rewrites all pages in a folder: each option stands on the line above its meaning.
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
		if err := os.WriteFile(name, options().ReplaceAll(page, []byte(".TP\n$1\n$2")), 0o666); err != nil {
			return fmt.Errorf("write %s: %w", name, pathless(err))
		}
	}
	return nil
}

// markdown escapes plain text for Markdown.
var markdown = strings.NewReplacer(`\`, `\\`, "<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`, "[", `\[`, "`", "\\`")

// usageMarkdown escapes the usage of a flag. It keeps the backquotes around the name of the
// value.
var usageMarkdown = strings.NewReplacer("<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`)

// asMarkdown turns the texts of a command and its subcommands into the Markdown that the
// generator expects.
func asMarkdown(c *cobra.Command) {
	name, rest, _ := strings.Cut(c.Use, " ")
	c.Use = strings.TrimSpace(name + " " + markdown.Replace(rest))
	c.Short = markdown.Replace(c.Short)
	var long strings.Builder
	for line := range strings.Lines(c.Long) {
		if strings.HasPrefix(line, "  ") {
			long.WriteString("  " + line) // four blanks: Markdown shows the line unchanged
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
