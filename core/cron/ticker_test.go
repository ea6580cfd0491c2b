package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store/storetest"
)

// A bench is a ticker over a store in memory, in a synctest bubble, with a clock that tests can
// set. It implements the ticker's calendar and its Fire.
type bench struct {
	*Ticker
	t     *testing.T
	store *storetest.Model
	ids   *core.IDs

	mu     sync.Mutex
	set    time.Duration // how far the clock is ahead of the bubble's
	calls  []string      // of Fire, "source slot"
	facts  []core.Fact
	reads  int   // of marks
	looks  int   // for holds
	blind  error // the error of a look for holds; nil if it works
	writes [][]core.Mark
	away   error                                          // the calendar's error; nil if it works
	refuse func(source string, slot time.Time) error      // returns the error of Fire; may be nil
	during func(ctx context.Context, source string) error // runs during Fire; may be nil
}

// newBench makes a bench with a source for each "name: schedule".
func newBench(t *testing.T, sources ...string) *bench {
	b := &bench{t: t}
	b.store, b.ids = storetest.NewModel(b.now), core.NewIDs(b.now)
	b.Ticker = New(Deps{Calendar: b, Holding: b.holding, Clock: b.now, Observe: b.observe, Fire: b.fire}, nil)
	for _, s := range sources {
		name, schedule, _ := cutName(s)
		b.sources = append(b.sources, source(t, name, schedule, "UTC"))
	}
	return b
}

func cutName(s string) (name, schedule string, ok bool) {
	for i := range s {
		if s[i] == ':' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func source(t *testing.T, name, schedule, zone string) Source {
	t.Helper()
	s, err := Parse(schedule, zone)
	if err != nil {
		t.Fatal(err)
	}
	return Source{Name: name, Text: schedule + " " + zone, Schedule: s}
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.set)
}

func (b *bench) setClock(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set += by
}

func (b *bench) observe(f core.Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts = append(b.facts, f)
}

func (b *bench) Marks(ctx context.Context, sources []string) (map[string]core.Mark, error) {
	b.mu.Lock()
	b.reads++
	err := b.away
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return b.store.Marks(ctx, sources)
}

func (b *bench) holding(ctx context.Context, now time.Time) ([]core.Hold, error) {
	b.mu.Lock()
	b.looks++
	err := b.blind
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return b.store.Holding(ctx, now)
}

func (b *bench) Mark(ctx context.Context, marks ...core.Mark) error {
	b.mu.Lock()
	b.writes = append(b.writes, marks)
	err := cmp.Or(b.away, ctx.Err())
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.store.Mark(ctx, marks...)
}

func (b *bench) fire(ctx context.Context, source string, slot time.Time) error {
	b.mu.Lock()
	b.calls = append(b.calls, source+" "+core.FormatTime(slot)[5:19])
	refuse, during := b.refuse, b.during
	b.mu.Unlock()
	if during != nil {
		if err := during(ctx, source); err != nil {
			return err
		}
	}
	if refuse != nil {
		if err := refuse(source, slot); err != nil {
			return err
		}
	}
	return accept(ctx, b.store, b.ids, source, slot)
}

// accept stores a slot's event as intake does.
func accept(ctx context.Context, in core.Inbox, ids *core.IDs, source string, slot time.Time) error {
	_, err := in.Accept(ctx, core.Arrival{Event: core.Event{
		ID: ids.Next(), Source: source, Type: core.CronTick, DeliveryID: strconv.FormatInt(slot.Unix(), 10), CreatedAt: slot,
	}})
	return err
}

// tick fires the slots that are due.
func (b *bench) tick() {
	b.t.Helper()
	if err := b.Tick(b.t.Context(), core.Budget{}); err != nil {
		b.t.Fatalf("Tick = %v, want none", err)
	}
}

// run ticks for a time.
func (b *bench) run(d time.Duration) {
	b.t.Helper()
	if err := b.Tick(b.t.Context(), core.Budget{Until: b.now().Add(d), Rest: 10 * time.Second}); err != nil {
		b.t.Fatalf("Tick = %v, want none", err)
	}
}

// fired returns the calls of Fire since the last call of fired.
func (b *bench) fired() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

func (b *bench) wantFired(want ...string) {
	b.t.Helper()
	if got := b.fired(); !slices.Equal(got, want) {
		b.t.Errorf("fired %q, want %q", got, want)
	}
}

func (b *bench) wantMark(source, want string) {
	b.t.Helper()
	marks, _ := b.store.Marks(b.t.Context(), []string{source})
	if got := core.FormatTime(marks[source].Until); got != want {
		b.t.Errorf("mark of %s = %s, want %s", source, got, want)
	}
}

// events counts the stored events of a source.
func (b *bench) events(source string) int {
	page, _ := b.store.Events(b.t.Context(), core.EventFilter{Source: source, Limit: 1_000_000})
	return len(page.Items)
}

// told returns the facts of a type.
func told[F core.Fact](b *bench) (all []F) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.facts {
		if f, ok := f.(F); ok {
			all = append(all, f)
		}
	}
	return all
}

// sleep lets the bubble's time pass. A bubble begins at midnight of 1 January 2000.
func sleep(d time.Duration) { <-time.After(d) }

func TestFirstTickBeginsAtNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *", "b:*/30 * * * * *")
		sleep(90 * time.Second)
		b.tick()
		b.wantFired()
		b.wantMark("a", "2000-01-01T00:01:30.000")
		b.wantMark("b", "2000-01-01T00:01:30.000")
		sleep(45 * time.Second)
		b.tick()
		slices.Sort(b.calls) // the sources go at the same time
		b.wantFired("a 01-01T00:02:00", "b 01-01T00:02:00")
		b.wantMark("b", "2000-01-01T00:02:00.000")
	})
}

func TestTickFiresWhatBecameDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *", "b:0 * * * *")
		b.tick()
		sleep(3 * time.Minute)
		b.tick()
		b.wantFired("a 01-01T00:01:00", "a 01-01T00:02:00", "a 01-01T00:03:00")
		b.wantMark("a", "2000-01-01T00:03:00.000")
		b.wantMark("b", "2000-01-01T00:00:00.000")
		sleep(59 * time.Second)
		b.tick()
		b.tick()
		b.wantFired()
		if got := len(b.writes); got != 2 {
			t.Errorf("marks were written %d times, want 2: at first, and when something was fired", got)
		}
		sleep(55*time.Minute + time.Second)
		b.tick()
		if got := len(b.writes); got != 3 {
			t.Errorf("marks of two sources were written in %d writes, want 1", got-2)
		}
		if n := b.events("b"); n != 0 {
			t.Errorf("source b has %d events before its first slot", n)
		}
	})
}

// TestCatchUp: more slots are due than one round fires, and the oldest is exactly 5 minutes
// old.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * * *")
		b.tick()
		sleep(5*time.Minute + time.Second)
		b.tick()
		if got := b.events("a"); got != 301 || len(b.calls) != 301 || !slices.IsSorted(b.calls) {
			t.Errorf("fired %d slots in %d calls, want 301 in order", got, len(b.calls))
		}
		if got := told[core.Skipped](b); len(got) > 0 {
			t.Errorf("skipped %v, want none", got)
		}
	})
}

func TestOldSlotsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * * *", "b:0 0 * * *", "c:0 12 29 2 *")
		began := b.now()
		b.tick()
		b.setClock(365 * 24 * time.Hour)
		b.tick()
		if got := b.events("a") + b.events("b"); got != 302 { // b's slot is now
			t.Errorf("fired %d slots, want 302", got)
		}
		skipped := told[core.Skipped](b)
		now := b.now()
		want := []core.Skipped{
			{Source: "a", Slots: 365*24*3600 - 301, First: began.Add(time.Second), Last: now.Add(-301 * time.Second)},
			{Source: "b", Slots: 364, First: began.Add(24 * time.Hour), Last: now.Add(-24 * time.Hour)},
			{Source: "c", Slots: 1, First: began.Add((59*24 + 12) * time.Hour), Last: began.Add((59*24 + 12) * time.Hour)},
		}
		if got, want := spell(skipped), spell(want); !slices.Equal(got, want) {
			t.Errorf("skipped %q, want %q", got, want)
		}
		b.wantMark("c", "2000-02-29T12:00:00.000")
		b.tick()
		if got := told[core.Skipped](b); len(got) != 3 {
			t.Errorf("skipped %q, want it told once", spell(got))
		}
	})
}

func spell(all []core.Skipped) (texts []string) {
	for _, s := range all {
		texts = append(texts, fmt.Sprint(s.Source, " ", s.Slots, " ", core.FormatTime(s.First), " ", core.FormatTime(s.Last)))
	}
	return texts
}

func TestAnotherScheduleBeginsAtNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:0 * * * *")
		b.tick()
		sleep(150 * time.Second)
		b.sources[0] = source(t, "a", "* * * * *", "UTC")
		b.tick()
		b.wantFired()
		b.wantMark("a", "2000-01-01T00:02:30.000")
		b.sources[0] = source(t, "a", "* * * * *", "+01:00") // the same slots by another name
		sleep(time.Minute)
		b.tick()
		b.wantFired()
		sleep(time.Minute)
		b.tick()
		b.wantFired("a 01-01T00:04:00")
	})
}

// TestWaitsForSlots: while the ticker waits for a slot, it makes no call of the calendar.
func TestWaitsForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "second:* * * * * *", "month:0 0 1 * *")
		late := 0
		b.refuse = func(_ string, slot time.Time) error {
			if !b.now().Equal(slot) {
				late++
			}
			return nil
		}
		sleep(123456789)
		b.run(10 * time.Minute)
		if n := b.events("second"); n != 600 || late > 0 {
			t.Errorf("fired %d slots, %d of them late, want 600 in time", n, late)
		}
		if b.reads != 1 || len(b.writes) != 1+600 {
			t.Errorf("marks were read %d times and written %d times, want once and 601 times", b.reads, len(b.writes))
		}
		b.sources = b.sources[1:]
		b.writes = nil
		if err := b.Tick(t.Context(), core.Budget{Until: b.now().AddDate(0, 0, 33), Rest: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if n := b.events("month"); n != 1 || len(b.writes) != 1 {
			t.Errorf("fired %d slots with %d writes in 33 days, want one each", n, len(b.writes))
		}
	})
}

func TestFailedSlotIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *", "b:* * * * *")
		b.refuse = func(source string, slot time.Time) error {
			if source == "a" && b.now().Before(time.Date(2000, 1, 1, 0, 3, 30, 0, time.UTC)) {
				return errors.New("no room")
			}
			return nil
		}
		var tries []string
		b.during = func(_ context.Context, source string) error {
			if source == "a" {
				tries = append(tries, b.now().Format("4:05"))
			}
			return nil
		}
		sleep(30 * time.Second)
		b.run(150 * time.Second)
		b.wantMark("a", "2000-01-01T00:00:30.000")
		b.wantMark("b", "2000-01-01T00:02:00.000")
		// 1, 2, 4, 8, 16 and then 30 seconds after the one before.
		if want := []string{"1:00", "1:01", "1:03", "1:07", "1:15", "1:31", "2:01", "2:31"}; !slices.Equal(tries, want) {
			t.Errorf("tries = %q, want %q", tries, want)
		}
		if got := told[core.Troubled](b); len(got) != len(tries) || got[0].Doing != "fire" || got[0].Err.Error() != `source "a", slot 2000-01-01T00:01:00.000: no room` {
			t.Errorf("troubled %v, want one for each of %d tries", got, len(tries))
		}
		b.run(time.Minute)
		b.wantMark("a", "2000-01-01T00:03:00.000")
		if a, other := b.events("a"), b.events("b"); a != 3 || other != 3 {
			t.Errorf("a has %d events and b has %d, want 3 each", a, other)
		}
	})
}

// TestTroubleIsForgotten: after a fired slot, the waits between tries begin at 1 s again.
func TestTroubleIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		var tries []string
		b.refuse = func(string, time.Time) error {
			if tries = append(tries, b.now().Format("4:05")); len(tries)%4 > 0 {
				return errors.New("no room")
			}
			return nil
		}
		b.run(150 * time.Second)
		if want := []string{"1:00", "1:01", "1:03", "1:07", "2:00", "2:01", "2:03", "2:07"}; !slices.Equal(tries, want) {
			t.Errorf("tries = %q, want %q", tries, want)
		}
	})
}

// TestClockSetBackInTrouble: if the clock is set back, the wait for the next try stays the
// same.
func TestClockSetBackInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		sleep(2 * time.Hour)
		b.refuse = func(string, time.Time) error { return errors.New("no room") }
		time.AfterFunc(64*time.Second, func() {
			b.setClock(-time.Hour)
			b.mu.Lock()
			b.refuse = nil
			b.mu.Unlock()
		})
		done := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- b.Tick(ctx, core.Budget{Rest: time.Second}) }()
		sleep(70 * time.Second)
		synctest.Wait()
		if n := b.events("a"); n != 5 { // the slots of the 5 minutes before
			t.Errorf("a has %d events, want 5", n)
		}
		stop()
		<-done
	})
}

// TestFailedForLong: a slot that could not be fired within 5 minutes is skipped.
func TestFailedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		b.refuse = func(string, time.Time) error {
			if b.now().Before(time.Date(2000, 1, 1, 0, 8, 0, 0, time.UTC)) {
				return errors.New("no room")
			}
			return nil
		}
		b.run(9 * time.Minute)
		b.run(time.Second)
		var slots []string
		for _, s := range told[core.Skipped](b) {
			slots = append(slots, fmt.Sprint(s.Slots, " ", s.First.Format("4:05"), " ", s.Last.Format("4:05")))
		}
		if want := []string{"1 1:00 1:00", "1 2:00 2:00", "1 3:00 3:00"}; !slices.Equal(slots, want) {
			t.Errorf("skipped %q, want %q", slots, want)
		}
		if n := b.events("a"); n != 6 { // 0:04 to 0:09
			t.Errorf("a has %d events, want 6", n)
		}
	})
}

func TestErrorsOfATickThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *", "b:*/2 * * * * *")
		b.tick()
		no := errors.New("no room")
		b.refuse = func(source string, _ time.Time) error {
			if source == "a" {
				return no
			}
			return nil
		}
		sleep(4 * time.Minute)
		if err := b.Tick(t.Context(), core.Budget{}); !errors.Is(err, no) || len(told[core.Troubled](b)) > 0 {
			t.Errorf("Tick = %v and facts %v, want %v and none", err, b.facts, no)
		}
		if a, other := b.events("a"), b.events("b"); a != 0 || other != 120 {
			t.Errorf("a has %d events and b has %d, want none and 120", a, other)
		}
		b.refuse, b.away = nil, errors.New("no database")
		if err := b.Tick(t.Context(), core.Budget{}); !errors.Is(err, b.away) {
			t.Errorf("Tick = %v, want %v", err, b.away)
		}
		b.away = nil
		b.tick()
		if a := b.events("a"); a != 4 {
			t.Errorf("a has %d events, want 4", a)
		}
	})
}

// TestCalendarAway: once the marks are read, slots are fired although the calendar fails. The
// marks are written when it works again.
func TestCalendarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		b.away = errors.New("no database")
		b.run(100 * time.Second)
		b.wantFired()
		if b.reads != 8 { // at 0, 1, 3, 7, 15, 31, 61, 91 seconds
			t.Errorf("marks were asked for %d times in 100 seconds, want 8", b.reads)
		}
		b.away = nil
		b.tick()
		b.wantMark("a", "2000-01-01T00:01:40.000")
		time.AfterFunc(10*time.Second, func() { b.mu.Lock(); b.away = errors.New("no database"); b.mu.Unlock() })
		time.AfterFunc(200*time.Second, func() { b.mu.Lock(); b.away = nil; b.mu.Unlock() })
		b.writes = nil
		b.run(190 * time.Second)
		b.wantFired("a 01-01T00:02:00", "a 01-01T00:03:00", "a 01-01T00:04:00")
		b.wantMark("a", "2000-01-01T00:01:40.000")
		if n := len(b.writes); n > 10 {
			t.Errorf("marks were written %d times in vain, want at most 10", n)
		}
		b.run(time.Minute)
		b.wantMark("a", "2000-01-01T00:05:00.000")
		if n := b.events("a"); n != 4 {
			t.Errorf("a has %d events, want 4", n)
		}
	})
}

// TestClockIsSet: each slot has one event, though the clock is set back or on.
func TestClockIsSet(t *testing.T) {
	for _, tc := range []struct {
		name          string
		by            time.Duration
		calls, events int // of Fire, and stored, in the ten minutes after
		skipped       int
	}{
		{"back a little", -2 * time.Minute, 8, 8, 0},
		{"back an hour", -time.Hour, 10 + 5, 0, 0},
		{"back two hours, before the first slot", -2 * time.Hour, 15, 15, 0},
		{"on a little", 3 * time.Minute, 13, 13, 0},
		{"on a day", 24 * time.Hour, 10 + 5, 10 + 5, 24*60 - 5},
	} {
		for _, waits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/waits %t", tc.name, waits), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, "a:* * * * *")
					run := func(d time.Duration) {
						until := time.Now().Add(d)
						for time.Now().Before(until) {
							b.tick()
							sleep(time.Second)
						}
					}
					if waits {
						ctx, stop := context.WithCancel(t.Context())
						done := make(chan error)
						go func() { done <- b.Tick(ctx, core.Budget{Rest: time.Second}) }()
						defer func() { stop(); <-done }()
						run = sleep
					}
					run(80*time.Minute + 30*time.Second)
					before := b.events("a")
					b.fired()
					b.setClock(tc.by)
					run(10 * time.Minute)
					synctest.Wait()
					if calls, events := len(b.fired()), b.events("a")-before; calls != tc.calls || events != tc.events {
						t.Errorf("fired %d slots and stored %d, want %d and %d", calls, events, tc.calls, tc.events)
					}
					skipped := 0
					for _, s := range told[core.Skipped](b) {
						skipped += s.Slots
					}
					if skipped != tc.skipped {
						t.Errorf("skipped %d, want %d", skipped, tc.skipped)
					}
				})
			})
		}
	}
}

// TestClockWasWrong: a clock that was far ahead for a while stops no source. The slots that
// were skipped then are fired when their time comes.
func TestClockWasWrong(t *testing.T) {
	for _, wait := range []time.Duration{0, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "a:* * * * *")
			tick := func() {
				b.tick()
				if wait > 0 {
					b.run(wait)
				}
			}
			tick()
			b.setClock(24 * time.Hour)
			tick()
			b.setClock(-24 * time.Hour)
			for range 60 {
				sleep(time.Minute - wait)
				tick()
			}
			n := 0
			for m := range 61 {
				slot := time.Date(2000, 1, 1, 0, m, 0, 0, time.UTC)
				a, _ := b.store.Accept(t.Context(), core.Arrival{Event: core.Event{ID: b.ids.Next(), Source: "a", DeliveryID: strconv.FormatInt(slot.Unix(), 10)}})
				if a.Duplicate {
					n++
				}
			}
			if n < 60 {
				t.Errorf("%d of 60 slots have events", n)
			}
			if len(told[core.Troubled](b)) > 0 {
				t.Errorf("troubled %v", told[core.Troubled](b))
			}
		})
	}
}

func TestSourcesFireTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i := range 100 {
			all = append(all, fmt.Sprintf("s%d:0 * * * *", i))
		}
		b := newBench(t, all...)
		var now, most int
		b.during = func(context.Context, string) error {
			b.mu.Lock()
			now++
			most = max(most, now)
			b.mu.Unlock()
			sleep(time.Second)
			b.mu.Lock()
			now--
			b.mu.Unlock()
			return nil
		}
		b.tick()
		sleep(time.Hour)
		began := time.Now()
		b.tick()
		if took := time.Since(began); len(b.calls) != 100 || most != 16 || took != 7*time.Second {
			t.Errorf("%d sources fired, %d at once, in %v; want 100, 16, 7s", len(b.calls), most, took)
		}
		if n := len(b.writes); n != 2 {
			t.Errorf("marks were written %d times, want 2", n)
		}
	})
}

func TestContextEndsTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:0 * * * *", "b:30 * * * *")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Second, cancel)
		began := time.Now()
		if err := b.Tick(ctx, core.Budget{Rest: time.Hour}); err != nil || time.Since(began) != 100*time.Second {
			t.Errorf("Tick = %v after %v, want none after 100s", err, time.Since(began))
		}
		// While a slot is being fired: that is not trouble, and the slot stays due.
		ctx, cancel = context.WithCancel(t.Context())
		b.during = func(ctx context.Context, source string) error {
			if source == "b" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		time.AfterFunc(60*time.Minute, cancel)
		if err := b.Tick(ctx, core.Budget{Rest: time.Hour}); err != nil || time.Since(began) != 3700*time.Second {
			t.Errorf("Tick = %v after %v, want none after 3700s", err, time.Since(began))
		}
		b.wantFired("b 01-01T00:30:00", "a 01-01T01:00:00")
		b.wantMark("a", "2000-01-01T00:00:00.000")
		b.wantMark("b", "2000-01-01T00:30:00.000")
		if got := told[core.Troubled](b); len(got) > 0 {
			t.Errorf("troubled %v, want none", got)
		}
		if err := b.Tick(ctx, core.Budget{}); err != nil {
			t.Errorf("Tick with a context that is over = %v, want none", err)
		}
		b.wantFired()
	})
}

// TestFiredIsMarked: the mark of a fired slot is written although its context has ended.
func TestFiredIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * *")
		ctx, cancel := context.WithCancel(t.Context())
		b.refuse = func(string, time.Time) error { cancel(); return nil }
		if err := b.Tick(ctx, core.Budget{Rest: time.Minute}); err != nil {
			t.Errorf("Tick = %v, want none", err)
		}
		b.wantMark("a", "2000-01-01T00:01:00.000")
	})
}

func TestNoSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.tick()
		b.run(time.Hour)
		if len(b.writes) > 0 || len(b.facts) > 0 {
			t.Errorf("writes %v and facts %v, want none", b.writes, b.facts)
		}
	})
}
