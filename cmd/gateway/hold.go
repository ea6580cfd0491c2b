package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/units"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// A holdService holds and releases handlers, queues, workflows and sources; see [manage.Holds].
type holdService interface {
	List(ctx context.Context) ([]core.Hold, error)
	Hold(ctx context.Context, lane core.Lane, until time.Time, reason string) (core.Hold, error)
	Release(ctx context.Context, lane core.Lane) (bool, error)
}

// newHold makes "gateway hold": jobs of a consumer or of a source's events wait until it is
// released, or until a time. It asks POST /api/holds with --url, and manage.Holds.Hold otherwise. A second hold
// exits with 0 and changes the end and the reason.
//
// The hold is stored in the gate of the lane, and each claim reads the gates of its lanes and of
// the sources: so it counts for every process of the database from its commit on.
func newHold(a *app) *cobra.Command {
	var until, reason string
	c := remotely(&cobra.Command{
		Use:   "hold <handler|queue/name|workflow/name|source/name>",
		Short: "Stop a handler, queue, workflow or source without losing its jobs",
		Long: `Hold a handler, a queue or a workflow: its jobs wait until it is released, or until the
time of --until. Events are accepted as always and get their jobs. Deliveries under way
end as usual, and no job loses an attempt. Consumers of a held queue receive nothing.
The deadlines of a workflow go on.

Hold a source: the jobs of its events wait, for all handlers, queues and workflows. Its events
are accepted as always, and jobs of other sources go on. A source of type cron makes no
events meanwhile: its times are skipped and counted.

The hold counts for all processes of the database at once, and outlives restarts and
changes of the configuration. Holding again changes the end and the reason.`,
		Example: `  gateway hold billing --reason "their database is being moved"
  gateway hold queue/orders --until 2h
  gateway hold workflow/fulfil-order --until 2006-01-02T06:00:00
  gateway hold source/github --reason "wrong prices since noon"`,
		GroupID:           groupInspect,
		Args:              arguments(1, 1, "the handler, or queue/, workflow/ or source/ and a name"),
		ValidArgsFunction: a.completeArgument(a.holdable),
		RunE: func(c *cobra.Command, args []string) error {
			return a.hold(c.Context(), args[0], until, reason)
		},
	})
	c.Flags().StringVar(&until, "until", "", "release it by itself at this `time`, such as 2006-01-02T15:04:05 (UTC), or 2h for in two hours")
	c.Flags().StringVar(&reason, "reason", "", "the reason, as a `text` that is shown with the jobs that wait")
	return c
}

// hold holds a target, and says until when.
func (a *app) hold(ctx context.Context, target, until, reason string) error {
	lane, err := targetLane(target)
	if err != nil {
		return err
	}
	return a.ask(ctx, func(op *operator) error {
		end, err := parseEnd("--until", until, a.clock())
		if err != nil {
			return err
		}
		hold, err := op.holds.Hold(ctx, lane, end, reason)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.HoldOf(hold))
		}
		name := terminal.Visible(target)
		if hold.Until.IsZero() {
			a.Printf("%s is held until %q", name, "gateway release "+name)
		} else {
			a.Printf("%s is held until %s", name, core.FormatTime(hold.Until))
		}
		if note := holdNote(lane); note != "" {
			a.Notef("%s", note)
		}
		return nil
	})
}

// holdNote names the work that goes on although a lane is held; "" if none does.
func holdNote(lane core.Lane) string {
	switch {
	case lane.Workflow() != "":
		return "deadlines of its runs go on"
	case lane.Source() != "":
		return "its events are stored; their jobs wait. Deadlines of workflow runs go on"
	}
	return ""
}

// targetLane returns the lane of an argument.
func targetLane(target string) (core.Lane, error) {
	if lane, ok := wire.ParseTarget(target); ok {
		return lane, nil
	}
	return "", usagef("the target must be the name of a handler, or queue/, workflow/ or source/ and the name of one; not %q", terminal.Clip(target, 80))
}

// parseEnd reads a time, or a duration from now. An empty text is the zero time. A number
// without a unit is refused: it might be a year.
func parseEnd(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := core.ParseTime(text); err == nil {
		return t, nil
	}
	_, notNumber := strconv.Atoi(text)
	if in, err := units.ParseDuration(text); err == nil && notNumber != nil {
		return now.Add(in.Duration).Truncate(time.Millisecond), nil
	}
	return time.Time{}, usagef("%s must be a time such as 2006-01-02T15:04:05 (UTC) or 2006-01-02T15:04:05+09:00, a date, or a duration from now on, such as 30m, 2h or 1d; not %q", flag, terminal.Clip(text, 40))
}

// newRelease makes "gateway release": the end of a hold. It asks DELETE /api/holds with --url,
// and manage.Holds.Release otherwise. A target that is not held exits with 0, since the wanted
// state is reached; an unknown one exits with 1.
func newRelease(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "release <handler|queue/name|workflow/name|source/name>",
		Short: "Let a held handler, queue, workflow or source go on",
		Long: `End the hold of a handler, queue, workflow or source. Deliveries and steps go on slowly
for ten seconds, as after a circuit breaker closed; consumers of a queue get messages at
once. A running gateway notices within 1.25 s, with hosted_sql within 6.25 s. A schedule
goes on with its next time, and does not make up for the times that were skipped.`,
		Example: `  gateway release billing
  gateway release queue/orders --url https://events.example.com`,
		GroupID:           groupInspect,
		Args:              arguments(1, 1, "the handler, or queue/, workflow/ or source/ and a name"),
		ValidArgsFunction: a.completeArgument(a.heldNames),
		RunE:              func(c *cobra.Command, args []string) error { return a.release(c.Context(), args[0]) },
	})
}

// release ends a hold and says whether there was one.
func (a *app) release(ctx context.Context, target string) error {
	lane, err := targetLane(target)
	if err != nil {
		return err
	}
	return a.ask(ctx, func(op *operator) error {
		was, err := op.holds.Release(ctx, lane)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.Released{Released: was})
		case !was:
			a.Notef("%s is not held", terminal.Visible(target))
			return nil
		}
		a.Printf("%s is released", terminal.Visible(target))
		return nil
	})
}

// newHolds makes "gateway holds": one row for each hold that has not ended. It asks
// GET /api/holds with --url, and manage.Holds.List otherwise.
func newHolds(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "holds",
		Short: "List the holds, since when and why",
		Long: `List the held handlers, queues, workflows and sources: since when, until when and why. The
list also has targets that are in the configuration no more.`,
		Example: `  gateway holds
  gateway holds --json | jq -r '.holds[].target'`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.listHolds(c.Context()) },
	})
}

// listHolds prints the holds.
func (a *app) listHolds(ctx context.Context) error {
	return a.ask(ctx, func(op *operator) error {
		all, err := op.holds.List(ctx)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.Holds{Holds: wire.List(all, wire.HoldOf)})
		case len(all) == 0:
			a.Notef("nothing is held")
			return nil
		}
		g := terminal.Grid{Heading: []string{"TARGET", "SINCE", "UNTIL", "REASON"}}
		for _, h := range all {
			until := "released"
			if !h.Until.IsZero() {
				until = core.FormatTime(h.Until)
			}
			g.Add(terminal.Visible(h.Lane.Consumer()), core.FormatTime(h.Since), until, terminal.OrDash(terminal.Visible(h.Reason)))
		}
		a.PrintGrid(g)
		return nil
	})
}

// holdText says since when, until when and why a lane is held, for a job that waits for it.
func holdText(name string, since, until time.Time, reason string) string {
	text := fmt.Sprintf("%s is held since %s", name, moment(since))
	if !until.IsZero() {
		text += " until " + moment(until)
	}
	if reason != "" {
		text += ": " + terminal.Visible(reason)
	}
	return text
}
