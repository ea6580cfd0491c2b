// Package retention deletes what is over and has been kept for long enough: events, jobs
// with their attempts, and runs of workflows with their steps and history. What a delivery
// id or a key was compared with goes with them.
//
// The idea to know: intake comes first. Records are deleted in small batches, and after
// each the database is left alone for as long as the batch took, so that who sends events
// waits for one batch at most and has at least half of it. One process does it at a time,
// by turns that the store gives; nothing else depends on that.
//
// It may import core and nothing else of ours.
package retention

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/eventgateway/gateway/core"
)

// When there are passes, and what bounds one.
const (
	every = time.Minute
	turn  = every - 5*time.Second // so that whoever had the last one may have the next
	soon  = 10 * time.Second      // within which a process asks for the first time

	longest = 30 * time.Second

	// A store that takes longer for so many records, on average, gets no more in a pass.
	many = 10_000
	slow = 5 * time.Second
)

// batch is how many jobs, runs and events each are deleted at a time.
const batch = 500

// name is that of the turns.
const name = "purge"

// Upkeep is what of a store a purger uses.
type Upkeep interface {
	Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error)
	Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error)
}

// Deps is what a purger works with.
type Deps struct {
	Upkeep  Upkeep
	Clock   core.Clock
	Observe core.Observer
}

// A Purger deletes what has been over for long. It keeps no state between ticks, and
// ticks may overlap, in one process or in many.
type Purger struct {
	Deps
	keep time.Duration
}

// New makes a purger that keeps records for so long after they are over.
func New(d Deps, keep time.Duration) *Purger { return &Purger{d, keep} }

// Tick asks for its turn and deletes what is over, in a pass of at most 30 seconds, or
// until the store has looked at everything; the next one goes on from there. What a pass
// deleted is stated as [core.Purged].
//
// With a zero Rest it does so once and returns the error it met. Else it asks every
// minute, until ctx is done or the budget is over, and states errors as [core.Troubled].
// If the budget has an End, no batch is begun that is likely to take longer.
func (p *Purger) Tick(ctx context.Context, b core.Budget) error {
	if b.Rest == 0 {
		return p.pass(ctx, b)
	}
	for wait := rand.N(soon); p.sleep(ctx, b, wait); wait = every {
		if err := p.pass(ctx, b); err != nil {
			p.Observe(core.Troubled{Doing: "purge", Err: err})
		}
	}
	return nil
}

// pass deletes what is over, if it is the caller's turn. That ctx ended is no error.
func (p *Purger) pass(ctx context.Context, b core.Budget) error {
	if last := until(b, 0); !last.IsZero() && !p.Clock().Before(last) {
		return nil
	}
	mine, err := p.Upkeep.Turn(ctx, p.Clock(), name, turn)
	if err == nil && mine {
		err = p.purge(ctx, b)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (p *Purger) purge(ctx context.Context, b core.Budget) error {
	began, rows, more := p.Clock(), 0, true
	defer func() {
		if rows > 0 {
			p.Observe(core.Purged{Rows: rows, Took: p.Clock().Sub(began), More: more})
		}
	}()
	for {
		at := p.Clock()
		n, left, err := p.Upkeep.Purge(ctx, at.Add(-p.keep), batch)
		rows, more = rows+n, err != nil || left
		if err != nil || !more {
			return err
		}
		took, so := p.Clock().Sub(at), p.Clock().Sub(began)
		tired := rows >= many && so/time.Duration(rows) >= slow/many
		if tired || so+took >= longest || !p.sleep(ctx, core.Budget{Until: until(b, took)}, min(took, longest)) {
			return nil
		}
	}
}

// endGrace is how long before the end of the process a batch is to be done.
const endGrace = 2 * time.Second

// until is when the last batch may begin, of those that take so long; zero if any time
// will do.
func until(b core.Budget, took time.Duration) time.Time {
	last := b.End.Add(-endGrace - took)
	if b.End.IsZero() || !b.Until.IsZero() && b.Until.Before(last) {
		return b.Until
	}
	return last
}

// sleep waits, and tells whether there is to be more: not once ctx is done or the budget
// is over.
func (p *Purger) sleep(ctx context.Context, b core.Budget, d time.Duration) bool {
	if !b.Until.IsZero() {
		left := b.Until.Sub(p.Clock())
		if left <= 0 {
			return false
		}
		d = min(d, left)
	}
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return b.Until.IsZero() || p.Clock().Before(b.Until)
	case <-ctx.Done():
		return false
	}
}
