package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A SeriesStore has the methods of a store that Series uses.
type SeriesStore interface {
	SumMinutes(ctx context.Context, from, until time.Time, step time.Duration) ([]core.LaneCounts, error)
}

// A Window is a span of time up to now.
type Window string

// The windows.
const (
	Hour Window = "hour" // 60 steps of a minute
	Day  Window = "day"  // 120 steps of 12 minutes
)

// ParseWindow reads a window as users write it; "" is Hour. The error is a [core.Refusal] of kind
// [core.Invalid].
func ParseWindow(s string) (Window, error) {
	switch w := Window(s); w {
	case "":
		return Hour, nil
	case Hour, Day:
		return w, nil
	}
	return "", core.Refuse(core.Invalid, "window must be hour or day, not %q", s)
}

// Steps returns the length of a step, and how many the window has.
func (w Window) Steps() (step time.Duration, n int) {
	if w == Day {
		return 12 * time.Minute, 120
	}
	return time.Minute, 60
}

// Curves count events and deliveries in a window of time.
type Curves struct {
	Window Window
	From   time.Time // when the first step begins

	// Until is the end of the counted time. The last step has not ended if its end is later.
	Until time.Time
	Step  time.Duration

	Sources   []Curve // by name; first the configured sources
	Consumers []Curve // handlers, then queues, then workflows, each by name; first the configured consumers
}

// A Curve has the counts of a source or consumer in each step, the oldest first.
type Curve struct {
	Lane  core.Lane
	Steps []core.Counts
}

// Sum returns the counts of all steps together.
func (c Curve) Sum() (sum core.Counts) {
	for _, s := range c.Steps {
		sum = sum.Add(s)
	}
	return sum
}

// Series read how much happened in the last hour and day. Answers are up to a second old, as those of
// [Statistics]. Series is safe for concurrent use.
type Series struct {
	// Unwritten returns the counts that this process has not stored. Nil means that there are none.
	Unwritten func() []core.LaneCounts

	// Delay is for how long a minute must be over until its counts are surely stored. Until is the
	// end of the newest such minute. If Delay is zero, Until is the present.
	Delay time.Duration

	clock core.Clock
	names *Names
	sums  map[Window]*kept[Curves]
}

// NewSeries makes the service for the configured names.
func NewSeries(store SeriesStore, clock core.Clock, names *Names) *Series {
	s := &Series{clock: clock, names: names, sums: map[Window]*kept[Curves]{}}
	for _, w := range []Window{Hour, Day} {
		s.sums[w] = &kept[Curves]{clock: clock, within: statsTimeout, ask: func(ctx context.Context) (Curves, error) { return s.survey(ctx, store, w) }}
	}
	return s
}

// Curves returns the curves of a window. With lanes it returns the curves of these alone. A lane that
// is not configured and of which nothing was counted is refused as NotFound.
func (s *Series) Curves(ctx context.Context, w Window, lanes ...core.Lane) (Curves, error) {
	all, err := s.sums[w].answer(ctx)
	if err != nil || len(lanes) == 0 {
		return all, err
	}
	some := all
	some.Sources, some.Consumers = nil, nil
	for _, lane := range lanes {
		of := func(c Curve) bool { return c.Lane == lane }
		if i := slices.IndexFunc(all.Sources, of); i >= 0 {
			some.Sources = append(some.Sources, all.Sources[i])
		} else if i := slices.IndexFunc(all.Consumers, of); i >= 0 {
			some.Consumers = append(some.Consumers, all.Consumers[i])
		} else if err := s.names.Lane(lane); err != nil {
			return Curves{}, err
		}
	}
	return some, nil
}

// Quiet returns when no query is under way. See [Statistics.Quiet].
func (s *Series) Quiet(ctx context.Context) {
	for _, k := range s.sums {
		k.quiet(ctx)
	}
}

// survey reads the curves of a window.
func (s *Series) survey(ctx context.Context, store SeriesStore, w Window) (Curves, error) {
	step, n := w.Steps()
	until := s.clock().UTC()
	if s.Delay > 0 {
		until = until.Add(-s.Delay).Truncate(time.Minute)
	}
	last := until.Add(-time.Millisecond).Truncate(step)
	c := Curves{Window: w, From: last.Add(-time.Duration(n-1) * step), Until: until, Step: step}
	counts, err := store.SumMinutes(ctx, c.From, until, step)
	if err != nil {
		return Curves{}, err
	}
	// The counts in memory are read after the stored ones: counts that are stored in between are
	// left out for a moment, and not counted twice.
	if s.Unwritten != nil {
		counts = append(counts, s.Unwritten()...)
	}
	c.Sources, c.Consumers = s.known(n)
	for _, count := range counts {
		c.add(count, n)
	}
	return c, nil
}

// known returns curves without counts for all that is configured.
func (s *Series) known(n int) (sources, consumers []Curve) {
	if s.names == nil {
		return nil, nil
	}
	for _, name := range s.names.Sources {
		sources = append(sources, Curve{core.SourceLane(name), make([]core.Counts, n)})
	}
	for _, lane := range s.names.lanes() {
		consumers = append(consumers, Curve{lane, make([]core.Counts, n)})
	}
	return sources, consumers
}

// add adds counts to the curve of their lane, which it makes if there is none.
func (c *Curves) add(count core.LaneCounts, n int) {
	i := int(count.At.Sub(c.From) / c.Step)
	if count.At.Before(c.From) || i >= n || !count.At.Before(c.Until) {
		return
	}
	list := &c.Consumers
	if count.Lane.Source() != "" {
		list = &c.Sources
	}
	of := slices.IndexFunc(*list, func(c Curve) bool { return c.Lane == count.Lane })
	if of < 0 {
		of = len(*list)
		*list = append(*list, Curve{count.Lane, make([]core.Counts, n)})
	}
	(*list)[of].Steps[i] = (*list)[of].Steps[i].Add(count.Counts)
}
