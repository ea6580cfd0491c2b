package main

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/once"
	"github.com/spf13/cobra"
)

// chapters are the files of the manual. "gateway help <topic>" prints one.
//
//go:embed manual/*.md
var chapters embed.FS

// A topic is the name of a chapter: its file without the ending.
type topic struct{ name, about string }

// manual lists the topics in the order in which the chapters can be read through. No topic
// is the name of a command.
var manual = []topic{
	{"first-steps", "Build it, start it, send an event, look at it"},
	{"events-in", "Routes, payloads, CloudEvents, SNS, schedules, duplicates, limits"},
	{"verification", "How webhooks prove their senders"},
	{"deliveries", "Headers, retries, gRPC, rate limits, circuit breakers"},
	{"pace-and-order", "Holds, delays, cancel and lines"},
	{"expressions", "Filters, transforms and paths"},
	{"pull-queues", "Consumers that receive and acknowledge messages"},
	{"workflows", "Steps, choices, branches, waits, callbacks"},
	{"alerts", "Dead jobs, forged events and health, told to people"},
	{"config-files", "Variables, overlays, files at an address, reload"},
	{"configuration", "Every field of gateway.yaml"},
	{"databases", "SQLite, PostgreSQL, MySQL, Cloudflare D1"},
	{"production", "Commands, production, retention, backups, health"},
	{"recipes", "Change secrets, move to PostgreSQL, restore, size the disk"},
	{"metrics-and-logs", "Prometheus, logs, OpenTelemetry traces"},
	{"http-api", "The management API"},
	{"functions", "AWS Lambda: deployment, differences, costs"},
	{"security", "Settings that keep attackers out"},
	{"performance", "All measured figures, and how they were taken"},
	{"upgrading", "To a newer version"},
	{"inside", "How it works inside"},
}

// text is the chapter of a topic, in Markdown.
func (t topic) text() (string, bool) {
	text, err := chapters.ReadFile("manual/" + t.name + ".md")
	return string(text), err == nil
}

// topicListing lists the topics with their subjects.
func topicListing() string {
	var b strings.Builder
	for _, t := range manual {
		fmt.Fprintf(&b, "  %-18s%s\n", t.name, t.about)
	}
	return b.String()
}

// printChapter prints the chapter of a topic for people. It is false if there is none.
func (a *app) printChapter(name string) bool {
	text, ok := topic{name: name}.text()
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
		for _, t := range manual {
			words = append(words, cobra.CompletionWithDesc(t.name, t.about))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
