// Package retention deletes finished records that are old enough: events, jobs with their
// attempts, runs with their steps and history, operations, and entries of the audit. Their
// delivery ids and keys are deleted too, and then identify no repeats any more. It also deletes
// old counts of minutes.
//
// The idea to know: intake comes first. Records are deleted slowly and nearly all the time,
// not at once. The store deletes a small batch at a time and pauses between batches, so that
// senders seldom wait for a purge. While a purge is late, the batches are larger, so that it
// keeps up with the events that come in. Only the process with the turn purges; correctness
// does not depend on that.
//
// The package imports core only.
package retention

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Times of passes, and the bound of one pass.
const (
	every = time.Minute
	turn  = every - 5*time.Second // shorter than every, so that the holder of the last turn may get the next
	soon  = 10 * time.Second      // the first request for a turn comes within this time

	longest = 50 * time.Second // the longest pass
)

// batch is the most jobs, the most runs and the most events that one call of the store
// deletes.
const batch = 500

// auditBatch is how many entries of the audit a pass deletes. Entries are stored by people and
// their scripts, so in a few minutes fewer come in.
const auditBatch = 5000

// minutesKept is for how long counts of minutes are kept. The configured retention does not change
// it: the counts are for curves of the last day.
const minutesKept = 25 * time.Hour

// name is the name of the turn.
const name = "purge"

// Upkeep is the part of a store that a Purger uses.
type Upkeep interface {
	Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error)
	PurgeOperations(ctx context.Context, before time.Time) error
	PurgeAudit(ctx context.Context, before time.Time, limit int) (int, error)
	PurgeMinutes(ctx context.Context, before time.Time) error
	Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error)
}

// Deps are the dependencies of a Purger.
type Deps struct {
	Upkeep  Upkeep
	Clock   core.Clock
	Observe core.Observer
}

// A Purger deletes records that finished long ago. It has no state between ticks, and ticks
// may overlap, in one process or in several.
type Purger struct {
	Deps
	keep, audit time.Duration
}

// New makes a Purger. It keeps records for the duration keep after they have finished, and entries of
// the audit for the duration audit.
func New(d Deps, keep, audit time.Duration) *Purger { return &Purger{d, keep, audit} }

// Tick asks for the turn and deletes old records in a pass. A pass lasts at most 50 seconds,
// or ends when the store has looked at all records; the next pass continues there. Tick
// reports the deletions of a pass as [core.Purged].
//
// With a zero Rest it makes one pass and returns its error. Otherwise it asks for the turn
// every minute, until ctx is done or the budget is over, and reports errors as
// [core.Troubled]. If the budget has an End, no batch starts that would probably end later.
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

// pass deletes old records if this process gets the turn. The end of ctx is no error.
func (p *Purger) pass(ctx context.Context, b core.Budget) error {
	if over(b, p.Clock(), 0) {
		return nil
	}
	mine, err := p.Upkeep.Turn(ctx, p.Clock(), name, turn)
	if err == nil && mine {
		err = p.purge(ctx, b)
		if err == nil && !over(b, p.Clock(), 0) {
			err = p.purgeOneKind(ctx)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// purgeOneKind deletes old records of one kind that grows slowly. A pass takes one kind and not all,
// since each is a request on a database behind an API, which allows few. The choice is random, so
// that every kind has its passes at any schedule of a function.
func (p *Purger) purgeOneKind(ctx context.Context) (err error) {
	switch now := p.Clock(); rand.N(3) {
	case 0:
		err = p.Upkeep.PurgeOperations(ctx, now.Add(-p.keep))
	case 1:
		err = p.Upkeep.PurgeMinutes(ctx, now.Add(-minutesKept))
	default:
		_, err = p.Upkeep.PurgeAudit(ctx, now.Add(-p.audit), auditBatch)
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

// endGrace is how long before the end of the process a batch must be done.
const endGrace = 2 * time.Second

// over reports whether it is too late for a batch that takes the duration took.
func over(b core.Budget, now time.Time, took time.Duration) bool {
	return !b.Until.IsZero() && !now.Before(b.Until) ||
		!b.End.IsZero() && !now.Before(b.End.Add(-endGrace-took))
}

// sleep waits for d. It returns false if ctx is done or the budget is over.
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
