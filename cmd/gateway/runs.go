package main

import (
	"context"
	"strconv"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newRuns makes "gateway workflow-runs", which only holds other commands. The alias "runs"
// saves typing; scripts and texts use the long name, since it is the API's.
func newRuns(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:     "workflow-runs",
		Aliases: []string{"runs"},
		Short:   "Look into workflow runs, redrive failed ones, cancel",
		Long: `A workflow run is one way through a workflow, for one event. It is pending (nothing
has been done yet), running (a step is under way, or waits), completed, failed or canceled (by an operator).
Failed and canceled runs can be redriven.`,
		Example: `  gateway workflow-runs list --status failed
  gateway workflow-runs inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV
  gateway workflow-runs redrive 01JB2Q8Z1TN5W3C4E7G9HKMRSV --from failed`,
		GroupID: groupInspect,
	}, newRunsList(a), newRunsInspect(a), newRunsRedrive(a), newRunsCancel(a))
}

// runCommand makes a command about one run.
func (a *app) runCommand(c *cobra.Command, offered completer, run func(ctx context.Context, runs runService, id core.ID) error) *cobra.Command {
	// All commands about one run parse its id in the same way, and offer only runs that the
	// command can change.
	c.Args = arguments(1, 1, "the run id")
	c.ValidArgsFunction = a.completeArgument(offered)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := parseID(args[0])
		if err != nil {
			return err
		}
		return a.ask(c.Context(), func(op *operator) error { return run(c.Context(), op.runs, id) })
	}
	return remotely(c)
}

// newRunsList makes "gateway workflow-runs list": the newest runs, a page at a time. It asks
// GET /api/workflow-runs with --url, and manage.Runs.List otherwise. The filter is checked here
// before a database or a server is asked, so that a mistyped status is a usage error (exit code
// 2).
func newRunsList(a *app) *cobra.Command {
	var (
		page          pageFlags
		filter        core.RunFilter
		status, event string
	)
	c := remotely(&cobra.Command{
		Use:   "list",
		Short: "List workflow runs, newest first",
		Long: `List workflow runs, newest first. STEP is where a run is, or ended.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway workflow-runs list --status failed
  gateway workflow-runs list --workflow fulfil-order --limit 10
  gateway workflow-runs list --json | jq -r '.workflow_runs[].error'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if filter.After, filter.Limit, err = page.parse(); err != nil {
				return err
			}
			if status != "" {
				if filter.Status, err = core.ParseRunStatus(status); err != nil {
					return usageError(err.Error())
				}
			}
			if event != "" {
				if filter.EventID, err = parseID(event); err != nil {
					return err
				}
			}
			return a.runsList(c, filter)
		},
	})
	page.register(c)
	c.Flags().StringVar(&status, "status", "", "only runs with this `status`: pending, running, completed, failed or canceled")
	c.Flags().StringVar(&filter.Workflow, "workflow", "", "only runs of this `workflow`")
	c.Flags().StringVar(&event, "event", "", "only runs that the event with this `id` started")
	a.complete(c, "status", runStatusNames)
	a.complete(c, "workflow", a.workflowNames)
	a.complete(c, "event", a.recentEvents)
	return c
}

// runsList prints one page of runs, and on standard error the command for the next page.
func (a *app) runsList(c *cobra.Command, filter core.RunFilter) error {
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.runs.List(c.Context(), filter)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.RunsOf(page))
		case len(page.Items) == 0:
			a.Notef("no workflow runs")
			return nil
		}
		a.PrintGrid(a.runGrid(page.Items))
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// runGrid returns the table of a page of runs. Errors are clipped, since one long error would
// break all lines of the table in a terminal.
func (a *app) runGrid(runs []core.Run) terminal.Grid {
	g := terminal.Grid{Heading: []string{"ID", "WORKFLOW", "EVENT", "STATUS", "STEP", "CREATED", "FINISHED", "ERROR"}}
	for _, r := range runs {
		g.Add(terminal.Visible(string(r.ID)), terminal.Visible(r.Workflow), terminal.Visible(string(r.EventID)), a.paintStatus(string(r.Status)),
			terminal.OrDash(terminal.Visible(r.Step)), moment(r.CreatedAt), moment(r.FinishedAt), terminal.OrDash(terminal.Clip(terminal.Visible(r.Error), listedError)))
	}
	return g
}

// newRunsRedrive makes "gateway workflow-runs redrive": a failed or canceled run continues in
// its next epoch. It asks POST /api/workflow-runs/{id}/redrive with --url, and
// manage.Runs.Redrive otherwise. It exits with 1 if the run is unknown or not finished.
//
// The stored definition is the default: a run that failed halfway may have results that only
// fit the steps that it began with. The user has to ask for the present definition.
func newRunsRedrive(a *app) *cobra.Command {
	var from, definition string
	c := &cobra.Command{
		Use:   "redrive <run id>",
		Short: "Begin a failed or canceled run anew",
		Long: `Begin a failed or canceled run anew: from its first step, or where it ended. It has the
same payload and follows the same definition as before, also if the configuration has
another one by now. From where it ended, steps that succeeded keep their results and are
not called again. A running gateway picks it up by itself.

With --definition current the run follows the workflow as it is configured now. From where
it ended, that must have the steps that the run has come to, with the same names, types
and branches.`,
		Example: `  gateway workflow-runs redrive 01JB2Q8Z1TN5W3C4E7G9HKMRSV
  gateway workflow-runs redrive 01JB2Q8Z1TN5W3C4E7G9HKMRSV --from failed
  gateway workflow-runs redrive 01JB2Q8Z1TN5W3C4E7G9HKMRSV --from failed --definition current`,
	}
	c.Flags().StringVar(&from, "from", string(manage.FromStart), "`point` to begin at: start, the first step; or failed, the steps that failed or were canceled")
	a.complete(c, "from", func(*cobra.Command) []cobra.Completion {
		return []cobra.Completion{string(manage.FromStart), string(manage.FromFailed)}
	})
	c.Flags().StringVar(&definition, "definition", string(manage.FollowStored), "`which` definition to follow: stored (the definition of the run) or current (of the configuration)")
	a.complete(c, "definition", func(*cobra.Command) []cobra.Completion {
		return []cobra.Completion{string(manage.FollowStored), string(manage.FollowCurrent)}
	})
	var how manage.Redrive
	// The flags are parsed before the database is opened, so that a mistake in them is a usage
	// error.
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		if how.From, err = manage.ParseFrom(from); err == nil {
			how.Definition, err = manage.ParseFollow(definition)
		}
		if err != nil {
			return usageError("--" + err.Error())
		}
		return nil
	}
	return a.runCommand(c, a.runsIn(core.RunFailed, core.RunCanceled), func(ctx context.Context, runs runService, id core.ID) error {
		run, err := runs.Redrive(ctx, id, how)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.RedrivenOf(run))
		}
		// The difference is reported even if the user did not ask: a repaired workflow in the
		// configuration has no effect on this run.
		if run.Changed {
			a.Notef("the configuration has another definition of %s by now; this run follows the one that it has (see --definition)", terminal.Visible(run.Workflow))
		}
		return a.printMoved(run.Run, "is pending again, in epoch "+strconv.Itoa(run.Epoch))
	})
}

// newRunsCancel makes "gateway workflow-runs cancel": a pending or running run ends now. It
// asks POST /api/workflow-runs/{id}/cancel with --url, and manage.Runs.Cancel otherwise. It
// does not ask the user before, unlike a drain: a canceled run can be redriven, so nothing is
// lost. It exits with 1 if the run is unknown or finished already.
func newRunsCancel(a *app) *cobra.Command {
	return a.runCommand(&cobra.Command{
		Use:   "cancel <run id>",
		Short: "End a run that is not finished",
		Long: `End a run that is pending or running, as canceled. No step of it starts any more. A
call that is under way is not called back; the step keeps its answer for a redrive. No
alert reports the run. It can be redriven.`,
		Example: "  gateway workflow-runs cancel 01JB2Q8Z1TN5W3C4E7G9HKMRSV",
	}, a.runsIn(core.RunPending, core.RunRunning), func(ctx context.Context, runs runService, id core.ID) error {
		run, err := runs.Cancel(ctx, id)
		if err != nil {
			return err
		}
		return a.printMoved(run, "is canceled")
	})
}

// printMoved prints the new state of a run.
func (a *app) printMoved(run core.Run, now string) error {
	if a.json {
		return a.PrintJSON(wire.RunOf(run))
	}
	a.Printf("workflow run %s of %s %s", terminal.Visible(string(run.ID)), terminal.Visible(run.Workflow), now)
	return nil
}
