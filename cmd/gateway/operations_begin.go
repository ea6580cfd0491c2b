package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

const operationsBeginLong = `Begin an operation. What it does:

  retry    makes dead jobs available again, or canceled ones with --status canceled
  replay   gives stored events new jobs, of the consumers in --to or of all that want them
  cancel   ends jobs that wait
  redrive  begins failed workflow runs again, or canceled ones with --status canceled

All flags that are given must fit; at least one is needed. Relative times count from now. Shows
first how many there are and asks, unless -y is given; --dry-run only shows. Then shows the
progress until the end; Ctrl-C leaves the operation to the gateway that runs, as --detach does
at once. With --json each change is a line.

Without --url, this command does the slices itself if no gateway does.`

// newOperationsBegin makes "gateway operations begin". It asks POST /api/operations with --url, and
// manage.Operations otherwise. It exits with 2 if it cannot ask the user, and with 1 if the operation
// fails or is canceled before its end. No match is not an error.
func newOperationsBegin(a *app) *cobra.Command {
	var f operationFlags
	c := remotely(&cobra.Command{
		Use:   "begin <retry|replay|cancel|redrive>",
		Short: "Begin an operation and show its progress",
		Long:  operationsBeginLong,
		Example: `  gateway operations begin retry --handler billing --error timeout --since 1d
  gateway operations begin replay --source shop --match '$.customer == c7' --to billing
  gateway operations begin cancel --handler mail --until 2006-01-02 --dry-run
  gateway operations begin redrive --handler workflow/fulfil-order -y --detach`,
		Args: arguments(1, 1, "the action, one of retry, replay, cancel, redrive,"),
		RunE: func(c *cobra.Command, args []string) error {
			action, err := core.ParseAction(args[0])
			if err != nil {
				return usageError(err.Error())
			}
			op, err := f.operation(action, a.clock())
			if err != nil {
				return err
			}
			if !f.dry && !f.yes && !a.attended {
				return usagef("nobody can be asked here: say -y to begin, or --dry-run to count")
			}
			return a.ask(c.Context(), func(o *operator) error { return a.begin(c, o, op, f) })
		},
	})
	f.register(a, c)
	c.ValidArgs = []cobra.Completion{"retry", "replay", "cancel", "redrive"}
	return c
}

// operationFlags are the flags of a command that begins an operation.
type operationFlags struct {
	handler, status, failure, match string
	to                              []string
	rate                            int
	dry, yes, detach                bool
	selection
}

func (f *operationFlags) register(a *app, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.handler, "handler", "", "only jobs of this `handler`, of queue/<name> or alert/<number>; of a redrive, runs of workflow/<name>")
	flags.StringVar(&f.status, "status", "", "only jobs or runs with this `status`")
	f.registerCommon(a, c, "events received, jobs or runs made")
	flags.StringVar(&f.match, "match", "", "of a replay: only events for which this `expression` is true; it is written like the filter of a handler")
	flags.StringArrayVar(&f.to, "to", nil, "of a replay: new jobs only for this `handler`, queue/<name> or workflow/<name>; may be given again")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	a.complete(c, "handler", a.consumerNames)
	a.complete(c, "to", a.consumerNames)
	a.complete(c, "status", statusNames)
}

// commonFlags are the flags of registerCommon.
var commonFlags = []string{"source", "event-type", "since", "until", "error", "rate", "dry-run", "detach"}

// registerCommon adds the flags that a retry has too. records is the word for the records
// that --since and --until select.
func (f *operationFlags) registerCommon(a *app, c *cobra.Command, records string) {
	flags := c.Flags()
	flags.StringVar(&f.source, "source", "", "only events of this `source`, or their jobs or runs")
	flags.StringVarP(&f.eventType, "event-type", "t", "", "only events of "+exactType+", or their jobs or runs")
	f.timeFlags.register(c, records)
	flags.StringVar(&f.failure, "error", "", "only jobs or runs whose last error contains this `text`")
	flags.IntVar(&f.rate, "rate", core.DefaultRate, fmt.Sprintf("act on `n` matches a second, 1 to %d", core.MaxRate))
	flags.BoolVar(&f.dry, "dry-run", false, "show what it would do, and change nothing")
	flags.BoolVar(&f.detach, "detach", false, "begin it, and do not wait for its end")
	a.complete(c, "source", a.sourceNames)
	a.complete(c, "event-type", a.recentTypes)
}

// operation returns the operation of the flags. Its texts are the server's to check.
func (f *operationFlags) operation(action core.Action, now time.Time) (op core.Operation, err error) {
	op.Action, op.Rate = action, f.rate
	if f.rate < 1 || f.rate > core.MaxRate {
		return op, usagef("--rate must be 1 to %d, not %d", core.MaxRate, f.rate)
	}
	if op.Filter.Lane, err = consumerLane(f.handler); err != nil {
		return op, err
	}
	events, err := f.selection.parse(now)
	if err != nil {
		return op, err
	}
	op.Filter.Source, op.Filter.Type, op.Filter.Since, op.Filter.Until = events.Source, events.Type, events.Since, events.Until
	op.Filter.Status, op.Filter.Error, op.Filter.Match = f.status, f.failure, f.match
	for _, name := range f.to {
		lane, ok := wire.ParseTarget(name)
		if !ok || lane.Source() != "" {
			return op, usagef("--to must be the name of a handler, or queue/ or workflow/ and the name of one; not %q", terminal.Clip(name, 80))
		}
		op.To = append(op.To, lane)
	}
	return op, checkFilter(op)
}

// checkFilter refuses flags that do not fit together, in the words of the flags. Everything else is
// refused by the service.
func checkFilter(op core.Operation) error {
	f := op.Filter
	if f == (core.OperationFilter{}) {
		return usagef("an operation on everything must be asked for: give at least one of --handler, --status, --source, --event-type, --since, --until, --error, --match")
	}
	if op.Action == core.ReplayAction {
		if f.Lane != "" || f.Status != "" || f.Error != "" {
			return usagef("a replay selects events: --handler, --status and --error are not for it; name its consumers with --to")
		}
		return nil
	}
	if f.Match != "" || len(op.To) > 0 {
		return usagef("--match and --to are for a replay only")
	}
	return nil
}

// begin plans an operation, asks, begins it, and shows its progress until its end.
func (a *app) begin(c *cobra.Command, o *operator, op core.Operation, f operationFlags) error {
	ctx := c.Context()
	total := 0
	if f.dry || !f.yes {
		plan, err := o.operations.Plan(ctx, op)
		switch {
		case err != nil:
			return err
		case f.dry && a.json:
			return a.PrintJSON(wire.OperationPlanOf(plan))
		case f.dry:
			a.printPlan(plan)
			return nil
		case plan.Matches == 0 && !plan.More:
			a.Notef("nothing matches")
			return nil
		}
		if err := a.confirm(ctx, plannedText(plan)); err != nil {
			return err
		}
		if !plan.More {
			total = plan.Matches
		}
	}
	begun, err := o.operations.Begin(ctx, op)
	if err != nil {
		return err
	}
	if f.detach {
		return a.printBegun(c, begun)
	}
	follow := follower{app: a, command: c, total: total, stalled: a.clock().Add(stallNote)}
	return follow.end(o.finish(ctx, begun.ID, follow.seen))
}

// finish waits for the end of an operation. On a database it also does slices while no gateway does them.
func (o *operator) finish(ctx context.Context, id core.ID, seen func(core.Operation)) (core.Operation, error) {
	if o.drive != nil {
		return o.drive(ctx, id, seen)
	}
	return poll(ctx, o.operations, id, seen)
}

// printBegun prints an operation that this command does not wait for.
func (a *app) printBegun(c *cobra.Command, op core.Operation) error {
	if a.json {
		return a.PrintJSONLine(wire.OperationOf(op))
	}
	a.Printf("operation %s is begun", op.ID)
	a.Notef("a gateway that runs does it; to see how far it is: %s", a.commandLine("gateway operations watch "+string(op.ID), c.InheritedFlags()))
	return nil
}

// matchesText returns the number of matches of a plan with their noun.
func matchesText(p manage.Plan) string {
	noun := map[core.Action]string{core.ReplayAction: "event", core.RedriveAction: "run"}[p.Operation.Action]
	if noun == "" {
		noun = "job"
	}
	text := terminal.Count(p.Matches, noun)
	if p.More {
		text = "at least " + text
	}
	return text
}

// plannedText returns the plan of an operation as a part of a question.
func plannedText(p manage.Plan) string {
	text := string(p.Operation.Action) + " " + matchesText(p)
	if len(p.Operation.To) > 0 {
		text += " to " + strings.Join(wire.List(p.Operation.To, core.Lane.Consumer), ", ")
	}
	return fmt.Sprintf("%s, which takes about %s at %s", text, terminal.Span(p.Takes), rateText(p.Operation.Rate))
}

// printPlan prints the plan of an operation.
func (a *app) printPlan(p manage.Plan) {
	a.PrintField("", "would", string(p.Operation.Action)+" "+matchesText(p))
	if p.Skipped > 0 {
		a.PrintField("", "would skip", fmt.Sprint(p.Skipped))
	}
	a.PrintField("", "takes", fmt.Sprintf("about %s at %s", terminal.Span(p.Takes), rateText(p.Operation.Rate)))
	if len(p.Consumers) > 0 {
		a.Printf("")
		g := terminal.Grid{Heading: []string{"CONSUMER", heading(p.Operation.Action)}}
		for _, lane := range slices.Sorted(maps.Keys(p.Consumers)) {
			g.Add(terminal.Visible(lane.Consumer()), fmt.Sprint(p.Consumers[lane]))
		}
		a.PrintGrid(g)
	}
	if len(p.Sample) > 0 {
		a.Notef("among them: %s", strings.Join(wire.List(p.Sample, func(id core.ID) string { return string(id) }), ", "))
	}
}

// heading names the records that an operation counts for each consumer.
func heading(action core.Action) string {
	if action == core.RedriveAction {
		return "RUNS"
	}
	return "JOBS"
}
