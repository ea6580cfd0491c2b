package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// An operationService plans, begins, reads and ends operations; see [manage.Operations].
type operationService interface {
	Begin(ctx context.Context, op core.Operation) (core.Operation, error)
	Plan(ctx context.Context, op core.Operation) (manage.Plan, error)
	List(ctx context.Context, after core.ID, limit int) (core.Page[core.Operation], error)
	Operation(ctx context.Context, id core.ID) (core.Operation, error)
	Cancel(ctx context.Context, id core.ID) (core.Operation, error)
}

// newOperations makes "gateway operations", which only holds other commands.
func newOperations(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "operations",
		Short: "Retry, replay, cancel or redrive all that a filter selects",
		Long: `An operation acts on all jobs, events or workflow runs that a filter selects: it is
stored, and done slice by slice at a rate, so that live events do not wait for it. It goes on
if this command, or the gateway that does it, ends. It acts once on each match, and on nothing that
came to be, died or failed after it was begun.`,
		Example: `  gateway operations begin retry --handler billing --error timeout --dry-run
  gateway operations begin replay --source shop --match '$.customer == c7' --to billing
  gateway operations list
  gateway operations cancel 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
		GroupID: groupInspect,
	}, newOperationsBegin(a), newOperationsList(a), newOperationsInspect(a), newOperationsWatch(a), newOperationsCancel(a))
}

// newOperationsList makes "gateway operations list": a page of operations, newest first. It asks GET
// /api/operations with --url, and manage.Operations.List otherwise.
func newOperationsList(a *app) *cobra.Command {
	var page pageFlags
	c := remotely(&cobra.Command{
		Use:   "list",
		Short: "List operations, newest first",
		Long: `List operations, newest first, with their progress. ACTED is how many matches one has
acted on, and SKIPPED how many it left alone, such as jobs that were being delivered.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway operations list
  gateway operations list --json | jq -r '.operations[] | select(.state == "running") | .id'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			after, limit, err := page.parse()
			if err != nil {
				return err
			}
			return a.operationsList(c, after, limit)
		},
	})
	page.register(c)
	return c
}

// operationsList prints one page of operations, and on standard error the command for the next page.
func (a *app) operationsList(c *cobra.Command, after core.ID, limit int) error {
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.operations.List(c.Context(), after, limit)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.OperationsOf(page))
		case len(page.Items) == 0:
			a.Notef("no operations")
			return nil
		}
		g := terminal.Grid{Heading: []string{"ID", "ACTION", "STATE", "ACTED", "SKIPPED", "BEGUN", "BY", "FILTER"}}
		for _, o := range page.Items {
			g.Add(string(o.ID), string(o.Action), string(o.State), strconv.Itoa(o.Acted), strconv.Itoa(o.Skipped), moment(o.CreatedAt),
				terminal.OrDash(terminal.Visible(o.By)), terminal.Visible(filterText(o)))
		}
		a.PrintGrid(g)
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// filterText returns the filter of an operation in the words of its flags.
func filterText(o core.Operation) string {
	f := o.Filter
	var words []string
	add := func(flag, value string) {
		if value != "" {
			words = append(words, "--"+flag+" "+shellQuote(value))
		}
	}
	add("handler", f.Lane.Consumer())
	add("status", f.Status)
	add("source", f.Source)
	add("event-type", f.Type)
	add("since", core.FormatTime(f.Since))
	add("until", core.FormatTime(f.Until))
	add("error", f.Error)
	add("match", f.Match)
	add("delivery-id", f.DeliveryID)
	add("from", string(f.First))
	add("to", string(f.Last)) // as of "events replay"; below it is a consumer
	for _, l := range o.To {
		add("to", l.Consumer())
	}
	return strings.Join(words, " ")
}

// newOperationsInspect makes "gateway operations inspect": one operation. It asks GET
// /api/operations/{id} with --url, and manage.Operations.Operation otherwise.
func newOperationsInspect(a *app) *cobra.Command {
	return a.operationCommand(&cobra.Command{
		Use:   "inspect <operation id>",
		Short: "Show an operation and how far it is",
		Long: `Show an operation: its filter and rate, who began it, and how far it is.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway operations inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
	}, func(c *cobra.Command, op *operator, id core.ID) error {
		o, err := op.operations.Operation(c.Context(), id)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.OperationOf(o))
		}
		a.printOperation(o)
		return nil
	})
}

// printOperation prints the fields of an operation.
func (a *app) printOperation(o core.Operation) {
	a.PrintField("", "operation", string(o.ID))
	a.PrintField("", "action", string(o.Action))
	a.PrintField("", "filter", terminal.Visible(filterText(o)))
	a.PrintField("", "rate", rateText(o.Rate))
	if o.By != "" {
		a.PrintField("", "begun by", terminal.Visible(o.By))
	}
	a.PrintField("", "begun", moment(o.CreatedAt))
	a.PrintField("", "state", string(o.State))
	if o.Error != "" {
		a.PrintField("", "error", terminal.Visible(o.Error))
	}
	a.PrintField("", "looked at", strconv.Itoa(o.Looked))
	a.PrintField("", "acted on", strconv.Itoa(o.Acted))
	a.PrintField("", "skipped", strconv.Itoa(o.Skipped))
	a.PrintField("", "first slice", moment(o.StartedAt))
	a.PrintField("", "ended", moment(o.FinishedAt))
}

// rateText returns a rate for people.
func rateText(rate int) string {
	if rate == 0 {
		return "as fast as the database takes it"
	}
	return strconv.Itoa(rate) + " a second"
}

// newOperationsWatch makes "gateway operations watch": it shows the progress of an operation until its
// end. It asks GET /api/operations/{id} again and again with --url, and reads the database otherwise. It
// exits with 1 if the operation fails or is canceled.
func newOperationsWatch(a *app) *cobra.Command {
	return a.operationCommand(&cobra.Command{
		Use:   "watch <operation id>",
		Short: "Show the progress of an operation until its end",
		Long: `Show how far an operation is until it ends. With --json each change is a line. Ctrl-C ends
only this command.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway operations watch 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
	}, func(c *cobra.Command, op *operator, id core.ID) error {
		f := follower{app: a, command: c, stalled: a.clock().Add(stallNote)}
		return f.end(poll(c.Context(), op.operations, id, f.seen))
	})
}

// newOperationsCancel makes "gateway operations cancel": an operation ends after its present slice. It
// asks POST /api/operations/{id}/cancel with --url, and manage.Operations.Cancel otherwise. An operation
// that is over is refused (exit code 1).
func newOperationsCancel(a *app) *cobra.Command {
	return a.operationCommand(&cobra.Command{
		Use:   "cancel <operation id>",
		Short: "End an operation",
		Long: `End an operation after the slice that is being done. Its changes until then stay. An
operation that is over is refused.`,
		Example: `  gateway operations cancel 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
	}, func(c *cobra.Command, op *operator, id core.ID) error {
		o, err := op.operations.Cancel(c.Context(), id)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.OperationOf(o))
		}
		a.Printf("operation %s is canceled; %s until then", o.ID, doneText(o))
		return nil
	})
}

// operationCommand completes a command whose argument is the id of an operation.
func (a *app) operationCommand(c *cobra.Command, run func(*cobra.Command, *operator, core.ID) error) *cobra.Command {
	c.Args = arguments(1, 1, "the operation id")
	c.ValidArgsFunction = a.completeArgument(a.recentOperations)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := parseID(args[0])
		if err != nil {
			return err
		}
		return a.ask(c.Context(), func(op *operator) error { return run(c, op, id) })
	}
	return remotely(c)
}

// poll reads an operation again and again until it is over, and calls seen after each look.
func poll(ctx context.Context, operations operationService, id core.ID, seen func(core.Operation)) (core.Operation, error) {
	for tick := time.NewTicker(pollRest); ; {
		o, err := operations.Operation(ctx, id)
		if err != nil {
			return o, err
		}
		seen(o)
		if o.State != core.OperationRunning {
			tick.Stop()
			return o, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return o, ctx.Err()
		}
	}
}

// pollRest is the time between two looks at an operation.
const pollRest = 500 * time.Millisecond
