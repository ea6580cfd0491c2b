package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/manual"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newHelp makes "gateway help", which explains a command or prints a chapter of the manual. It
// needs no configuration and exits with 0, or with 2 for an unknown name. Cobra's own help
// command knows no topics, and exits with 0 for an unknown one.
//
// Chapters are part of the binary: a user on a machine without a network has the text that fits
// the version.
func newHelp(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command or topic]",
		Short: "Help about a command, or a chapter of the manual",
		Long: `Help prints the purpose of a command, its flags and examples, or the chapter of the manual
about a topic. Without arguments it lists commands and topics.`,
		Example: `  gateway help jobs retry
  gateway help databases`,
		GroupID:           groupProgram,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeHelp,
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				if len(args) == 1 && about == c.Root() {
					return a.helpTopic(about, args[0])
				}
				return noSuchCommand(about, rest)
			}
			about.InitDefaultHelpFlag() // so that they are listed
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// helpTopic prints the chapter of a topic. For an unknown name the error suggests similar
// commands and topics, or lists all topics.
func (a *app) helpTopic(root *cobra.Command, name string) error {
	if a.printChapter(name) {
		return nil
	}
	near := root.SuggestionsFor(name)
	var names []string
	for _, t := range manual.Topics() {
		names = append(names, t.Name)
		// Cobra suggests commands by edit distance. For topics a part of the name is the better
		// guess: "queue" finds "pull-queues".
		if strings.Contains(t.Name, strings.ToLower(name)) || strings.Contains(name, t.Name) {
			near = append(near, t.Name)
		}
	}
	if len(near) > 0 {
		return usagef("there is no command and no topic %q; did you mean %s?", name, strings.Join(near, " or "))
	}
	return usagef("there is no command and no topic %q; \"%s help\" lists the commands, and the topics are %s", name, a.programName(), strings.Join(names, ", "))
}

// help prints the help text of a command that only holds others.
func help(c *cobra.Command, _ []string) error { return c.Help() }

// usage prints the part of a help text that follows from the command itself.
// Cobra's own shows a command that holds others twice.
func usage(c *cobra.Command) error {
	w := c.OutOrStdout()
	line := c.UseLine()
	if c.HasAvailableSubCommands() {
		line = c.CommandPath() + " <command>"
	}
	fmt.Fprintf(w, "Usage:\n  %s\n", line)
	section(w, "Examples:", c.Example)
	for _, g := range c.Groups() {
		section(w, g.Title, listing(c, g.ID))
	}
	section(w, "Commands:", listing(c, ""))
	if !c.HasParent() {
		section(w, "Manual:", topicListing())
	}
	section(w, "Flags:", c.LocalFlags().FlagUsages())
	section(w, "Global flags:", inherited(c).FlagUsages())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nMore about a command: %s <command> --help\n", c.CommandPath())
	}
	if !c.HasParent() {
		fmt.Fprintf(w, "A chapter of the manual: %s help <topic>\n", c.CommandPath())
	}
	return nil
}

// inherited are the global flags that a command takes.
func inherited(c *cobra.Command) *pflag.FlagSet {
	taken := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if c.HasSubCommands() || takes(c, f.Name) {
			taken.AddFlag(f)
		}
	})
	return taken
}

// section writes a part of a help text, and nothing if the part is empty.
func section(w io.Writer, title, body string) {
	if body != "" {
		fmt.Fprintf(w, "\n%s\n%s\n", title, strings.TrimRight(body, "\n"))
	}
}

// listing lists the commands of a group.
func listing(c *cobra.Command, group string) string {
	var b strings.Builder
	for _, child := range c.Commands() {
		if child.GroupID == group && child.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-15s%s\n", child.Name(), child.Short)
		}
	}
	return b.String()
}
