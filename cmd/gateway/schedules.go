package main

import (
	"context"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// A scheduleService fires sources of type cron; see [manage.Schedules].
type scheduleService interface {
	Fire(ctx context.Context, source string) (manage.Fired, error)
}

// newSchedules makes "gateway schedules", which only holds the command fire: "gateway topology" lists the
// schedules.
func newSchedules(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "schedules",
		Short: "Fire a schedule now",
		Long: `A source of type cron makes an event at each time of its schedule. "gateway topology" lists
these sources and their schedules.`,
		Example: `  gateway schedules fire nightly`,
		GroupID: groupInspect,
	}, newSchedulesFire(a))
}

// newSchedulesFire makes "gateway schedules fire": an event of a source now. It asks
// POST /api/schedules/{source}/fire with --url, and manage.Schedules.Fire otherwise.
func newSchedulesFire(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "fire <source>",
		Short: "Make an event of a schedule now",
		Long: `Make an event of a source of type cron now, beside the times of its schedule: none of these
is skipped for it. Its payload has the time in scheduled_at, and in fired_at as well, which events
of the schedule do not have. Each call makes another event.

If the source is held, the event is stored and its jobs wait until the source is released.`,
		Example: `  gateway schedules fire nightly
  gateway schedules fire nightly --url https://events.example.com`,
		Args:              arguments(1, 1, "the source"),
		ValidArgsFunction: a.completeArgument(a.cronNames),
		RunE:              func(c *cobra.Command, args []string) error { return a.fireSchedule(c.Context(), args[0]) },
	})
}

// fireSchedule fires a source, and says which event it made.
func (a *app) fireSchedule(ctx context.Context, source string) error {
	return a.ask(ctx, func(op *operator) error {
		fired, err := op.schedules.Fire(ctx, source)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.FiredOf(fired))
		}
		name := terminal.Visible(source)
		a.Printf("%s was fired at %s: event %s, %s", name, core.FormatTime(fired.At), fired.Event, terminal.Count(fired.Jobs, "job"))
		if fired.Held {
			a.Notef("%s is held: the jobs wait until %q", name, "gateway release source/"+name)
		}
		return nil
	})
}
