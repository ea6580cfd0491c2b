package main

import (
	"bytes"
	"context"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

func newRunsInspect(a *app) *cobra.Command {
	var data bool
	c := &cobra.Command{
		Use:   "inspect <run id>",
		Short: "Show a run, its steps and its history",
		Long: `Show a workflow run: where it stands, the steps it has come to, and what happened when.

A step is ready (its call waits for a worker or for a retry, or its item for its turn),
running, waiting (for a time, or for a callback), succeeded, failed, canceled (another
branch failed, or somebody canceled the run) or skipped (the run's timeout came). Of a
parallel or map step ATTEMPT is how many of its branches or items have succeeded. After
a redrive these are the steps of the newest epoch; the history has that of all epochs.

With --data it shows the beginning of what each step received and passed on; --json has
all of it.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV
  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --data
  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --json | jq '.steps[] | {path, input, output}'`,
	}
	c.Flags().BoolVar(&data, "data", false, "show what the steps received and passed on")
	return a.runCommand(c, a.runsIn(""), func(ctx context.Context, runs runService, id core.ID) error {
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
		for page := first; yield(page, nil) && !page.Next.Zero(); {
			var err error
			if page, err = runs.Inspect(ctx, page.ID, page.Next, 0); err != nil {
				yield(page, err)
				return
			}
		}
	}
}

func (a *app) printInspected(run manage.Inspected, data bool) {
	a.printRun(run.Run)
	if len(run.Steps) > 0 {
		a.printf("")
		a.printGrid(a.stepGrid(run.Steps))
	}
	if data {
		a.printData(run.Steps)
	}
	if len(run.History) > 0 {
		a.printf("")
		a.printGrid(entryGrid(run.History))
	}
}

func (a *app) printRun(r core.Run) {
	a.field("", "run", visible(string(r.ID)))
	a.field("", "workflow", visible(r.Workflow))
	a.field("", "event", visible(string(r.EventID)))
	a.field("", "status", a.paintStatus(string(r.Status)))
	a.field("", "step", visible(r.Step))
	if r.Epoch > 1 {
		a.field("", "epoch", strconv.Itoa(r.Epoch))
	}
	a.field("", "created", moment(r.CreatedAt))
	a.field("", "started", core.FormatTime(r.StartedAt))
	if !r.Status.Finished() {
		a.field("", "deadline", core.FormatTime(r.DeadlineAt))
	}
	a.field("", "finished", core.FormatTime(r.FinishedAt))
	a.field("", "error", visible(r.Error))
	a.field("", "output", clip(visible(string(r.Output)), shownData))
}

func (a *app) stepGrid(steps []core.Step) grid {
	g := grid{heading: []string{"STEP", "TYPE", "STATUS", "ATTEMPT", "STARTED", "FINISHED", "ERROR"}}
	for _, s := range steps {
		g.add(visible(s.Path), visible(s.Type), a.paintStatus(string(s.Status)), stepAttempt(s),
			moment(s.StartedAt), moment(s.FinishedAt), orDash(clip(visible(s.Error), shownError)))
	}
	return g
}

// stepAttempt returns the number of attempts at a step. For a parallel or map step it returns
// how many of its branches or items have succeeded.
func stepAttempt(s core.Step) string {
	if s.Type == "parallel" || s.Type == "map" {
		if s.Fan.Total == wire.Untold {
			return "-"
		}
		return strconv.Itoa(s.Fan.Ended) + "/" + strconv.Itoa(s.Fan.Total)
	}
	return strconv.Itoa(s.Attempt)
}

// shownData is the number of characters of a document that are shown.
const shownData = 200

func (a *app) printData(steps []core.Step) {
	for _, s := range steps {
		a.printf("\nstep %s", visible(s.Path))
		a.field("  ", "received", clip(visible(string(s.State)), shownData))
		a.field("  ", "passed on", clip(visible(string(s.Output)), shownData))
	}
}

func entryGrid(entries []core.Entry) grid {
	g := grid{heading: []string{"AT", "EPOCH", "WHAT", "STEP", "DETAILS"}}
	for _, e := range entries {
		g.add(moment(e.At), strconv.Itoa(e.Epoch), visible(strings.ReplaceAll(string(e.Type), "_", " ")),
			orDash(visible(e.Path)), orDash(clip(visible(e.Data), shownError)))
	}
	return g
}

// printRuns prints the runs that an event started.
func (a *app) printRuns(runs []core.Run) {
	for _, r := range runs {
		a.printf("\nrun %s of workflow %s: %s", visible(string(r.ID)), visible(r.Workflow), a.paintStatus(string(r.Status)))
		a.field("  ", "step", visible(r.Step))
		a.field("  ", "finished", core.FormatTime(r.FinishedAt))
		a.field("  ", "error", visible(r.Error))
	}
}
