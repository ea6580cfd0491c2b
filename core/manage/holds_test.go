package manage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A holdBook is a store of holds in memory.
type holdBook struct {
	all []core.Hold
	err error
}

func (b *holdBook) Hold(_ context.Context, now time.Time, lane core.Lane, until time.Time, reason string) error {
	if b.err != nil {
		return b.err
	}
	for i, h := range b.all {
		if h.Lane == lane {
			b.all[i].Until, b.all[i].Reason = until, reason
			return nil
		}
	}
	b.all = append(b.all, core.Hold{Lane: lane, Since: now, Until: until, Reason: reason})
	return nil
}

func (b *holdBook) Unhold(_ context.Context, _ time.Time, lanes ...core.Lane) (released []core.Lane, _ error) {
	b.all = slices.DeleteFunc(b.all, func(h core.Hold) bool {
		if !slices.Contains(lanes, h.Lane) {
			return false
		}
		released = append(released, h.Lane)
		return true
	})
	return released, b.err
}

func (b *holdBook) Holding(context.Context, time.Time) ([]core.Hold, error) { return b.all, b.err }

// newHoldsRig returns the service on a book, and the facts that it states.
func newHoldsRig(b *holdBook) (*Holds, *[]core.Fact) {
	var told []core.Fact
	h := NewHolds(b, func() time.Time { return noon }, &Names{
		Sources: []string{"github"}, Handlers: []string{"billing"}, Queues: []string{"mail"}, Workflows: []string{"ship"},
		Unknown: func(kind, name string, _ []string) error { return core.Refuse(core.NotFound, "no %s %s", kind, name) },
	})
	h.Observe = func(f core.Fact) { told = append(told, f) }
	return h, &told
}

func TestHoldsHold(t *testing.T) {
	early := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		lane    core.Lane
		until   time.Time
		reason  string
		want    core.Hold
		refused string
	}{
		"handler":           {"handler/billing", time.Time{}, "r", core.Hold{Lane: "handler/billing", Since: noon, Reason: "r"}, ""},
		"queue until":       {"queue/mail", noon.Add(time.Millisecond), "", core.Hold{Lane: "queue/mail", Since: noon, Until: noon.Add(time.Millisecond)}, ""},
		"held before":       {"workflow/ship", time.Time{}, "new", core.Hold{Lane: "workflow/ship", Since: early, Reason: "new"}, ""},
		"longest reason":    {"handler/billing", time.Time{}, strings.Repeat("é", MaxReason), core.Hold{Lane: "handler/billing", Since: noon, Reason: strings.Repeat("é", MaxReason)}, ""},
		"reason too long":   {"handler/billing", time.Time{}, strings.Repeat("e", MaxReason+1), core.Hold{}, "reason must be a text of at most 500 characters"},
		"reason no text":    {"handler/billing", time.Time{}, "\xff", core.Hold{}, "reason must be a text of at most 500 characters"},
		"reason with a NUL": {"handler/billing", time.Time{}, "a\x00b", core.Hold{}, "reason must be a text of at most 500 characters"},
		"end now":           {"handler/billing", noon, "", core.Hold{}, "until must be in the future, and 2026-11-20T12:00:00.000 has passed"},
		"unknown handler":   {"handler/gone", time.Time{}, "", core.Hold{}, "no handler gone"},
		"unknown queue":     {"queue/billing", time.Time{}, "", core.Hold{}, "no queue billing"},
		"unknown workflow":  {"workflow/mail", time.Time{}, "", core.Hold{}, "no workflow mail"},
		"source":            {"source/github", time.Time{}, "r", core.Hold{Lane: "source/github", Since: noon, Reason: "r"}, ""},
		"unknown source":    {"source/billing", time.Time{}, "", core.Hold{}, "no source billing"},
		"source of alerts":  {core.SourceLane(core.AlertSource), time.Time{}, "", core.Hold{}, "alerts cannot be held"},
		"alerts":            {"alert/1", time.Time{}, "", core.Hold{}, "alerts cannot be held"},
	} {
		t.Run(name, func(t *testing.T) {
			book := &holdBook{all: []core.Hold{{Lane: "workflow/ship", Since: early, Until: noon.Add(time.Hour), Reason: "old"}}}
			h, told := newHoldsRig(book)
			before := slices.Clone(book.all)
			got, err := h.Hold(t.Context(), c.lane, c.until, c.reason)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Hold (-want +got):\n%s", diff)
			}
			if c.refused != "" {
				if err == nil || err.Error() != c.refused || len(*told) > 0 || !slices.Equal(before, book.all) {
					t.Errorf("Hold = %v, stated %v, and stored %v; want %q and nothing", err, *told, book.all, c.refused)
				}
				return
			}
			if err != nil || len(*told) != 1 || (*told)[0] != (core.LaneHeld{Hold: c.want}) {
				t.Errorf("Hold = %v, stated %v, want one fact", err, *told)
			}
		})
	}
}

func TestHoldsRelease(t *testing.T) {
	for name, c := range map[string]struct {
		lane    core.Lane
		want    bool
		refused string
	}{
		"held":                        {"handler/billing", true, ""},
		"not held":                    {"queue/mail", false, ""},
		"held, no longer configured":  {"handler/gone", true, ""},
		"neither held nor configured": {"handler/nobody", false, "no handler nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			h, told := newHoldsRig(&holdBook{all: []core.Hold{{Lane: "handler/billing", Since: noon}, {Lane: "handler/gone", Since: noon}}})
			h.Bell = &core.Bell{}
			heard := h.Bell.Listen(c.lane)
			got, err := h.Release(t.Context(), c.lane)
			if got != c.want || (err != nil) != (c.refused != "") || err != nil && err.Error() != c.refused {
				t.Errorf("Release = %v, %v, want %v and %q", got, err, c.want, c.refused)
			}
			if c.want != (len(*told) == 1) || c.want && (*told)[0] != (core.LaneReleased{Lane: c.lane}) {
				t.Errorf("stated %v", *told)
			}
			if rung := len(heard.Rung()); (rung == 1) != c.want {
				t.Errorf("the lane was rung %d times, want that exactly if it was released", rung)
			}
		})
	}
}

// After the release of a source, jobs of any consumer may go on.
func TestHoldsReleaseOfSource(t *testing.T) {
	h, told := newHoldsRig(&holdBook{all: []core.Hold{{Lane: "source/github", Since: noon}}})
	h.Bell = &core.Bell{}
	heard := h.Bell.Listen("handler/billing", "queue/mail", "workflow/ship", "source/github")
	for _, want := range []bool{true, false} {
		if got, err := h.Release(t.Context(), "source/github"); got != want || err != nil {
			t.Errorf("Release = %v, %v, want %v", got, err, want)
		}
		rung := []core.Lane(nil)
		if want {
			rung = []core.Lane{"handler/billing", "queue/mail", "workflow/ship"}
		}
		if diff := cmp.Diff(rung, heard.Rung()); diff != "" {
			t.Errorf("rung (-want +got):\n%s", diff)
		}
	}
	if len(*told) != 1 || (*told)[0] != (core.LaneReleased{Lane: "source/github"}) {
		t.Errorf("stated %v", *told)
	}
	if _, err := h.Release(t.Context(), "source/gone"); err == nil || err.Error() != "no source gone" {
		t.Errorf("Release of an unknown source = %v", err)
	}
}

// An error of the store reaches the caller, and nothing is stated.
func TestHoldsOfBrokenStore(t *testing.T) {
	away := errors.New("away")
	h, told := newHoldsRig(&holdBook{err: away})
	_, held := h.Hold(t.Context(), "handler/billing", time.Time{}, "")
	_, released := h.Release(t.Context(), "handler/billing")
	_, listed := h.List(t.Context())
	for what, err := range map[string]error{"Hold": held, "Release": released, "List": listed} {
		if !errors.Is(err, away) || len(*told) > 0 {
			t.Errorf("%s = %v, stated %v, want the store's error", what, err, *told)
		}
	}
}
