// Package cron fires cron sources: it reads their schedules, of five fields, or six with
// seconds in front, in UTC or at a fixed offset, and stores an event for each slot.
//
// The idea to know: a slot's name is its Unix time, and the store takes each name of a
// source once. So any number of processes may tick at once and again after a crash, and
// nothing has to be elected or locked. The marks in the calendar decide nothing about
// that. They only tell a slot that nobody looked at from one that was fired, so that a
// tick need not go through all slots of the last five minutes, and can say which ones
// before that were missed. So a mark is written after what it covers was fired, and
// may be lost.
//
// Schedules are judged here before the library sees them. Its parser reads more than
// this project promises (zone prefixes, @descriptors) and panics on some of that, so
// anything outside a small set of characters and a field count of five or six never
// reaches it. A schedule that names no real date, such as 30 February, is refused at
// load instead of being searched for at every tick. Zones are fixed offsets, so no slot
// is ever skipped or repeated by a clock change.
//
// The package does no IO. It may import core, the standard library's pure packages and
// the schedule parser; schedules alone (cron.go, slots.go) need no core.
package cron

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// A Schedule tells when a cron source fires. The zero Schedule never fires; Parse makes useful ones.
type Schedule struct {
	spec cron.Schedule
	zone *time.Location
}

// Next returns the first slot strictly after t, in the schedule's zone, or the zero time if there is none within
// five years of t.
func (s Schedule) Next(t time.Time) time.Time {
	if s.spec == nil {
		return time.Time{}
	}
	return s.spec.Next(t.In(s.zone))
}

// A field is one column of a schedule: what a message calls it and what it may hold.
type field struct {
	name, allowed string
	option        cron.ParseOption
}

var fields = []field{
	{"second", "0 to 59", cron.Second},
	{"minute", "0 to 59", cron.Minute},
	{"hour", "0 to 23", cron.Hour},
	{"day of month", "1 to 31", cron.Dom},
	{"month", "1 to 12 or jan to dec", cron.Month},
	{"day of week", "0 to 6 (0 is Sunday) or sun to sat", cron.Dow},
}

var (
	parser  = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	allowed = regexp.MustCompile(`^[0-9A-Za-z*/,?\- \t]*$`)
	offset  = regexp.MustCompile(`^([+-])([0-9]{2}):([0-5][0-9])$`)
)

// longest bounds a schedule's text: a list of all sixty seconds and minutes fits.
const longest = 512

// Parse reads a schedule of five fields (minute, hour, day of month, month, day of week), or six with seconds in
// front, in a zone as ParseZone takes it. The error names the field that is wrong and what it may hold.
func Parse(schedule, zone string) (Schedule, error) {
	loc, err := ParseZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	if err := guard(schedule); err != nil {
		return Schedule{}, err
	}
	spec, err := parser.Parse(schedule)
	if err != nil {
		return Schedule{}, explain(strings.Fields(schedule))
	}
	s := Schedule{spec, loc}
	// Only a date that no calendar has stays unmatched for five years, so any start shows it.
	if s.Next(time.Unix(0, 0)).IsZero() {
		return Schedule{}, errors.New("never fires: no year has such a date")
	}
	return s, nil
}

// guard refuses what must not reach the parser.
func guard(schedule string) error {
	if len(schedule) > longest {
		return fmt.Errorf("a schedule has at most %d characters", longest)
	}
	if n := len(strings.Fields(schedule)); n != 5 && n != 6 {
		return fmt.Errorf("a schedule has 5 fields (minute hour day month weekday), or 6 with seconds in front, not %d", n)
	}
	if !allowed.MatchString(schedule) {
		return errors.New("a schedule holds only letters, digits, blanks and * / , ? -")
	}
	return nil
}

// explain finds the field that the parser refuses, by trying each alone: its own message speaks of Go's parsing.
func explain(parts []string) error {
	columns := fields[len(fields)-len(parts):]
	for i, c := range columns {
		if _, err := cron.NewParser(c.option).Parse(parts[i]); err != nil {
			return fmt.Errorf("%s field %q: must be %s, alone or as *, a list a,b, a range a-b or a step */n", c.name, parts[i], c.allowed)
		}
	}
	return errors.New("not a schedule")
}

// ParseZone reads "UTC" or a fixed offset "+HH:MM" or "-HH:MM" of at most 14 hours.
func ParseZone(zone string) (*time.Location, error) {
	if zone == "UTC" {
		return time.UTC, nil
	}
	m := offset.FindStringSubmatch(zone)
	if m == nil {
		return nil, errors.New("must be UTC or a fixed offset such as +09:00")
	}
	hours, _ := strconv.Atoi(m[2])
	minutes, _ := strconv.Atoi(m[3])
	seconds := hours*3600 + minutes*60
	if seconds > 14*3600 {
		return nil, errors.New("must be UTC or a fixed offset of at most 14 hours, such as +09:00")
	}
	if m[1] == "-" {
		seconds = -seconds
	}
	return time.FixedZone(zone, seconds), nil
}
