package main

import (
	"bytes"
	"context"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newRunsInspect makes "gateway workflow-runs inspect": a run with its steps and its history.
// It asks GET /api/workflow-runs/{id} with --url, page by page, and manage.Runs.Inspect
// otherwise. It exits with 1 if the run is unknown.
//
// Inputs and outputs of steps are left out unless --data is given: they can have many MiB, and
// may hold personal data that a user does not want on a shared screen.
func newRunsInspect(a *app) *cobra.Command {
	var data, graph bool
	c := &cobra.Command{
		Use:   "inspect <run id>",
		Short: "Show a run, its steps and its history",
		Long: `Show a workflow run: its state, the steps that it has come to, and its history.

A step is ready (its call waits for a worker or for a retry, or its item for its turn),
running, waiting (for a time, or for a callback), succeeded, failed, canceled (another
branch failed, or an operator canceled the run) or skipped (the run's timeout came). Of a
parallel or map step ATTEMPT is how many of its branches or items have succeeded. After a
redrive these are the steps of the newest epoch; the history has the entries of all
epochs.

With --data it shows the beginning of the state that each step received and passed on;
--json has all of it. With --graph it shows the steps of the definition that the run
follows, each with the steps to which it leads, also steps that the run has not come to.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV
  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --data
  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --graph
  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --json | jq '.steps[] | {path, input, output}'`,
	}
	c.Flags().BoolVar(&data, "data", false, "show the states that the steps received and passed on")
	c.Flags().BoolVar(&graph, "graph", false, "show the graph of the definition that the run follows")
	c.PreRunE = func(*cobra.Command, []string) error {
		if data && graph {
			return usageError("--graph has no inputs and outputs of steps; give --graph or --data")
		}
		return nil
	}
	return a.runCommand(c, a.runsIn(""), func(ctx context.Context, runs runService, id core.ID) error {
		if graph {
			return a.runGraph(ctx, runs, id)
		}
		// The first page comes before anything is printed, so that an unknown run prints
		// nothing but its error.
		first, err := runs.Inspect(ctx, id, manage.Place{}, 0)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printStory(ctx, runs, first)
		}
		run, err := whole(ctx, runs, first)
		if err != nil {
			return err
		}
		a.printInspected(run, data)
		return nil
	})
}

// whole reads a run with all its steps and its history. It keeps only the shown beginnings of
// the steps' texts: all texts together may need more memory than there is.
func whole(ctx context.Context, runs runService, first manage.Inspected) (manage.Inspected, error) {
	clipped := manage.Inspected{Run: first.Run}
	for page, err := range pagesOf(ctx, runs, first) {
		if err != nil {
			return clipped, err
		}
		for _, s := range page.Steps {
			s.State, s.Output = beginning(s.State), beginning(s.Output)
			clipped.Steps = append(clipped.Steps, s)
		}
		clipped.History = append(clipped.History, page.History...)
	}
	return clipped, nil
}

// beginning is a copy of the shown beginning of a document. A longer document leaves a few
// bytes more, which show that it goes on.
func beginning(document []byte) []byte {
	return bytes.Clone(document[:min(len(document), utf8.UTFMax*(shownData+1))])
}

// pagesOf yields the pages about a run, beginning with first.
func pagesOf(ctx context.Context, runs runService, first manage.Inspected) iter.Seq2[manage.Inspected, error] {
	return func(yield func(manage.Inspected, error) bool) {
		// A history and its steps can have thousands of entries. The server bounds a page by
		// number and by bytes, so the size of a page is left to it.
		for page := first; yield(page, nil) && !page.Next.Zero(); {
			var err error
			if page, err = runs.Inspect(ctx, page.ID, page.Next, 0); err != nil {
				yield(page, err)
				return
			}
		}
	}
}

// printInspected prints a run for people: its fields, its steps, and its history.
func (a *app) printInspected(run manage.Inspected, data bool) {
	a.printRun(run.Run)
	if len(run.Steps) > 0 {
		a.Printf("")
		a.PrintGrid(a.stepGrid(run.Steps))
	}
	if data {
		a.printData(run.Steps)
	}
	if len(run.History) > 0 {
		a.Printf("")
		a.PrintGrid(entryGrid(run.History))
	}
}

// printRun prints the fields of a run. Empty fields are left out.
func (a *app) printRun(r core.Run) {
	a.PrintField("", "run", terminal.Visible(string(r.ID)))
	a.PrintField("", "workflow", terminal.Visible(r.Workflow))
	a.PrintField("", "event", terminal.Visible(string(r.EventID)))
	a.PrintField("", "status", a.paintStatus(string(r.Status)))
	a.PrintField("", "step", terminal.Visible(r.Step))
	if r.Epoch > 1 {
		a.PrintField("", "epoch", strconv.Itoa(r.Epoch))
	}
	a.PrintField("", "created", moment(r.CreatedAt))
	a.PrintField("", "started", core.FormatTime(r.StartedAt))
	// The deadline of a finished run has no effect.
	if !r.Status.Finished() {
		a.PrintField("", "deadline", core.FormatTime(r.DeadlineAt))
	}
	a.PrintField("", "finished", core.FormatTime(r.FinishedAt))
	a.PrintField("", "error", terminal.Visible(r.Error))
	// Only the beginning: --json has the whole output.
	a.PrintField("", "output", terminal.Clip(terminal.Visible(string(r.Output)), shownData))
}

// stepGrid returns the table of the steps of a run, as the store orders them.
func (a *app) stepGrid(steps []core.Step) terminal.Grid {
	g := terminal.Grid{Heading: []string{"STEP", "TYPE", "STATUS", "ATTEMPT", "STARTED", "FINISHED", "ERROR"}}
	for _, s := range steps {
		g.Add(terminal.Visible(s.Path), terminal.Visible(s.Type), a.paintStatus(string(s.Status)), stepAttempt(s),
			moment(s.StartedAt), moment(s.FinishedAt), terminal.OrDash(terminal.Clip(terminal.Visible(s.Error), shownError)))
	}
	return g
}

// stepAttempt returns the number of attempts at a step. For a parallel or map step it returns
// how many of its branches or items have succeeded.
func stepAttempt(s core.Step) string {
	if s.Type == "parallel" || s.Type == "map" {
		// A server does not return the counts of branches. A dash is honest; 0/0 would look
		// like a fault.
		if s.Fan.Total == wire.Untold {
			return "-"
		}
		return strconv.Itoa(s.Fan.Ended) + "/" + strconv.Itoa(s.Fan.Total)
	}
	return strconv.Itoa(s.Attempt)
}

// shownData is the number of characters of a document that are shown.
const shownData = 200

// printData prints the beginning of each step's input and output.
func (a *app) printData(steps []core.Step) {
	for _, s := range steps {
		a.Printf("\nstep %s", terminal.Visible(s.Path))
		a.PrintField("  ", "received", terminal.Clip(terminal.Visible(string(s.State)), shownData))
		a.PrintField("  ", "passed on", terminal.Clip(terminal.Visible(string(s.Output)), shownData))
	}
}

// entryGrid returns the table of a run's history.
func entryGrid(entries []core.Entry) terminal.Grid {
	g := terminal.Grid{Heading: []string{"AT", "EPOCH", "WHAT", "STEP", "DETAILS"}}
	for _, e := range entries {
		g.Add(moment(e.At), strconv.Itoa(e.Epoch), terminal.Visible(strings.ReplaceAll(string(e.Type), "_", " ")),
			terminal.OrDash(terminal.Visible(e.Path)), terminal.OrDash(terminal.Clip(terminal.Visible(e.Data), shownError)))
	}
	return g
}

// printRuns prints the runs that an event started.
func (a *app) printRuns(runs []core.Run) {
	for _, r := range runs {
		a.Printf("\nrun %s of workflow %s: %s", terminal.Visible(string(r.ID)), terminal.Visible(r.Workflow), a.paintStatus(string(r.Status)))
		a.PrintField("  ", "step", terminal.Visible(r.Step))
		a.PrintField("  ", "finished", core.FormatTime(r.FinishedAt))
		a.PrintField("  ", "error", terminal.Visible(r.Error))
	}
}
