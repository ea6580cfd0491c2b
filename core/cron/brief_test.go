package cron

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// brief makes one tick with a budget, as a cloud function does. It returns how long the tick
// took.
func (b *bench) brief(until, end time.Duration) (time.Duration, error) {
	b.t.Helper()
	began := b.now()
	budget := core.Budget{Until: began.Add(until), Rest: 10 * time.Second, Brief: true}
	if end > 0 {
		budget.End = began.Add(end)
	}
	err := b.Tick(b.t.Context(), budget)
	return b.now().Sub(began), err
}

func TestBriefTick(t *testing.T) {
	for _, tt := range []struct {
		name, schedule string
		took           time.Duration
		fired          int
	}{
		{"no slot in its time", "0 * * * *", 0, 0},
		{"a slot in its time", "45 * * * * *", 45 * time.Second, 1},
		{"a slot when its time is over", "* * * * *", 0, 0},
		{"many slots", "*/20 * * * * *", 40 * time.Second, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "a:"+tt.schedule)
				took, err := b.brief(time.Minute, 0)
				if n := b.events("a"); err != nil || took != tt.took || n != tt.fired || b.reads != 1 {
					t.Errorf("Tick = %v after %v with %d events and %d reads of marks, want %d after %v with 1", err, took, n, b.reads, tt.fired, tt.took)
				}
			})
		})
	}
}

// TestBriefTicksMissNothing: ticks begin every minute, and each ends before the next begins.
// Then every slot is fired.
func TestBriefTicksMissNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:*/7 * * * * *", "b:* * * * *", "c:59 * * * * *")
		b.tick()
		for start := b.now(); b.now().Before(start.Add(time.Hour)); {
			next := b.now().Add(time.Minute)
			if _, err := b.brief(time.Minute, 70*time.Second); err != nil {
				t.Fatal(err)
			}
			sleep(next.Sub(b.now()))
		}
		b.tick()
		for name, want := range map[string]int{"a": 9 * 60, "b": 60, "c": 60} {
			if n := b.events(name); n != want {
				t.Errorf("%s has %d events of an hour, want %d", name, n, want)
			}
		}
	})
}

// TestBriefTickCatchesUp: slots that became due between two ticks are fired first.
func TestBriefTickCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:*/5 * * * *")
		b.tick()
		sleep(11 * time.Minute)
		took, err := b.brief(time.Minute, 0)
		if err != nil || took != 0 {
			t.Errorf("Tick = %v after %v, want none at once", err, took)
		}
		b.wantFired("a 01-01T00:10:00")
		b.wantMark("a", "2000-01-01T00:10:00.000")
	})
}

// TestBriefTickFails: a failed slot or calendar is tried again until the tick's time is over. A
// calendar that still fails then is an error.
func TestBriefTickFails(t *testing.T) {
	why := errors.New("no room")
	for _, times := range []int{2, 1000} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "a:5 * * * * *")
			failed := 0
			b.refuse = func(string, time.Time) error {
				if failed++; failed > times {
					return nil
				}
				return why
			}
			took, err := b.brief(time.Minute, 0)
			if times == 2 && (err != nil || took > 10*time.Second || b.events("a") != 1) {
				t.Errorf("Tick = %v after %v with %d events, want one soon", err, took, b.events("a"))
			}
			if times == 1000 && took != time.Minute {
				t.Errorf("Tick = %v after %v, want it to try for a minute", err, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:5 * * * * *")
		b.away = why
		if took, err := b.brief(20*time.Second, 0); !errors.Is(err, why) || took != 20*time.Second {
			t.Errorf("Tick without a calendar = %v after %v, want %v after 20s", err, took, why)
		}
	})
}

// TestBriefTickWritesItsMarks: a tick that has fired all slots returns only after the mark is
// written.
func TestBriefTickWritesItsMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:5 0 * * * *")
		b.during = func(context.Context, string) error {
			b.mu.Lock()
			b.away = errors.New("no room")
			b.mu.Unlock()
			time.AfterFunc(10*time.Second, func() { b.mu.Lock(); defer b.mu.Unlock(); b.away = nil })
			return nil
		}
		// The calendar fails while the event is stored, so only the mark has to be tried again.
		if took, err := b.brief(time.Minute, 0); err != nil || took < 15*time.Second || took > 40*time.Second {
			t.Errorf("Tick = %v after %v, want none soon after 15s", err, took)
		}
		b.wantMark("a", "2000-01-01T00:00:05.000")
	})
}

// TestEndOfATick: no slot is fired in the last 2 s of a process.
func TestEndOfATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:* * * * * *")
		took, err := b.brief(time.Minute, 30*time.Second)
		if n := b.events("a"); err != nil || took != 27*time.Second || n != 27 {
			t.Errorf("Tick = %v after %v with %d events, want 27 in 27s", err, took, n)
		}
	})
}

// TestFireThatPanics: a slot whose firing panics is tried again. Slots of other sources are
// fired.
func TestFireThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a:*/10 * * * * *", "b:*/10 * * * * *")
		panicked := 0
		b.refuse = func(source string, _ time.Time) error {
			if source == "a" && panicked < 2 {
				panicked++
				panic("no such source")
			}
			return nil
		}
		b.run(time.Minute)
		if a, other := b.events("a"), b.events("b"); a != 5 || other != 5 {
			t.Errorf("%d and %d events, want 5 of each", a, other)
		}
		var p *core.Panic
		if told := told[core.Troubled](b); len(told) != 2 || !errors.As(told[0].Err, &p) || p.Stack == "" {
			t.Errorf("told of %v, want two panics with their stacks", told)
		}
	})
}
