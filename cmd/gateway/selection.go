package main

import (
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/units"
	"github.com/spf13/cobra"
)

// A selection is the flags that select events.
type selection struct {
	source, eventType string
	delivery          string // of commands that register it
	timeFlags
}

// register adds the flags to a command. The text eventType says how --event-type matches, which
// differs between commands.
func (s *selection) register(a *app, c *cobra.Command, eventType string) {
	flags := c.Flags()
	flags.StringVar(&s.source, "source", "", "only events of this `source`")
	flags.StringVarP(&s.eventType, "event-type", "t", "", "only events of "+eventType)
	s.timeFlags.register(c, "events received")
	a.complete(c, "source", a.sourceNames)
	a.complete(c, "event-type", a.recentTypes)
}

// registerDelivery adds --delivery-id to a command.
func (s *selection) registerDelivery(c *cobra.Command) {
	c.Flags().StringVar(&s.delivery, "delivery-id", "", "only events with this `id` of their sender, of any source without --source")
}

// timeFlags are --since and --until.
type timeFlags struct{ since, until string }

// register adds the flags to a command. records names the selected records for the help, such as
// "events received".
func (t *timeFlags) register(c *cobra.Command, records string) {
	sinceFlag(c, &t.since, "only "+records+" at this `time` or later")
	c.Flags().StringVar(&t.until, "until", "", "only "+records+" before this `time`")
}

// parse reads the flags; a zero time is no bound.
func (t *timeFlags) parse(now time.Time) (since, until time.Time, err error) {
	if since, err = parseMoment("--since", t.since, now); err != nil {
		return since, until, err
	}
	if until, err = parseMoment("--until", t.until, now); err != nil {
		return since, until, err
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		err = usagef("--since must be before --until, and %s is not before %s", moment(since), moment(until))
	}
	return since, until, err
}

// sinceFlag adds --since to a command; all commands explain the forms of a time in the same
// words.
func sinceFlag(c *cobra.Command, since *string, what string) {
	c.Flags().StringVar(since, "since", "", what+", such as 2006-01-02T15:04:05 (UTC), a date, or 2h for two hours ago")
}

// exactType describes --event-type for commands whose selection the store makes.
const exactType = "exactly this `type`"

// parse reads the flags. The caller sets the limit.
func (s *selection) parse(now time.Time) (f core.EventFilter, err error) {
	f.Source, f.Type, f.DeliveryID = s.source, s.eventType, s.delivery
	f.Since, f.Until, err = s.timeFlags.parse(now)
	return f, err
}

// parseMoment reads a time, or a duration before now. An empty text is the zero time. A number
// without a unit is refused: it might be a year.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := core.ParseTime(text); err == nil {
		return t, nil
	}
	_, notNumber := strconv.Atoi(text)
	if ago, err := units.ParseDuration(text); err == nil && notNumber != nil {
		return now.Add(-ago.Duration).Truncate(time.Millisecond), nil
	}
	return time.Time{}, usagef("%s must be a time such as 2006-01-02T15:04:05 (UTC) or 2006-01-02T15:04:05+09:00, a date, or how long ago, such as 90s, 30m, 2h or 1d; not %q", flag, terminal.Clip(text, 40))
}
