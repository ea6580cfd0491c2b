package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// seriesFlags are the flags of "gateway series".
type seriesFlags struct{ window, consumer, source string }

// newSeries makes "gateway series": the curves of the last hour or day. It asks GET /api/series with
// --url, and manage.Series otherwise.
func newSeries(a *app) *cobra.Command {
	var flags seriesFlags
	c := remotely(&cobra.Command{
		Use:   "series",
		Short: "Show the last hour or day as curves",
		Long: `Show how many events each source accepted, and how many deliveries of each handler, queue
and workflow were completed, how many attempts failed and how many jobs died: in the last hour,
a minute a column, or in the last day, 24 minutes a column. Each curve has its own scale: the
highest column is PEAK, and a blank is none.

The numbers are for pictures, and not for accounts: a process that is killed loses the minutes
that it has not stored.

Reads the configured database, beside the running gateway, or asks the one at --url. The
database has a minute a few seconds after its end, and a server shows the present one too.`,
		Example: `  gateway series
  gateway series --window day --consumer billing
  gateway series --json | jq '[.sources[].accepted[]] | add'`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			window, err := manage.ParseWindow(flags.window)
			if err != nil {
				return usageError("--" + err.Error())
			}
			lanes, err := flags.lanes()
			if err != nil {
				return err
			}
			return a.series(c.Context(), window, lanes)
		},
	})
	c.Flags().StringVar(&flags.window, "window", string(manage.Hour), "the `span` of time: hour or day")
	c.Flags().StringVar(&flags.consumer, "consumer", "", "only this `handler`, queue/<name> or workflow/<name>")
	c.Flags().StringVar(&flags.source, "source", "", "only this `source`")
	a.complete(c, "window", func(*cobra.Command) []cobra.Completion {
		return []cobra.Completion{string(manage.Hour), string(manage.Day)}
	})
	a.complete(c, "consumer", a.consumerNames)
	a.complete(c, "source", a.sourceNames)
	return c
}

// lanes returns the lanes of the names in the flags; none for all.
func (f seriesFlags) lanes() (lanes []core.Lane, err error) {
	if f.consumer != "" {
		lane, ok := wire.ParseConsumer(f.consumer)
		if !ok || lane.Alert() {
			return nil, usagef("--consumer must be the name of a handler, or queue/ or workflow/ and the name of one; not %q", terminal.Clip(f.consumer, 80))
		}
		lanes = append(lanes, lane)
	}
	if f.source != "" {
		lane, ok := wire.ParseTarget(string(core.SourceLane(f.source)))
		if !ok {
			return nil, usagef("--source must be the name of a source, not %q", terminal.Clip(f.source, 80))
		}
		lanes = append(lanes, lane)
	}
	return lanes, nil
}

// series prints the curves, in the form of the API with --json.
func (a *app) series(ctx context.Context, w manage.Window, lanes []core.Lane) error {
	return a.ask(ctx, func(op *operator) error {
		s, err := op.series(ctx, w, lanes...)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(s)
		case len(s.Sources)+len(s.Consumers) == 0:
			a.Notef("no source, handler, queue or workflow is configured")
			return nil
		}
		a.PrintGrid(seriesGrid(s))
		return nil
	})
}

// columns is how many columns a curve has on a terminal.
const columns = 60

// seriesGrid returns the table of curves. A consumer has a row for failures and for deaths only if there
// were any.
func seriesGrid(s wire.Series) terminal.Grid {
	const clock = "15:04"
	g := terminal.Grid{Heading: []string{"NAME", "WHAT", "TOTAL", "PEAK", s.From.Format(clock) + " TO " + s.Until.Format(clock) + " UTC"}}
	add := func(name, what string, numbers []int, always bool) {
		numbers = gathered(numbers, columns)
		total := 0
		for _, n := range numbers {
			total += n
		}
		if always || total > 0 {
			g.Add(terminal.Visible(name), what, strconv.Itoa(total), strconv.Itoa(slices.Max(append(numbers, 0))), sparkline(numbers))
		}
	}
	for _, source := range s.Sources {
		add(core.SourceLane(source.Name).Consumer(), "accepted", source.Accepted, true)
	}
	for _, c := range s.Consumers {
		add(c.Name, "completed", c.Completed, true)
		add(c.Name, "failed", c.Failed, false)
		add(c.Name, "dead", c.Dead, false)
	}
	return g
}

// gathered returns at most n numbers, each the sum of the same number of neighbours.
func gathered(numbers []int, n int) (sums []int) {
	each := max(1, (len(numbers)+n-1)/n)
	for some := range slices.Chunk(numbers, each) {
		sum := 0
		for _, number := range some {
			sum += number
		}
		sums = append(sums, sum)
	}
	return sums
}

// bars are the columns of a sparkline, from none to the highest.
var bars = []rune(" ▁▂▃▄▅▆▇█")

// sparkline draws numbers as columns of one line. A number above 0 is never drawn as none.
func sparkline(numbers []int) string {
	most := slices.Max(append([]int{1}, numbers...))
	var line strings.Builder
	for _, n := range numbers {
		line.WriteRune(bars[(max(n, 0)*(len(bars)-1)+most-1)/most])
	}
	return line.String()
}
