package core

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A bench is a machine and a database, whose clocks only the test moves.
type bench struct {
	wall, database time.Time
	up             time.Duration
	facts          []string
	*DatabaseClock
}

func newBench(ahead time.Duration) *bench {
	b := &bench{wall: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	b.database = b.wall.Add(ahead)
	b.DatabaseClock = &DatabaseClock{read: func() instant { return instant{b.wall, b.up} }}
	b.Tell(func(f Fact) { b.facts = append(b.facts, fmt.Sprintf("%T%v", f, f)) })
	return b
}

func (b *bench) pass(d time.Duration) {
	b.wall, b.database, b.up = b.wall.Add(d), b.database.Add(d), b.up+d
}

// measure asks the database, which looks at its clock after there on the way.
func (b *bench) measure(there, back time.Duration) {
	answered := b.Measure()
	b.pass(there)
	said := b.database
	b.pass(back)
	answered(said)
}

func (b *bench) off() time.Duration { return b.Now().Sub(b.database) }

func (b *bench) want(t *testing.T, why string, off, within time.Duration) {
	t.Helper()
	if got := b.off(); (got - off).Abs() > within {
		t.Errorf("%s: the clock is %v ahead of the database's, want %v, give or take %v", why, got, off, within)
	}
}

func TestDatabaseClock(t *testing.T) {
	const ms = time.Millisecond
	stories := map[string]func(t *testing.T, b *bench){
		"nothing is known before the first measurement": func(t *testing.T, b *bench) {
			if b.Ahead() != 0 || !b.Now().Equal(b.wall) {
				t.Errorf("ahead %v at %v, want the machine's time", b.Ahead(), b.Now())
			}
		},
		"half of the round trip counts": func(t *testing.T, b *bench) {
			b.measure(40*ms, 40*ms)
			b.want(t, "the ways are equally long", 0, 0)
			if b.Ahead() != 45*time.Second {
				t.Errorf("ahead %v, want 45s", b.Ahead())
			}
		},
		"a step of the machine's clock moves nothing": func(t *testing.T, b *bench) {
			b.measure(ms, ms)
			for _, step := range []time.Duration{-time.Hour, time.Hour, -300 * ms} {
				b.wall = b.wall.Add(step)
				b.pass(time.Second)
				b.want(t, step.String(), 0, 0)
				b.measure(ms, ms)
				b.pass(time.Second)
				b.want(t, step.String()+" and measured", 0, 0)
			}
		},
		"a small correction is gradual, forward and back": func(t *testing.T, b *bench) {
			b.measure(ms, ms)
			for _, jump := range []time.Duration{20 * time.Second, -20 * time.Second} {
				b.database = b.database.Add(jump)
				b.measure(ms, ms)
				b.want(t, "at first", -jump, 0)
				b.pass(100 * time.Second)
				b.want(t, "on the way", -jump/2, 0)
				b.measure(ms, ms)
				b.pass(100 * time.Second)
				b.want(t, "at the end", 0, ms)
			}
		},
		"a large correction is made at once": func(t *testing.T, b *bench) {
			b.measure(ms, ms)
			for _, jump := range []time.Duration{time.Hour, -time.Hour} {
				b.database = b.database.Add(jump)
				b.measure(ms, ms)
				b.want(t, jump.String(), 0, 0)
			}
		},
		"a long round trip is not believed over a short one": func(t *testing.T, b *bench) {
			b.measure(5*ms, 5*ms)
			b.pass(time.Minute)
			b.measure(0, 4*time.Second)
			b.pass(time.Minute)
			b.want(t, "after 4 s on one way", 0, ms)
		},
		"a long round trip that proves the clock wrong is believed": func(t *testing.T, b *bench) {
			b.measure(5*ms, 5*ms)
			b.database = b.database.Add(30 * time.Second)
			b.measure(2*time.Second, 2*time.Second)
			b.pass(5 * time.Minute)
			b.want(t, "after 4 s on both ways", 0, ms)
		},
		"a short round trip replaces a long one": func(t *testing.T, b *bench) {
			b.measure(0, 2*time.Second)
			b.want(t, "after 2 s on one way", -time.Second, 0)
			b.measure(ms, ms)
			b.pass(time.Minute)
			b.want(t, "after a better one", 0, 0)
		},
		"a suspended process catches up at once when it measures": func(t *testing.T, b *bench) {
			b.measure(ms, ms)
			b.wall, b.database = b.wall.Add(20*time.Second), b.database.Add(20*time.Second) // up stands still
			if _, due := b.Due(); !due {
				t.Error("no measurement is due after a suspension")
			}
			b.measure(ms, ms)
			b.want(t, "measured", 0, 3*ms)
		},
		"a function goes on by the wall": func(t *testing.T, b *bench) {
			b.measure(ms, ms)
			b.wall, b.database = b.wall.Add(20*time.Second), b.database.Add(20*time.Second)
			b.Resume()
			b.want(t, "resumed", 0, 0)
			if _, due := b.Due(); due {
				t.Error("a measurement is due 20 s after the last one")
			}
			b.wall, b.database = b.wall.Add(50*time.Second), b.database.Add(50*time.Second)
			b.Resume()
			if _, due := b.Due(); !due {
				t.Error("no measurement is due 70 s after the last one")
			}
			b.wall = b.wall.Add(-time.Minute)
			b.Resume()
			b.want(t, "a wall clock that was set back", 0, 0)
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { story(t, newBench(45*time.Second)) })
	}
}

// TestDatabaseClockDue: a measurement is due a minute after the last one, for one caller,
// and at once where there is reason to doubt it.
func TestDatabaseClockDue(t *testing.T) {
	b := newBench(0)
	want := func(why string, since time.Duration, due bool) {
		t.Helper()
		if s, d := b.Due(); d != due || d && s != since {
			t.Errorf("%s: due %v since %v, want %v since %v", why, d, s, due, since)
		}
	}
	want("at the beginning", measureEvery, true)
	answered := b.Measure()
	want("under way", 0, false)
	b.pass(measureSoon)
	want("not answered", measureEvery, true)
	answered(b.database)
	want("rough", 0, false)
	b.pass(measureSoon)
	want("a while after a rough one", 0, true)
	b.measure(0, 0)
	b.pass(measureEvery - 1)
	want("not quite a minute later", 0, false)
	b.pass(3 * time.Second)
	want("more than a minute later", 3*time.Second-1, true)
	b.measure(0, 0)
	b.pass(time.Second)
	b.Doubt()
	want("doubted", 0, true)
	b.measure(0, 0)
	b.wall = b.wall.Add(-time.Second)
	want("the machine's clock was set", measureEvery, true)
	b.measure(0, 0)
	want("measured since", 0, false)
}

// TestDatabaseClockTells: a fact is stated when the clocks are more than a second apart,
// and when their difference changes by more than a second.
func TestDatabaseClockTells(t *testing.T) {
	b := newBench(900 * time.Millisecond)
	for _, step := range []struct {
		move time.Duration // of the database's clock
		set  time.Duration // by which the machine's clock is set forward
		want []string
	}{
		{want: nil},
		{move: 200 * time.Millisecond, want: []string{"core.ClocksDiffer{1.1s}"}},
		{move: 800 * time.Millisecond},
		{move: 30 * time.Second, want: []string{"core.DatabaseClockJumped{30s}", "core.ClocksDiffer{31.9s}"}},
		{set: 31900 * time.Millisecond, want: []string{"core.ClocksDiffer{0s}"}},
		{move: -5 * time.Second, want: []string{"core.DatabaseClockJumped{-5s}", "core.ClocksDiffer{-5s}"}},
	} {
		b.database, b.wall = b.database.Add(step.move), b.wall.Add(step.set)
		b.facts = nil
		b.measure(0, 0)
		if !slices.Equal(b.facts, step.want) {
			t.Errorf("after moves by %v and %v: observed %v, want %v", step.move, step.set, b.facts, step.want)
		}
	}
	b.facts = nil
	b.Tell(b.observe)
	if want := []string{"core.ClocksDiffer{-5s}"}; !slices.Equal(b.facts, want) {
		t.Errorf("a new observer is observed %v, want %v", b.facts, want)
	}
}

// TestDatabaseClockWalk: for all measurements and jumps within the bounds, the clock never
// runs backwards, never runs faster or slower than by a tenth, and is right in the end.
func TestDatabaseClockWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "ahead")))
		trip := rapid.Int64Range(0, int64(3*time.Second))
		b.measure(time.Duration(trip.Draw(t, "there")), time.Duration(trip.Draw(t, "back")))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before, up := b.Now(), b.up
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				b.pass(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "pass")))
			case 1:
				b.measure(time.Duration(trip.Draw(t, "there")), time.Duration(trip.Draw(t, "back")))
			case 2:
				// Few enough that the owed correction stays below a minute.
				b.database = b.database.Add(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "jump")))
			case 3:
				b.wall = b.wall.Add(time.Duration(rapid.Int64Range(-1e12, 0).Draw(t, "set back")))
			}
			went, passed := b.Now().Sub(before), b.up-up
			if (went - passed).Abs() > passed/slewPart+1 {
				t.Fatalf("the clock went on by %v in %v", went, passed)
			}
		}
		b.measure(0, 0)
		b.pass(11 * time.Minute)
		b.measure(0, 0)
		if off := b.off().Abs(); off > granularity {
			t.Fatalf("the clock is %v off in the end", off)
		}
	})
}

// TestDatabaseClockTogether: it may be read, measured and resumed at the same time.
func TestDatabaseClockTogether(t *testing.T) {
	c := NewDatabaseClock(SystemClock)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				c.Measure()(time.Now().Add(time.Minute))
				c.Doubt()
				c.Resume()
			}
		})
		all.Go(func() {
			for range 200 {
				c.Now()
				c.Ahead()
				c.Due()
			}
		})
	}
	all.Wait()
	if off := time.Until(c.Now()); (off - time.Minute).Abs() > 30*time.Second {
		t.Errorf("the clock is %v ahead of the machine's, want a minute", off)
	}
}

func BenchmarkDatabaseClock(b *testing.B) {
	b.Run("machine", func(b *testing.B) {
		for b.Loop() {
			SystemClock()
		}
	})
	b.Run("database", func(b *testing.B) {
		c := NewDatabaseClock(SystemClock)
		c.Measure()(time.Now())
		for b.Loop() {
			c.Now()
		}
	})
	b.Run("due", func(b *testing.B) {
		c := NewDatabaseClock(SystemClock)
		c.Measure()(time.Now())
		for b.Loop() {
			c.Due()
		}
	})
}
