package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// engineError is an error of an engine that consists of its meaning.
type engineError struct{ Failure }

func (e engineError) Error() string { return "engine" }

func classOf(err error) Failure {
	e := err.(engineError)
	e.Err = err
	return e.Failure
}

// TestRetry: each class of failure is sent again as often as is safe, and the caller learns
// whether the batch may have taken effect. An error in this table would store an event twice or
// lose one.
func TestRetry(t *testing.T) {
	write, once := []Stmt{{Name: "write"}}, []Stmt{{Name: "once", Once: true}}
	of := func(c Class) Failure { return Failure{Class: c} }
	unsent := func(c Class) Failure { return Failure{Class: c, Unsent: true} }
	for name, tt := range map[string]struct {
		stmts     []Stmt
		fails     []Failure // of the first tries; the last one repeats if endless is set
		endless   bool
		tries     int
		ok        bool
		untouched bool
		kind      core.Kind
	}{
		"success":                     {stmts: write, tries: 1, ok: true},
		"rejected":                    {stmts: write, fails: []Failure{of(Rejected)}, tries: 1},
		"a conflict":                  {stmts: once, fails: []Failure{of(Conflict)}, tries: 2, ok: true},
		"conflicts":                   {stmts: write, fails: []Failure{of(Conflict)}, endless: true, tries: 6, untouched: true, kind: core.Unavailable},
		"lost":                        {stmts: write, fails: []Failure{of(Lost)}, tries: 2, ok: true},
		"lost for good":               {stmts: write, fails: []Failure{of(Lost)}, endless: true, tries: 3, kind: core.Unavailable},
		"lost, not repeatable":        {stmts: once, fails: []Failure{of(Lost)}, tries: 1, kind: core.Unavailable},
		"no connection":               {stmts: write, fails: []Failure{unsent(Lost)}, endless: true, tries: 3, untouched: true, kind: core.Unavailable},
		"stale, not repeatable":       {stmts: once, fails: []Failure{unsent(Stale)}, tries: 2, ok: true},
		"lost, then rejected":         {stmts: write, fails: []Failure{of(Lost), of(Rejected)}, tries: 2},
		"lost, then no connection":    {stmts: write, fails: []Failure{of(Lost), unsent(Down)}, tries: 2, kind: core.Unavailable},
		"a conflict, then down":       {stmts: write, fails: []Failure{of(Conflict), unsent(Down)}, tries: 2, untouched: true, kind: core.Unavailable},
		"down":                        {stmts: write, fails: []Failure{of(Down)}, tries: 1, kind: core.Unavailable},
		"overloaded":                  {stmts: write, fails: []Failure{of(Overloaded)}, tries: 1, kind: core.Unavailable},
		"no such table":               {stmts: write, fails: []Failure{of(Mismatched)}, tries: 1, kind: core.Unavailable},
		"a right that the user lacks": {stmts: write, fails: []Failure{of(Misconfigured)}, tries: 1, kind: core.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := Retry{Classify: classOf, Tries: 6, FirstPause: time.Millisecond, MaxPause: time.Second, Resends: 2, Reconnect: func() {}}
				tries := 0
				_, err := r.Do(t.Context(), tt.stmts, func(context.Context, []Stmt) ([]Result, error) {
					tries++
					if tries > len(tt.fails) && !tt.endless {
						return nil, nil
					}
					return nil, engineError{tt.fails[min(tries, len(tt.fails))-1]}
				})
				if tries != tt.tries || (err == nil) != tt.ok || core.NoEffect(err) != tt.untouched {
					t.Errorf("Do = %v after %d tries, no effect: %v; want %d tries, %v", err, tries, core.NoEffect(err), tt.tries, tt.untouched)
				}
				if got := core.IsKind(err, core.Unavailable); got != (tt.kind == core.Unavailable) {
					t.Errorf("Do = %v, unavailable: %v, want %v", err, got, !got)
				}
			})
		})
	}
}

// TestRetryWaits: the pauses double with a jitter of half, and end with the caller. Without
// them, writers that met in a deadlock meet again at once.
func TestRetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Retry{Classify: classOf, Tries: 6, FirstPause: 10 * time.Millisecond, MaxPause: 40 * time.Millisecond}
		fail := func(context.Context, []Stmt) ([]Result, error) { return nil, engineError{Failure{Class: Conflict}} }
		began := time.Now()
		_, _ = r.Do(t.Context(), nil, fail)
		const sum = (10 + 20 + 40 + 40 + 40) * time.Millisecond
		if took := time.Since(began); took < sum/2 || took > sum*3/2 {
			t.Errorf("five pauses took %v, want about %v", took, sum)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := r.Do(ctx, nil, fail)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, new(engineError)) || !core.NoEffect(err) {
			t.Errorf("Do = %v, want the end of the context and the conflict, without effect", err)
		}
	})
}

// TestRetryReconnects: after a lost connection the idle ones are dropped and the batch is sent
// at once. A server that restarts would otherwise fail one batch for each idle connection.
func TestRetryReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dropped, began := 0, time.Now()
		r := Retry{Classify: classOf, Tries: 10, FirstPause: time.Hour, MaxPause: time.Hour, Resends: 1, Reconnect: func() { dropped++ }}
		_, err := r.Do(t.Context(), nil, func(context.Context, []Stmt) ([]Result, error) {
			return nil, engineError{Failure{Class: Lost}}
		})
		if !core.IsKind(err, core.Unavailable) || dropped != 1 || time.Since(began) != 0 {
			t.Errorf("Do = %v after %v and %d reconnects, want one at once", err, time.Since(began), dropped)
		}
	})
}

// TestRetryHoldsBatchesBack: after an overload no batch is sent until the time that the
// database named is over, and the caller learns when that will be.
func TestRetryHoldsBatchesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, r := 0, Retry{Classify: classOf, Tries: 3, FirstPause: time.Second, MaxPause: time.Second}
		do := func(fails bool) error {
			_, err := r.Do(t.Context(), nil, func(context.Context, []Stmt) ([]Result, error) {
				if tries++; fails {
					return nil, engineError{Failure{Class: Overloaded, Wait: 20 * time.Second}}
				}
				return nil, nil
			})
			return err
		}
		for i := range 3 {
			var refusal *core.Refusal
			if err := do(true); !errors.As(err, &refusal) || refusal.RetryAfter != 20*time.Second || core.NoEffect(err) != (i > 0) {
				t.Errorf("batch %d = %v, want unavailable for 20s", i, err)
			}
		}
		if tries != 1 {
			t.Errorf("%d tries, want 1", tries)
		}
		time.Sleep(20 * time.Second)
		if err := do(false); err != nil || r.overload.seen.Load() {
			t.Errorf("after the overload: %v, still checked: %v", err, r.overload.seen.Load())
		}
	})
}

// TestOverloadsDouble: a database that is overloaded after each pause is left alone for longer
// and longer, up to 30 s. A rate limit that names its time is bounded by five minutes.
func TestOverloadsDouble(t *testing.T) {
	const first = 500 * time.Millisecond
	var o overload
	for _, want := range []time.Duration{first, 2 * first, 4 * first} {
		o.until = time.Time{} // the one before is over
		if got := o.begin(first); got != want {
			t.Errorf("begin = %v, want %v", got, want)
		}
		if left := o.left(); left <= 0 || left > want {
			t.Errorf("left = %v of %v", left, want)
		}
	}
	o.until, o.last = time.Time{}, maxOverload
	if got := o.begin(first); got != maxOverload {
		t.Errorf("begin = %v, want %v", got, maxOverload)
	}
	o.end()
	o.until = time.Time{}
	if got := o.begin(24 * time.Hour); got != maxHold {
		t.Errorf("begin(24h) = %v, want %v", got, maxHold)
	}
}
