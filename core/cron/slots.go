package cron

import (
	"math/bits"
	"sort"
	"time"

	"github.com/robfig/cron/v3"
)

// A Span is a number of slots that follow one another.
type Span struct {
	Slots       int
	First, Last time.Time // the zero times if there are none
}

// and returns s with the slots of a later span.
func (s Span) and(later Span) Span {
	if s.Slots > 0 {
		later.First = s.First
	}
	later.Slots += s.Slots
	return later
}

// Span returns the slots after from and up to to. It counts them by the day, so that
// a year of seconds costs no more than a year of days.
func (s Schedule) Span(from, to time.Time) Span {
	if s.spec == nil || !to.After(from) {
		return Span{}
	}
	n, last := count(s.spec, latest(s.zone, from), latest(s.zone, to))
	if n == 0 {
		return Span{}
	}
	return Span{Slots: n - s.merged(from, to), First: s.Next(from), Last: instant(s.zone, last)}
}

// merged counts the slots after from and up to to that fire together with an earlier slot,
// because the clock skipped them.
func (s Schedule) merged(from, to time.Time) (n int) {
	for at := from; ; {
		change := changeAfter(s.zone, at)
		if change.IsZero() || change.After(to) {
			return n
		}
		skipped, _ := count(s.spec, latest(s.zone, change.Add(-time.Second)), latest(s.zone, change))
		n += max(skipped-1, 0)
		at = change
	}
}

// count counts the slots after a wall time and up to another one, and returns the last.
func count(f *cron.SpecSchedule, from, to time.Time) (n int, last time.Time) {
	for slot := f.Next(from); !slot.IsZero() && !slot.After(to); {
		// Each day with slots is counted at once. The next search begins after the day.
		end := endOfDay(slot)
		upTo := end
		if to.Before(end) {
			upTo = to
		}
		n += onDay(f, upTo) - onDay(f, slot) + 1
		last = lastOfDay(f, upTo)
		slot = f.Next(end)
	}
	return n, last
}

// endOfDay returns the last second of the day.
func endOfDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 23, 59, 59, 0, t.Location())
}

// onDay counts the slots of a day, one that has any, from its beginning up to t.
func onDay(f *cron.SpecSchedule, t time.Time) int {
	h, m, sec := t.Clock()
	hours, minutes, seconds := below(f.Hour, h), below(f.Minute, m), below(f.Second, sec+1)
	if !holds(f.Minute, m) {
		seconds = 0
	}
	perMinute := below(f.Second, 60)
	if !holds(f.Hour, h) {
		minutes, seconds = 0, 0
	}
	return (hours*below(f.Minute, 60)+minutes)*perMinute + seconds
}

// lastOfDay returns the last slot of t's day up to t, on a day that has one.
func lastOfDay(f *cron.SpecSchedule, t time.Time) time.Time {
	t = t.Truncate(time.Second)
	n := onDay(f, t)
	// The count does not change between the last slot and t, so the search finds where it
	// changes.
	back := sort.Search(24*60*60, func(back int) bool {
		earlier := t.Add(-time.Duration(back+1) * time.Second)
		return earlier.Day() != t.Day() || onDay(f, earlier) < n
	})
	return t.Add(-time.Duration(back) * time.Second)
}

// holds reports whether a field, a set of bits, contains a value.
func holds(set uint64, value int) bool { return set&(1<<value) != 0 }

// below counts the values of a field below a bound.
func below(set uint64, bound int) int { return bits.OnesCount64(set & (1<<bound - 1)) }
