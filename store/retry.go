package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Retry runs the batches of one [Conn]: it sends a batch again where that is safe, and turns
// failures into refusals. Each driver has one, with the bounds that suit its engine. The fields
// do not change after the first batch. A Retry is safe for concurrent use.
type Retry struct {
	// Classify maps an error of a try to its meaning. It gets no error that already is a
	// refusal: such an error goes to the caller as it is.
	Classify func(error) Failure

	// Tries bounds how often a batch is sent. After a Conflict, Retry waits FirstPause at first
	// and then twice as long each time, up to MaxPause, all with [Jitter].
	Tries                int
	FirstPause, MaxPause time.Duration

	// Resends bounds how many of the tries follow a Lost or Stale one. Such a try begins at
	// once, after a call of Reconnect, which drops idle connections that may have ended too.
	Resends   int
	Reconnect func()

	overload overload
}

// Do runs try until it succeeds, fails for good, has failed too often or ctx is done.
//
// The error is a [core.Untouched] if no try sent anything or all ended in a Conflict. Any other
// refusal of kind Unavailable leaves open whether the batch took effect.
func (r *Retry) Do(ctx context.Context, stmts []Stmt, try func(context.Context, []Stmt) ([]Result, error)) ([]Result, error) {
	if wait := r.overload.left(); wait > 0 {
		return nil, core.Untouched(Failure{Class: Overloaded, Err: errOverloaded, Wait: wait}.Refusal())
	}
	pause, resends, sent := r.FirstPause, 0, false
	for n := 1; ; n++ {
		results, err := try(ctx, stmts)
		if err == nil {
			r.overload.end()
			return results, nil
		}
		f := r.classify(err)
		sent = sent || !f.Unsent && f.Class != Conflict
		if ctx.Err() != nil || n == r.Tries || !r.again(f, stmts, resends) {
			return nil, r.refuse(f, sent)
		}
		if f.Class != Conflict {
			resends++
			r.Reconnect()
			continue
		}
		if err := sleep(ctx, Jitter(pause)); err != nil {
			f.Err = fmt.Errorf("%w, while waiting to retry after: %w", err, f.Err)
			return nil, r.refuse(f, sent)
		}
		pause = min(2*pause, r.MaxPause)
	}
}

// classify is the failure behind an error of a try.
func (r *Retry) classify(err error) (f Failure) {
	var refusal *core.Refusal
	if errors.As(err, &refusal) {
		f = Failure{Err: err} // the try itself refused the batch
	} else {
		f = r.Classify(err)
	}
	var unsent *unsentError
	f.Unsent = f.Unsent || errors.As(err, &unsent)
	return f
}

// again reports whether a failed batch may be sent once more, after so many resends.
func (r *Retry) again(f Failure, stmts []Stmt, resends int) bool {
	switch f.Class {
	case Conflict:
		return true
	case Stale:
		return resends < r.Resends
	case Lost:
		return resends < r.Resends && Repeatable(stmts)
	}
	return false
}

// Jitter spreads a pause, which is positive, evenly over 50 to 150 % of itself, so that batches
// that met do not meet again.
func Jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) }

// refuse is the error for the caller. After an overload it keeps further batches back.
func (r *Retry) refuse(f Failure, sent bool) error {
	if f.Class == Overloaded {
		f.Wait = r.overload.begin(f.Wait)
	}
	if !sent {
		return core.Untouched(f.Refusal())
	}
	return f.Refusal()
}

// Repeatable reports whether a batch that may have taken effect can be sent again: no
// statement is marked [Stmt.Once].
func Repeatable(stmts []Stmt) bool {
	return !slices.ContainsFunc(stmts, func(s Stmt) bool { return s.Once })
}

// ReadsOnly reports whether no statement of a batch writes.
func ReadsOnly(stmts []Stmt) bool {
	return !slices.ContainsFunc(stmts, func(s Stmt) bool { return !s.Reads })
}

// sleep waits for d, or returns the error of ctx if ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
