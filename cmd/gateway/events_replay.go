package main

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const replayLong = `Deliver stored events again, by the current configuration: each gets new jobs for the
handlers and queues, and new runs for the workflows, that want it now, filters included.
Keys do not count: an event that was delivered before is delivered again.

Of the events that are selected, the newest are replayed, as many as --limit says, the
oldest of them first. Asks before, unless -y is given; --dry-run only counts. Events that
come in from then on are left out.

A replay is an operation, which goes on if this command ends; see "gateway operations". It is done
at once. With --url it is left to the gateway after about 20 seconds: the command then says so.
--from and --to replay all selected events from one event to another.

"gateway operations begin replay" replays all that match an expression, or to some consumers only,
at a rate.`

// newEventsReplay makes "gateway events replay": stored events get new jobs under the present
// configuration. It asks POST /api/events/replay with --url, and manage.Events.Replay
// otherwise. Every receiver gets the events again, so it asks before, unless -y
// is given. It exits with 2 if it cannot ask, and with 1 if the replay fails; then it says what goes on.
//
// It counts turn by turn, each a bounded number of events (manage.CountTurn). A gateway of an earlier
// version replays turn by turn too.
func newEventsReplay(a *app) *cobra.Command {
	var r replay
	c := &cobra.Command{
		Use:   "replay",
		Short: "Give stored events new jobs",
		Long:  replayLong,
		Example: `  gateway events replay --source shop -t order.created --since 2h
  gateway events replay --since 2024-10-01T09:00:00 --until 2024-10-01T10:00:00 --dry-run
  gateway events replay --delivery-id evt_1Q2w3e
  gateway events replay --limit 10 -y`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if r.filter, err = r.parse(c, a.clock()); err != nil {
				return err
			}
			return a.eventsReplay(c, r)
		},
	}
	r.register(a, c, exactType)
	r.registerDelivery(c)
	flags := c.Flags()
	flags.IntVarP(&r.limit, "limit", "l", manage.DefaultReplay, fmt.Sprintf("at most `n` events, 1 to %d", manage.MaxReplay))
	flags.StringVar(&r.from, "from", "", "those that are selected from the event with this `id` on, in place of the newest")
	flags.StringVar(&r.to, "to", "", "and up to the one with this `id`")
	flags.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&r.dry, "dry-run", false, "count the events and the jobs there would be, and change nothing")
	return remotely(c)
}

// A replay is the user's choice of events to replay.
type replay struct {
	selection
	from, to string
	limit    int
	yes, dry bool
	filter   core.EventFilter
	span     manage.Span // zero for the newest events
}

// parse checks the flags. The result selects either the newest events, or the span from --from
// to --to.
func (r *replay) parse(c *cobra.Command, now time.Time) (f core.EventFilter, err error) {
	if r.limit < 1 || r.limit > manage.MaxReplay {
		return f, usagef("--limit must be 1 to %d, not %d", manage.MaxReplay, r.limit)
	}
	if f, err = r.selection.parse(now); err != nil {
		return f, err
	}
	if !c.Flags().Changed("from") && !c.Flags().Changed("to") {
		f.Limit = r.limit
		return f, nil
	}
	if c.Flags().Changed("limit") {
		return f, usagef("give --limit, or --from and --to, not both")
	}
	r.span, err = parseSpan(r.from, r.to)
	return f, err
}

// parseSpan reads --from and --to. Ids sort by time, so ids and events have the same order.
func parseSpan(from, to string) (s manage.Span, err error) {
	if from == "" || to == "" {
		return s, usagef("--from and --to go together: give both, with the id of an event each")
	}
	if s.First, err = core.ParseID(from); err != nil {
		return s, usagef("--from: %v", err)
	}
	if s.Last, err = core.ParseID(to); err != nil {
		return s, usagef("--to: %v", err)
	}
	if s.First > s.Last {
		return s, usagef("--from must not be above --to")
	}
	return s, nil
}

// eventsReplay counts, asks, and replays. The count fixes the span of ids: events that come in
// between the question and the answer are not replayed.
func (a *app) eventsReplay(c *cobra.Command, r replay) error {
	if !r.dry && !r.yes && !a.attended {
		return usagef("nobody can be asked here: say -y to replay, or --dry-run to count")
	}
	return a.ask(c.Context(), func(op *operator) error {
		counted, err := a.countReplay(c.Context(), op.events, &r)
		switch {
		case err != nil:
			return err
		case r.dry || r.span == (manage.Span{}):
			return a.printReplayed("would replay", counted)
		case !r.yes && counted.Events == 0:
			return a.printReplayed("replayed", counted)
		case !r.yes:
			if err := a.confirm(c.Context(), "replay "+inWords(counted)); err != nil {
				return err
			}
		}
		done, err := a.replayCounted(c.Context(), op, r)
		a.noteUnfinished(c, r, done, err)
		if err != nil {
			return err
		}
		return a.printReplayed("replayed", done)
	})
}

// replayCounted replays the events of the span, and shows the progress.
func (a *app) replayCounted(ctx context.Context, op *operator, r replay) (manage.Replayed, error) {
	if op.replaying == nil {
		return a.replayTurns(ctx, op.events, r, false)
	}
	p := a.Progress()
	defer p.Clear()
	op.replaying(func(done manage.Replayed) { p.Show("replayed %s so far", inWords(done)) })
	return a.replayTurns(ctx, op.events, r, false)
}

// countReplay counts the events to replay, and fixes their span: events accepted after it are
// not part of the replay. It counts all of them for a dry run or a question to the user.
func (a *app) countReplay(ctx context.Context, events eventService, r *replay) (counted manage.Replayed, err error) {
	// Counting all turns reads every event once. With -y only the first turn is counted, for
	// the span.
	if r.dry || !r.yes {
		counted, err = a.replayTurns(ctx, events, *r, true)
	} else {
		counted, err = events.Replay(ctx, r.filter, r.span, true)
	}
	if r.span == (manage.Span{}) {
		r.span, r.filter.Limit = counted.Span, 0
	}
	return counted, err
}

// replayTurns counts or replays until the span is done, or left to an operation. After an error it
// returns the counts so far and, if there was a turn before, the id from which to continue.
func (a *app) replayTurns(ctx context.Context, events eventService, r replay, dry bool) (total manage.Replayed, err error) {
	p := a.Progress()
	defer p.Clear()
	filter, span, did := r.filter, r.span, "replayed"
	if dry {
		did = "counted"
	}
	for {
		done, err := events.Replay(ctx, filter, span, dry)
		// The counts of a failed turn are kept too, as far as the service returned them.
		total.Looked += done.Looked
		total.Events += done.Events
		total.Jobs += done.Jobs
		if total.Span == (manage.Span{}) {
			total.Span = done.Span
		}
		total.Going = done.Going
		switch {
		case err != nil:
			return total, err
		case done.Next == "":
			total.Next = ""
			return total, nil
		}
		total.Next = done.Next
		filter.Limit, span = 0, manage.Span{First: done.Next, Last: total.Last}
		p.Show("%s %s so far", did, inWords(total))
	}
}

// inWords returns the counts of a replay as a part of a sentence.
func inWords(r manage.Replayed) string {
	of := ""
	if r.Looked > r.Events {
		of = fmt.Sprintf(" of %d", r.Looked)
	}
	return terminal.Count(r.Events, "event") + of + ": " + terminal.Count(r.Jobs, "job")
}

// printReplayed prints the counts of a replay, done or not. The word did says which.
func (a *app) printReplayed(did string, r manage.Replayed) error {
	switch {
	case a.json:
		return a.PrintJSON(wire.ReplayedOf(r))
	case r.Looked == 0 && r.Events == 0:
		a.Notef("no events")
	case r.Events == 0:
		a.Notef("%s, which no handler, queue or workflow wants; \"gateway inspect <event id>\" says why", terminal.Count(r.Looked, "event"))
	default:
		a.Printf("%s %s", did, inWords(r))
	}
	return nil
}

// noteUnfinished says how a replay that is not done goes on: by an operation, or by the command that it
// prints if a gateway of an earlier version failed in the middle. That gateway may have replayed some of
// the next events too.
func (a *app) noteUnfinished(c *cobra.Command, r replay, done manage.Replayed, err error) {
	switch {
	case done.Going != "":
		a.noteGoesOn(c, done.Going, terminal.Count(done.Events, "event")+" replayed")
	case err != nil && done.Next != "":
		a.Notef("replayed %s until then, and perhaps some of the next %d; to go on: %s", inWords(done), manage.CountTurn,
			a.commandLine(c.CommandPath(), r.rest(c.Flags(), done.Next)))
	case err != nil && a.remote():
		a.Notef("if the replay was begun, it goes on while the gateway runs; to see it: %s", a.commandLine("gateway operations list", c.InheritedFlags()))
	}
}

// rest sets the flags of the command that continues the replay at next. It writes times as
// absolute times, so that the command selects the same events at any later time.
func (r *replay) rest(flags *pflag.FlagSet, next core.ID) *pflag.FlagSet {
	// The flags are set as if the user had given them, so that the printed command has them.
	set := map[string]string{"from": string(next), "to": string(r.span.Last), "since": core.FormatTime(r.filter.Since), "until": core.FormatTime(r.filter.Until)}
	for name, value := range set {
		if value != "" {
			_ = flags.Set(name, value) // texts are always valid
		}
	}
	flags.Lookup("limit").Changed = false
	return flags
}
