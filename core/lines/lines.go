// Package lines keeps the lines of lanes going when no job of them ends. See [core.Line].
//
// The idea to know: usually the end of a job admits the next job of its line, in the same
// commit. No job ends for that in three cases. The limit of the lane's lines was raised. The
// lane has no lines any more, but jobs wait in the lines that it had. Or a process with another
// configuration ended a job and left its slot taken. So each process fills the lines of all its
// lanes when it starts with a configuration, and one process does it each hour.
//
// The package imports core only.
package lines

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Times of passes.
const (
	every = time.Hour
	turn  = every - time.Minute // shorter than every, so that the holder of the last turn may get the next
	again = time.Minute         // after a pass that left something to do
)

// name is the name of the turn.
const name = "lines"

// Store is the part of a store that a Filler uses.
type Store interface {
	LinedLanes(ctx context.Context) ([]core.Lane, error)
	Fill(ctx context.Context, now time.Time, lane core.Lane, limit int, after string) (next string, err error)
	Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error)
}

// Deps are the dependencies of a Filler.
type Deps struct {
	Store   Store
	Bell    *core.Bell // rung for lanes with lines; may be nil
	Clock   core.Clock
	Observe core.Observer
}

// A Lane is a lane of the configuration. Limit is 0 if it has no lines.
type Lane struct {
	Lane  core.Lane
	Limit int
}

// A Filler fills the lines of lanes. Between ticks it remembers when its next pass is due. Ticks
// may overlap, in one process or in several.
type Filler struct {
	Deps
	lanes []Lane

	mu   sync.Mutex
	turn bool      // the next pass needs the turn
	next time.Time // when the next pass is due; zero before the first
}

// New makes a Filler of these lanes.
func New(d Deps, lanes []Lane) *Filler { return &Filler{Deps: d, lanes: lanes} }

// Tick fills the lines of all lanes in its first pass, and then in an hourly pass, for which it
// asks for the turn. It makes a pass a minute, without the turn, after an error, and as long as
// a lane without lines has jobs that wait in lines.
//
// With a zero Rest it makes a pass if one is due, and returns its error. Otherwise it makes
// passes until ctx is done or the budget is over, and reports errors as [core.Troubled].
func (f *Filler) Tick(ctx context.Context, b core.Budget) error {
	for !over(b, f.Clock()) {
		pause, err := f.pass(ctx, b)
		if ctx.Err() != nil {
			return nil
		}
		if b.Rest == 0 {
			return err
		}
		if err != nil {
			f.Observe(core.Troubled{Doing: "fill lines", Err: err})
		}
		if !b.Until.IsZero() {
			pause = min(pause, b.Until.Sub(f.Clock()))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// pass makes a pass if it is due and this process gets the turn. It returns the time until the
// next pass.
func (f *Filler) pass(ctx context.Context, b core.Budget) (pause time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Clock()
	// A clock that was set back delays a pass by an hour at most.
	if wait := f.next.Sub(now); wait > 0 {
		return min(wait, every), nil
	}
	mine := !f.turn
	if f.turn {
		mine, err = f.Store.Turn(ctx, now, name, turn)
	}
	more := false
	if err == nil && mine {
		more, err = f.fill(ctx, b)
	}
	pause = every
	f.turn = err == nil && !more
	if !f.turn {
		pause = again
	}
	f.next = now.Add(pause)
	return pause, err
}

// fill fills the lines of all lanes. It reports whether the budget ended before, or a lane
// without lines has lines.
func (f *Filler) fill(ctx context.Context, b core.Budget) (more bool, err error) {
	lined, err := f.Store.LinedLanes(ctx)
	if err != nil {
		return true, err
	}
	for _, l := range f.lanes {
		if _, found := slices.BinarySearch(lined, l.Lane); !found {
			continue
		}
		more = more || l.Limit == 0
		for after, first := "", true; first || after != ""; first = false {
			if over(b, f.Clock()) {
				return true, nil
			}
			if after, err = f.Store.Fill(ctx, f.Clock(), l.Lane, l.Limit, after); err != nil {
				return true, fmt.Errorf("%s: %w", l.Lane.Consumer(), err)
			}
		}
		f.Bell.Ring(l.Lane)
	}
	return more, nil
}

// endGrace is how long before the end of the process a call of the store must begin.
const endGrace = 2 * time.Second

// over reports whether it is too late for a call of the store.
func over(b core.Budget, now time.Time) bool {
	return !b.Until.IsZero() && !now.Before(b.Until) || !b.End.IsZero() && !now.Before(b.End.Add(-endGrace))
}
