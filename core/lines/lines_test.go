package lines

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A desk is a Store that counts calls. Lanes have lines or none.
type desk struct {
	lined map[core.Lane]bool
	pages int  // calls of Fill that fill all lines of a lane
	held  bool // another process has the turn
	err   error

	looks, turns int
	fills        []Lane
	after        []string
}

func (d *desk) LinedLanes(context.Context) ([]core.Lane, error) {
	d.looks++
	return slices.Sorted(maps.Keys(d.lined)), d.err
}

func (d *desk) Fill(_ context.Context, _ time.Time, lane core.Lane, limit int, after string) (next string, err error) {
	d.fills, d.after = append(d.fills, Lane{lane, limit}), append(d.after, after)
	if len(after) < d.pages-1 {
		next = after + "x"
	}
	return next, d.err
}

func (d *desk) Turn(context.Context, time.Time, string, time.Duration) (bool, error) {
	d.turns++
	return !d.held, d.err
}

// filler makes a Filler of two lanes, of which the first has lines.
func (d *desk) filler(bell *core.Bell) *Filler {
	return New(Deps{Store: d, Bell: bell, Clock: core.SystemClock, Observe: func(core.Fact) {}},
		[]Lane{{"handler/a", 3}, {"queue/b", 0}})
}

// lasting runs a tick of a program for a time.
func (d *desk) lasting(t *testing.T, f *Filler, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := f.Tick(ctx, core.Budget{Rest: time.Second}); err != nil {
		t.Errorf("Tick = %v, want none", err)
	}
}

// A pass fills the lanes that have lines, page by page, and rings for them. One read finds
// them.
func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, bell := &desk{lined: map[core.Lane]bool{"handler/a": true}, pages: 3}, &core.Bell{}
		rung := bell.Listen("handler/a", "queue/b")
		if err := d.filler(bell).Tick(t.Context(), core.Budget{}); err != nil {
			t.Errorf("Tick = %v, want none", err)
		}
		if d.looks != 1 || !slices.Equal(d.after, []string{"", "x", "xx"}) || d.fills[0] != (Lane{"handler/a", 3}) {
			t.Errorf("%d reads, filled %v after %q, want one read, and three pages of the lane with lines", d.looks, d.fills, d.after)
		}
		if lanes := rung.Rung(); !slices.Equal(lanes, []core.Lane{"handler/a"}) {
			t.Errorf("rang for %v, want the lane with lines", lanes)
		}
	})
}

// The first pass of a process needs no turn, the later ones come each hour and need it.
func TestPasses(t *testing.T) {
	for _, tt := range []struct {
		name         string
		desk         desk
		passes       int // in a day
		turns, looks int
	}{
		{"no lines", desk{}, 0, 24, 25},
		{"lines", desk{lined: map[core.Lane]bool{"handler/a": true}}, 25, 24, 25},
		{"another process has the turn", desk{lined: map[core.Lane]bool{"handler/a": true}, held: true}, 1, 24, 1},
		{"lines in a lane without lines", desk{lined: map[core.Lane]bool{"queue/b": true}}, 24*60 + 1, 0, 24*60 + 1},
		{"errors", desk{err: errors.New("defect")}, 0, 0, 24*60 + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := tt.desk
				d.lasting(t, d.filler(nil), 24*time.Hour+time.Second)
				if len(d.fills) != tt.passes || d.turns != tt.turns || d.looks != tt.looks {
					t.Errorf("%d fills, %d turns, %d reads, want %d, %d and %d", len(d.fills), d.turns, d.looks, tt.passes, tt.turns, tt.looks)
				}
			})
		})
	}
}

// A tick each minute, as in a function, makes the same passes.
func TestTicksOfAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{lined: map[core.Lane]bool{"handler/a": true}}
		f := d.filler(nil)
		for range 3 * 60 {
			if err := f.Tick(t.Context(), core.Budget{Until: time.Now().Add(55 * time.Second)}); err != nil {
				t.Errorf("Tick = %v, want none", err)
			}
			time.Sleep(time.Minute)
		}
		if len(d.fills) != 3 || d.turns != 2 {
			t.Errorf("%d fills and %d turns in three hours, want 3 and 2", len(d.fills), d.turns)
		}
		d.err = errors.New("defect")
		time.Sleep(time.Hour)
		if err := f.Tick(t.Context(), core.Budget{}); !errors.Is(err, d.err) {
			t.Errorf("Tick = %v, want the error of the store", err)
		}
	})
}

// A pass whose budget is over goes on in a later one.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{lined: map[core.Lane]bool{"handler/a": true}}
		f := d.filler(nil)
		if err := f.Tick(t.Context(), core.Budget{End: time.Now().Add(endGrace)}); err != nil || d.looks > 0 {
			t.Errorf("Tick = %v with %d reads, want none", err, d.looks)
		}
		if err := f.Tick(t.Context(), core.Budget{}); err != nil || len(d.fills) != 1 {
			t.Errorf("Tick = %v with %d fills, want one", err, len(d.fills))
		}
	})
}
