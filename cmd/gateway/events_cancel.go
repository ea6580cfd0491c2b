package main

import (
	"fmt"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newEventsCancel makes "gateway events cancel": the jobs of events end unless they are under way.
// It asks POST /api/events/{id}/cancel with --url, and manage.Events.Cancel otherwise, event by
// event. It exits with 1 at the first event that is unknown; the events before it stay canceled.
//
// It does not ask the user before. A canceled job can be retried, and an event that must not be
// delivered should stop soon.
func newEventsCancel(a *app) *cobra.Command {
	c := remotely(&cobra.Command{
		Use:   "cancel <event id>...",
		Short: "End the jobs of events that are not under way",
		Long: `End the jobs of events as canceled, unless they are under way: jobs that are available,
scheduled or retryable, and jobs whose worker vanished. Workflow runs that no worker has
begun are canceled too. No alert reports a cancel.

A job that is running is left alone. If its attempt fails, it is tried again, unless the event
is canceled once more. A workflow run that is under way is left alone too;
"gateway workflow-runs cancel" ends it. "gateway jobs retry" brings a canceled job back.`,
		Example: `  gateway events cancel 01JB2Q8Z1SD2M8N3R6T0VWXYZA
  gateway events cancel --json 01JB2Q8Z1SD2M8N3R6T0VWXYZA 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
		Args: arguments(1, maxCanceled, "the event id"),
		RunE: func(c *cobra.Command, args []string) error {
			ids := make([]core.ID, len(args))
			for i, arg := range args {
				var err error
				if ids[i], err = parseID(arg); err != nil {
					return err
				}
			}
			return a.eventsCancel(c, ids)
		},
	})
	// Unlike completeArgument, this offers events for each further argument as well.
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.recentEvents(c), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// maxCanceled bounds the events of one command.
const maxCanceled = 1000

// eventsCancel cancels events one after the other. With --json it prints one record for each.
func (a *app) eventsCancel(c *cobra.Command, ids []core.ID) error {
	return a.ask(c.Context(), func(op *operator) error {
		for _, id := range ids {
			canceled, err := op.events.Cancel(c.Context(), id)
			if err != nil {
				if len(ids) > 1 {
					return fmt.Errorf("event %s: %w", id, err)
				}
				return err
			}
			if err := a.printCanceled(c, canceled); err != nil {
				return err
			}
		}
		return nil
	})
}

// printCanceled prints the counts of one event, and hints for the jobs and runs under way.
func (a *app) printCanceled(c *cobra.Command, done manage.Canceled) error {
	if a.json {
		return a.PrintJSON(wire.CanceledOf(done))
	}
	line := "event " + terminal.Visible(string(done.Event)) + ": " + terminal.Count(done.Canceled, "job") + " canceled"
	if n := len(done.CanceledRuns); n > 0 {
		line += ", " + terminal.Count(n, "workflow run") + " canceled"
	}
	if done.Running > 0 {
		line += fmt.Sprintf(", %d running", done.Running)
	}
	if done.Finished > 0 {
		line += fmt.Sprintf(", %d finished before", done.Finished)
	}
	a.Printf("%s", line)
	if done.Running > 0 {
		a.Notef("running jobs were left alone; one that fails is tried again, unless its event is canceled once more")
	}
	for _, run := range done.RunningRuns {
		a.Notef("workflow run %s is under way; to end it: %s", terminal.Visible(string(run)),
			a.commandLine("gateway workflow-runs cancel "+string(run), c.InheritedFlags()))
	}
	return nil
}
