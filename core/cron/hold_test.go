package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// hold holds a source of the bench until a time; the zero time is no end.
func (b *bench) hold(source string, until time.Time) {
	b.t.Helper()
	if err := b.store.Hold(b.t.Context(), b.now(), core.SourceLane(source), until, ""); err != nil {
		b.t.Fatal(err)
	}
}

// release ends the hold of a source.
func (b *bench) release(source string) {
	b.t.Helper()
	if _, err := b.store.Unhold(b.t.Context(), b.now(), core.SourceLane(source)); err != nil {
		b.t.Fatal(err)
	}
}

// wantSkipped compares the spans of skipped slots: the source, why, and the number, the first and
// the last of the slots.
func (b *bench) wantSkipped(want ...string) {
	b.t.Helper()
	var got []string
	for _, s := range told[core.Skipped](b) {
		why := "unseen"
		if s.Held {
			why = "held"
		}
		got = append(got, fmt.Sprint(s.Source, " ", why, " ", s.Slots, " ", s.First.Format("15:04:05"), " ", s.Last.Format("15:04:05")))
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("skipped %q, want %q", got, want)
	}
}

// TestHeldSourceSkipsItsSlots: the slots of a held source make no events, also not after its
// release. Other sources go on.
func TestHeldSourceSkipsItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *", "b:*/2 * * * *")
		b.hold("b", time.Time{})
		b.hold("gone", time.Time{})
		b.run(4*time.Minute + 30*time.Second)
		b.wantFired("a 01-01T00:01:00", "a 01-01T00:02:00", "a 01-01T00:03:00", "a 01-01T00:04:00")
		b.wantMark("b", "2000-01-01T00:04:00.000")
		b.wantSkipped("b held 1 00:02:00 00:02:00", "b held 1 00:04:00 00:04:00")
		b.release("b")
		b.run(2 * time.Minute)
		if n := b.events("b"); n != 1 {
			t.Errorf("b has %d events, want that of 00:06", n)
		}
		b.wantMark("b", "2000-01-01T00:06:00.000")
		if got := told[core.Skipped](b); len(got) != 2 {
			t.Errorf("skipped %v, want none after the release", got)
		}
	})
}

// TestHoldOfSourceEndsByItself: the first slot after the end of a hold is fired.
func TestHoldOfSourceEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		b.hold("a", b.now().Add(2*time.Minute))
		b.run(3*time.Minute + 30*time.Second)
		b.wantFired("a 01-01T00:02:00", "a 01-01T00:03:00")
		b.wantSkipped("a held 1 00:01:00 00:01:00")
	})
}

// TestSlotsBeforeAHold: slots that passed unseen before a hold began were not skipped because of
// the hold. A hold of many slots is one span.
func TestSlotsBeforeAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		b.tick()
		sleep(20*time.Minute + time.Second)
		b.hold("a", time.Time{})
		sleep(30 * time.Minute)
		b.tick()
		b.wantFired()
		b.wantMark("a", "2000-01-01T00:50:00.000")
		b.wantSkipped("a unseen 20 00:01:00 00:20:00", "a held 30 00:21:00 00:50:00")
		// A source that is held while its slot is fired late does not fire it.
		b.release("a")
		sleep(90 * time.Second)
		b.hold("a", time.Time{})
		b.facts = nil
		b.tick()
		b.wantFired()
		b.wantSkipped("a held 1 00:51:00 00:51:00")
	})
}

// TestHoldsAreReadForDueSlots: the holds are read once for all sources with due slots, and never
// without a due slot.
func TestHoldsAreReadForDueSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i := range 40 {
			all = append(all, fmt.Sprintf("s%d:0 * * * *", i))
		}
		b := newBench(t, all...)
		b.hold("s7", time.Time{})
		b.run(59 * time.Minute)
		if b.looks > 0 {
			t.Errorf("holds were read %d times without a due slot", b.looks)
		}
		b.run(2 * time.Minute)
		if b.looks != 1 || len(b.calls) != 39 {
			t.Errorf("holds were read %d times, and %d slots fired, want once and 39", b.looks, len(b.calls))
		}
	})
}

// TestHoldsCannotBeRead: no slot is fired while the holds are unknown. The read is repeated like a
// failed slot.
func TestHoldsCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *", "b:* * * * *")
		b.hold("b", time.Time{})
		b.blind = errors.New("no database")
		time.AfterFunc(70*time.Second, func() { b.mu.Lock(); b.blind = nil; b.mu.Unlock() })
		b.run(100 * time.Second)
		b.wantFired("a 01-01T00:01:00")
		b.wantSkipped("b held 1 00:01:00 00:01:00")
		got := told[core.Troubled](b)
		if len(got) != 4 || got[0].Doing != "read holds" || got[0].Err.Error() != "no database" {
			t.Errorf("troubled %v, want four at 0, 1, 3 and 7 seconds", got)
		}
		// A tick that does not wait returns the error.
		b.blind = errors.New("no database")
		sleep(time.Minute)
		if err := b.Tick(t.Context(), core.Budget{}); !errors.Is(err, b.blind) {
			t.Errorf("Tick = %v, want %v", err, b.blind)
		}
		b.wantFired()
		// The end of the context is no trouble.
		ctx, stop := context.WithCancel(t.Context())
		b.facts = nil
		b.Holding = func(context.Context, time.Time) ([]core.Hold, error) {
			stop()
			return nil, ctx.Err()
		}
		if err := b.Tick(ctx, core.Budget{Rest: time.Second}); err != nil || len(b.facts) > 0 {
			t.Errorf("Tick = %v and facts %v, want none", err, b.facts)
		}
	})
}

// TestHeldSlotsAreStatedOnce: skipped slots are stated once their mark is written.
func TestHeldSlotsAreStatedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		b.hold("a", time.Time{})
		set := func(err error) func() { return func() { b.mu.Lock(); b.away = err; b.mu.Unlock() } }
		time.AfterFunc(time.Second, set(errors.New("no database")))
		time.AfterFunc(150*time.Second, set(nil))
		b.run(4*time.Minute + 30*time.Second)
		b.wantFired()
		b.wantSkipped("a held 2 00:01:00 00:02:00", "a held 1 00:03:00 00:03:00", "a held 1 00:04:00 00:04:00")
	})
}
