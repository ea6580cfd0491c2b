package cron

import "time"

// A wall time is the time that a clock in a zone shows. It is written as a time in UTC with
// the same date and clock. A clock that goes back shows some wall times twice, and a clock
// that goes forward skips some. Slots follow the latest wall time that the clock has shown
// so far: that time never goes back. A slot fires when that time reaches or passes the
// slot's wall time.

// farthest is more than any two zones' clocks ever differed, and more than any clock was
// ever moved.
const farthest = 26 * time.Hour

// wallAt returns the wall time at an instant.
func wallAt(zone *time.Location, t time.Time) time.Time {
	_, seconds := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(seconds) * time.Second)
}

// latest returns the latest wall time that the clock of a zone has shown up to an instant,
// that instant included.
func latest(zone *time.Location, t time.Time) time.Time {
	wall := wallAt(zone, t)
	for at := t; ; {
		began, _ := at.In(zone).ZoneBounds()
		if began.IsZero() || began.Before(t.Add(-2*farthest)) {
			return wall
		}
		at = began.Add(-time.Second)
		if before := wallAt(zone, at); before.After(wall) {
			wall = before
		}
	}
}

// changeAfter returns a later instant up to which the clock of a zone runs evenly; the zero
// time means for ever. From about 2038 on, zones follow their last rule. There the standard
// library also ends a period at the end of a year, and on 31 December of a leap year it
// returns an end that has passed.
func changeAfter(zone *time.Location, t time.Time) time.Time {
	_, end := t.In(zone).ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		return t.Add(24 * time.Hour) // no rule changes a clock around the end of a year
	}
	return end
}

// instant returns the first instant at which the clock of a zone shows a wall time, or a
// later one if the clock skips it.
func instant(zone *time.Location, wall time.Time) time.Time {
	for at := wall.Add(-farthest); ; {
		_, seconds := at.In(zone).Zone()
		end := changeAfter(zone, at)
		t := wall.Add(-time.Duration(seconds) * time.Second)
		if t.Before(at) {
			t = at
		}
		if end.IsZero() || t.Before(end) {
			return t.In(zone)
		}
		at = end
	}
}
