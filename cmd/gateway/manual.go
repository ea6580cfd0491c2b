package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/cmd/gateway/manual"
	"github.com/eventgateway/gateway/core/once"
	"github.com/spf13/cobra"
)

// topicListing lists the topics with their subjects.
func topicListing() string {
	var b strings.Builder
	for _, t := range manual.Topics() {
		fmt.Fprintf(&b, "  %-18s%s\n", t.Name, t.About)
	}
	return b.String()
}

// printChapter prints the chapter of a topic for people. It is false if there is none.
func (a *app) printChapter(name string) bool {
	text, ok := manual.Topic{Name: name}.Text()
	if ok {
		fmt.Fprint(a.stdout, terminal.Page(text, a.PageWidth(), linked))
	}
	return ok
}

// scheme matches the beginning of an address.
var scheme = once.Regexp(`^[a-z]+://`)

// linked is the text of a link, and where it leads: to another chapter, to a file of the
// project, or to an address.
func linked(text, target string) string {
	file, _, _ := strings.Cut(target, "#")
	switch {
	case file == "":
		return text
	case scheme().MatchString(target):
		return text + " (" + target + ")"
	case !strings.Contains(file, "/"):
		return text + " (`gateway help " + strings.TrimSuffix(file, ".md") + "`)"
	}
	if file = path.Join("cmd/gateway/manual", file); strings.Trim(text, "`") == file {
		return text
	}
	return text + " (" + file + ")"
}

// completeHelp offers commands, and topics where the first word is typed.
func completeHelp(c *cobra.Command, args []string, _ string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
	about, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, child := range about.Commands() {
		if child.IsAvailableCommand() {
			words = append(words, cobra.CompletionWithDesc(child.Name(), child.Short))
		}
	}
	if about == c.Root() {
		for _, t := range manual.Topics() {
			words = append(words, cobra.CompletionWithDesc(t.Name, t.About))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
