package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// A lineService reads lines, and lets stopped ones go on; see [manage.Lines].
type lineService interface {
	List(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error)
	Inspect(ctx context.Context, lane core.Lane, key string) (manage.LineStory, error)
	Skip(ctx context.Context, id core.ID) error
}

// newLines makes "gateway lines", which only holds other commands.
func newLines(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "lines",
		Short: "Look at lines, in which jobs wait for each other",
		Long: `The jobs of a handler or queue with "lines" in its configuration that have the same key
are one line. A few of them are admitted at a time, and the others wait. A dead job may
stop its line: "gateway jobs retry" tries that job again, and "gateway jobs skip" lets the
line go on without it.`,
		Example: `  gateway lines list billing
  gateway lines inspect billing 4711`,
		GroupID: groupInspect,
	}, newLinesList(a), newLinesInspect(a))
}

// newLinesList makes "gateway lines list": a page of the lines of a handler or queue, by key. It
// asks GET /api/lines with --url, and manage.Lines.List otherwise. A line is listed while jobs of
// it are admitted, so no line is not an error (exit code 0).
func newLinesList(a *app) *cobra.Command {
	var after string
	var limit int
	c := remotely(&cobra.Command{
		Use:   "list <handler|queue/name>",
		Short: "List the lines of a handler or queue, by key",
		Long: `List the lines in which jobs are admitted, by key: how many of its jobs are admitted,
how many wait, and for a stopped line since when and by which dead job. Numbers end at
100000.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway lines list billing
  gateway lines list queue/orders --limit 10
  gateway lines list billing --json | jq -r '.lines[] | select(.stopped_by) | .key'`,
		Args:              arguments(1, 1, "the handler, or queue/ and a name"),
		ValidArgsFunction: a.completeArgument(a.linedNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			return a.linesList(c, args[0], after, limit)
		},
	})
	limitFlag(c, &limit, core.DefaultPage)
	c.Flags().StringVar(&after, "after", "", "continue after this `key`, the last one of a list")
	return c
}

// linesList prints one page of lines, and on standard error the commands that let stopped ones go
// on, and the one for the next page.
func (a *app) linesList(c *cobra.Command, target, after string, limit int) error {
	lane, err := linedLane(target)
	if err != nil {
		return err
	}
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.lines.List(c.Context(), lane, after, limit)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.LinesOf(page))
		case len(page.Items) == 0:
			a.Notef("no jobs in lines")
			return nil
		}
		g := terminal.Grid{Heading: []string{"KEY", "ADMITTED", "WAITING", "STOPPED SINCE", "BY JOB"}}
		var stopped core.ID
		for _, l := range page.Items {
			g.Add(terminal.Visible(l.Key), strconv.Itoa(l.Admitted), strconv.Itoa(l.Waiting), moment(l.StoppedAt), terminal.OrDash(terminal.Visible(string(l.StoppedBy))))
			if stopped == "" {
				stopped = l.StoppedBy
			}
		}
		a.PrintGrid(g)
		if stopped != "" {
			a.noteStopped(c, stopped)
		}
		if page.More {
			last := page.Items[len(page.Items)-1].Key
			words := c.CommandPath() + " " + shellQuote(target)
			a.Notef("there are more: %s --after %s", a.commandLine(words, c.Flags()), shellQuote(last))
		}
		return nil
	})
}

// noteStopped prints the commands that let the line of a dead job go on.
func (a *app) noteStopped(c *cobra.Command, job core.ID) {
	id := terminal.Visible(string(job))
	a.Notef("to try the dead job of a stopped line again: %s; to go on without it: %s",
		a.commandLine("gateway jobs retry "+id, c.InheritedFlags()), a.commandLine("gateway jobs skip "+id, c.InheritedFlags()))
}

// linedLane returns the lane of an argument.
func linedLane(target string) (core.Lane, error) {
	if lane, ok := wire.ParseConsumer(target); ok && (lane.Handler() != "" || lane.Queue() != "") {
		return lane, nil
	}
	return "", usagef("the argument must be the name of a handler, or queue/ and the name of a queue; not %q", terminal.Clip(target, 80))
}

// newLinesInspect makes "gateway lines inspect": one line with the jobs that are admitted and the
// first ones that wait. It asks GET /api/lines/inspect with --url, and manage.Lines.Inspect
// otherwise. A line without jobs exits with 1.
func newLinesInspect(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "inspect <handler|queue/name> <key>",
		Short: "Show a line and its jobs",
		Long: `Show the jobs of a line: the admitted jobs with their attempts and errors, and the first
waiting jobs in their order.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example:           `  gateway lines inspect billing 4711`,
		Args:              arguments(2, 2, "the handler, or queue/ and a name, and the key of the line"),
		ValidArgsFunction: a.completeArgument(a.linedNames),
		RunE: func(c *cobra.Command, args []string) error {
			return a.linesInspect(c, args[0], args[1])
		},
	})
}

// linesInspect prints a line and its jobs.
func (a *app) linesInspect(c *cobra.Command, target, key string) error {
	lane, err := linedLane(target)
	if err != nil {
		return err
	}
	return a.ask(c.Context(), func(op *operator) error {
		story, err := op.lines.Inspect(c.Context(), lane, key)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.StoryOfLine(story))
		}
		a.PrintField("", "line", terminal.Visible(story.Key)+" of "+terminal.Visible(target))
		a.PrintField("", "admitted", strconv.Itoa(story.Admitted))
		a.PrintField("", "waiting", upTo(story.Waiting, core.MaxPage))
		if !story.StoppedAt.IsZero() {
			a.PrintField("", "stopped", moment(story.StoppedAt))
		}
		jobs := append(story.Holders[:len(story.Holders):len(story.Holders)], story.Next...)
		a.Printf("")
		a.PrintGrid(a.jobGrid(manage.JobPage{Page: core.Page[core.Job]{Items: jobs}, Waits: story.Waits}))
		if story.StoppedBy != "" {
			a.noteStopped(c, story.StoppedBy)
		}
		return nil
	})
}

// upTo returns a count that ends at a bound.
func upTo(n, most int) string {
	if n >= most {
		return fmt.Sprintf("%d or more", most)
	}
	return strconv.Itoa(n)
}

// newJobsSkip makes "gateway jobs skip": the line of a dead job goes on, and the job stays dead. It
// asks POST /api/jobs/{id}/skip with --url, and manage.Lines.Skip otherwise. A job that stops no
// line exits with 1, with the reason.
func newJobsSkip(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "skip <job id>",
		Short: "Let the line of a dead job go on without it",
		Long: `Let the line go on that a dead job stops. The job stays dead, and the next job of its
line is due. A later "gateway jobs retry" puts the skipped job at the end of its line.`,
		Example:           `  gateway jobs skip 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
		Args:              arguments(1, 1, "the job id"),
		ValidArgsFunction: a.completeArgument(a.deadJobs),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			return a.ask(c.Context(), func(op *operator) error {
				switch err := op.lines.Skip(c.Context(), id); {
				case err != nil:
					return err
				case a.json:
					return a.PrintJSON(wire.Skipped{Skipped: true})
				}
				a.Printf("job %s is skipped; its line goes on", id)
				return nil
			})
		},
	})
}

// lineText says for which jobs of its line a job waits.
func lineText(j core.Job, w manage.Wait) string {
	text := fmt.Sprintf("the jobs before it in line %s", terminal.Visible(j.Line))
	var more []string
	if w.Place > 0 {
		more = append(more, fmt.Sprintf("it is number %d of the waiting jobs", w.Place))
	}
	id := terminal.Visible(string(w.Job))
	switch {
	case !w.Since.IsZero():
		more = append(more, fmt.Sprintf("dead job %s stops the line since %s; \"gateway jobs skip %s\" lets it go on", id, moment(w.Since), id))
	case w.Job != "":
		more = append(more, "job "+id+" is admitted")
	}
	if len(more) > 0 {
		text += ": " + strings.Join(more, "; ")
	}
	return text
}
