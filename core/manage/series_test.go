package manage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A tide is a store with the same sums in each answer, which records the questions.
type tide struct {
	sums  []core.LaneCounts
	asked []string
	err   error
}

func (f *tide) SumMinutes(_ context.Context, from, until time.Time, step time.Duration) ([]core.LaneCounts, error) {
	f.asked = append(f.asked, core.FormatTime(from)+" "+core.FormatTime(until)+" "+step.String())
	return f.sums, f.err
}

// at is the time of these tests.
var at = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

func seriesOf(f *tide) *Series {
	names := &Names{Sources: []string{"crm", "shop"}, Handlers: []string{"billing"}, Queues: []string{"mail"}, Workflows: []string{"fulfil"},
		Unknown: func(kind, name string, _ []string) error { return core.Refuse(core.NotFound, "no %s %q", kind, name) }}
	return NewSeries(f, func() time.Time { return at }, names)
}

// counted are the steps of a curve that has counts, by their numbers.
func counted(c Curve) map[int]core.Counts {
	steps := map[int]core.Counts{}
	for i, s := range c.Steps {
		if s != (core.Counts{}) {
			steps[i] = s
		}
	}
	return steps
}

func TestCurves(t *testing.T) {
	minute := func(n int) time.Time { return at.Truncate(time.Minute).Add(time.Duration(n) * time.Minute) }
	for _, test := range []struct {
		name   string
		window Window
		delay  time.Duration
		asked  string
		steps  int
		last   int // the step that has the counts of the minute 12:00, -1 for none
	}{
		{"the hour", Hour, 0, "2026-03-01T11:01:00.000 2026-03-01T12:00:30.000 1m0s", 60, 59},
		{"the day", Day, 0, "2026-02-28T12:12:00.000 2026-03-01T12:00:30.000 12m0s", 120, 119},
		{"the hour of functions", Hour, 105 * time.Second, "2026-03-01T10:58:00.000 2026-03-01T11:58:00.000 1m0s", 60, -1},
		{"the day of functions", Day, 105 * time.Second, "2026-02-28T12:00:00.000 2026-03-01T11:58:00.000 12m0s", 120, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &tide{sums: []core.LaneCounts{{At: minute(-60), Lane: "handler/billing", Counts: core.Counts{Dead: 1}}}}
			s := seriesOf(f)
			s.Delay = test.delay
			s.Unwritten = func() []core.LaneCounts {
				return []core.LaneCounts{
					{At: minute(0), Lane: "handler/billing", Counts: core.Counts{Completed: 2}},
					{At: minute(-1), Lane: "handler/billing", Counts: core.Counts{Failed: 1}},       // after the last minute that functions show
					{At: minute(-2000), Lane: "handler/billing", Counts: core.Counts{Completed: 9}}, // before the window
				}
			}
			c, err := s.Curves(t.Context(), test.window)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.asked}, f.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			var lanes []core.Lane
			for _, each := range append(c.Sources, c.Consumers...) {
				if lanes = append(lanes, each.Lane); len(each.Steps) != test.steps {
					t.Errorf("%s has %d steps, want %d", each.Lane, len(each.Steps), test.steps)
				}
			}
			if diff := cmp.Diff([]core.Lane{"source/crm", "source/shop", "handler/billing", "queue/mail", "workflow/fulfil"}, lanes); diff != "" {
				t.Errorf("lanes (-want +got):\n%s", diff)
			}
			want := map[int]core.Counts{}
			if test.last >= 0 {
				want[test.last] = core.Counts{Completed: 2}
			}
			if test.last > 0 {
				want[test.last-1] = core.Counts{Failed: 1}
			}
			if i := int(minute(-60).Sub(c.From) / c.Step); !minute(-60).Before(c.From) {
				want[i] = want[i].Add(core.Counts{Dead: 1})
			}
			if diff := cmp.Diff(want, counted(c.Consumers[0])); diff != "" {
				t.Errorf("counts of billing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCurvesOfSome(t *testing.T) {
	f := &tide{sums: []core.LaneCounts{
		{At: at.Truncate(time.Minute), Lane: "handler/billing", Counts: core.Counts{Completed: 1}},
		{At: at.Truncate(time.Minute), Lane: "handler/gone", Counts: core.Counts{Completed: 5, Failed: 1}},
		{At: at.Truncate(time.Minute), Lane: "source/shop", Counts: core.Counts{Accepted: 3}},
	}}
	s := seriesOf(f)
	c, err := s.Curves(t.Context(), Hour, "handler/gone", "source/shop")
	if err != nil || len(c.Sources) != 1 || len(c.Consumers) != 1 {
		t.Fatalf("Curves = %+v, %v; want a source and a consumer", c, err)
	}
	if got, want := c.Consumers[0].Sum(), (core.Counts{Completed: 5, Failed: 1}); got != want || c.Consumers[0].Lane != "handler/gone" {
		t.Errorf("curve of a consumer that is not configured any more: %s %+v, want %+v", c.Consumers[0].Lane, got, want)
	}
	if got, want := c.Sources[0].Sum(), (core.Counts{Accepted: 3}); got != want {
		t.Errorf("curve of the source: %+v, want %+v", got, want)
	}
	if all, err := s.Curves(t.Context(), Hour); err != nil || len(all.Consumers) != 4 || len(all.Sources) != 2 {
		t.Errorf("all curves: %d and %d, %v; want 4 consumers, with the one that is gone, and 2 sources", len(all.Consumers), len(all.Sources), err)
	}
	if len(f.asked) != 1 {
		t.Errorf("%d queries, want 1: an answer is used for a second", len(f.asked))
	}
	for _, lane := range []core.Lane{"handler/none", "source/none", "queue/none"} {
		if _, err := s.Curves(t.Context(), Hour, lane); !core.IsKind(err, core.NotFound) {
			t.Errorf("Curves(%q) = %v, want a refusal of kind NotFound", lane, err)
		}
	}
}

func TestCurvesFail(t *testing.T) {
	f := &tide{err: errors.New("away")}
	if _, err := seriesOf(f).Curves(t.Context(), Day); !errors.Is(err, f.err) {
		t.Errorf("Curves = %v, want %v", err, f.err)
	}
}

func TestParseWindow(t *testing.T) {
	for text, want := range map[string]Window{"": Hour, "hour": Hour, "day": Day} {
		if got, err := ParseWindow(text); got != want || err != nil {
			t.Errorf("ParseWindow(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"week", "Hour", "1h"} {
		if _, err := ParseWindow(text); !core.IsKind(err, core.Invalid) {
			t.Errorf("ParseWindow(%q) = %v, want a refusal of kind Invalid", text, err)
		}
	}
}
