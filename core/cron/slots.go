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

// Span returns the slots after from and up to to. It counts them by the day, so that
// a year of seconds costs no more than a year of days.
func (s Schedule) Span(from, to time.Time) Span {
	var span Span
	for slot := s.Next(from); !slot.IsZero() && !slot.After(to); {
		end := endOfDay(slot)
		upTo := end
		if to.Before(end) {
			upTo = to
		}
		if span.Slots == 0 {
			span.First = slot
		}
		span.Slots += s.onDay(upTo) - s.onDay(slot) + 1
		span.Last = s.lastOfDay(upTo)
		slot = s.Next(end)
	}
	return span
}

// endOfDay is the last second of the day, in t's zone.
func endOfDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 23, 59, 59, 0, t.Location())
}

// onDay counts the slots of a day, one that has any, from its beginning up to t.
func (s Schedule) onDay(t time.Time) int {
	f := s.spec.(*cron.SpecSchedule)
	h, m, sec := t.In(s.zone).Clock()
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

// lastOfDay is the last slot of t's day up to t, on a day that has one.
func (s Schedule) lastOfDay(t time.Time) time.Time {
	t = t.In(s.zone).Truncate(time.Second)
	n := s.onDay(t)
	back := sort.Search(24*60*60, func(back int) bool {
		earlier := t.Add(-time.Duration(back+1) * time.Second)
		return earlier.Day() != t.Day() || s.onDay(earlier) < n
	})
	return t.Add(-time.Duration(back) * time.Second)
}

// holds tells whether a field, a set of bits, has a value.
func holds(set uint64, value int) bool { return set&(1<<value) != 0 }

// below counts the values of a field below a bound.
func below(set uint64, bound int) int { return bits.OnesCount64(set & (1<<bound - 1)) }
