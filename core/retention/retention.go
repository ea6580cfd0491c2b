// Package retention deletes what is over and has been kept for long enough: events, jobs
// with their attempts, and runs of workflows with their steps and history. What a delivery
// id or a key was compared with goes with them.
//
// The idea to know: intake comes first. Records are deleted slowly and nearly all the time
// rather than at once: the store deletes a few at a time, and leaves the database alone
// between, so that who sends events seldom meets a purge. One process does it at a time, by
// turns that the store gives; nothing else depends on that.
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

	longest = 50 * time.Second // of a pass
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

// Tick asks for its turn and deletes what is over, in a pass of at most 50 seconds, or
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
	for wait := rand.N(soon); p.sleep(ctx, b, wait); {
		began := p.Clock()
		if err := p.pass(ctx, b); err != nil {
			p.Observe(core.Troubled{Doing: "purge", Err: err})
		}
		took := min(max(p.Clock().Sub(began), 0), longest) // also if the clock was set
		wait = every - took
	}
	return nil
}

// pass deletes what is over, if it is the caller's turn. That ctx ended is no error.
func (p *Purger) pass(ctx context.Context, b core.Budget) error {
	if over(b, p.Clock(), 0) {
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
		now := p.Clock()
		if took := now.Sub(at); now.Sub(began)+took >= longest || over(b, now, took) {
			return nil
		}
	}
}

// endGrace is how long before the end of the process a batch is to be done.
const endGrace = 2 * time.Second

// over tells whether it is too late for a batch that takes so long.
func over(b core.Budget, now time.Time, took time.Duration) bool {
	return !b.Until.IsZero() && !now.Before(b.Until) ||
		!b.End.IsZero() && !now.Before(b.End.Add(-endGrace-took))
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
