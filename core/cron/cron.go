// Package cron fires cron sources: it reads their schedules, of five fields, or six with
// seconds in front, in UTC, at a fixed offset or in a named zone, and stores an event for each
// slot.
//
// The idea to know: a slot's name is its Unix time, and the store accepts each name of a
// source once. So any number of processes may tick at once and again after a crash, without
// an election or a lock. The marks in the calendar are not needed for that. They
// distinguish a slot that no process watched from a slot that was fired. So a tick need not
// go through all slots of the last five minutes, and can report the earlier ones that were
// missed. A mark is therefore written after its slots were fired, and may be lost.
//
// Schedules are checked here before the library reads them. Its parser accepts more than
// this project promises (zone prefixes, @every) and panics on some of that. So it only gets
// texts of a small set of characters with five or six fields. A schedule without a real
// date, such as 30 February, is refused at load, instead of being searched for at every
// tick.
//
// The library only computes with wall time, as if all zones were UTC. wall.go finds the first
// instant at which the clock of a zone shows a wall time, or the next one that it shows. So a
// slot in the hour that a clock skips fires once, when the hour is skipped. A slot in the hour
// that a clock repeats fires once, the first time. The library's own treatment of zones was
// rejected: it drops the slots of a skipped hour and fires those of a repeated hour twice.
//
// The package does no IO except for zones: the standard library reads those of the machine,
// and if there are none, those in the binary. It may import core, core/once, the standard
// library's pure packages and the schedule parser. The files about schedules alone (cron.go,
// slots.go, wall.go, zone.go) need no core.
package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/eventgateway/gateway/core/once"
)

// A Schedule is the times of a cron source. The zero Schedule never fires; Parse makes
// useful ones.
type Schedule struct {
	spec *cron.SpecSchedule // in wall time: see wall.go
	zone *time.Location
}

// Next returns the first slot strictly after t, in the schedule's zone, or the zero time if
// there is none within five years of t.
func (s Schedule) Next(t time.Time) time.Time {
	if s.spec == nil {
		return time.Time{}
	}
	slot := s.spec.Next(latest(s.zone, t))
	if slot.IsZero() {
		return slot
	}
	return instant(s.zone, slot)
}

// In returns the schedule in another zone.
func (s Schedule) In(zone *time.Location) Schedule {
	s.zone = zone
	return s
}

// A field is one column of a schedule: its name in messages and its permitted values.
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
	{"day of week", "0 to 7 (0 and 7 are Sunday) or sun to sat", cron.Dow},
}

var (
	parser  = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	allowed = once.Regexp(`^[0-9A-Za-z*/,?\- \t]*$`)
)

// longest bounds a schedule's text: a list of all sixty seconds and minutes fits.
const longest = 512

// words are the schedules that have a name.
var words = map[string]string{
	"@hourly":  "0 * * * *",
	"@daily":   "0 0 * * *",
	"@weekly":  "0 0 * * 0",
	"@monthly": "0 0 1 * *",
	"@yearly":  "0 0 1 1 *",
}

// Parse reads a schedule of five fields (minute, hour, day of month, month, day of week),
// or six with seconds in front, or one of the words @hourly, @daily, @weekly, @monthly and
// @yearly. The zone has the format of ParseZone. The error names the wrong field and its
// permitted values.
func Parse(schedule, zone string) (Schedule, error) {
	loc, err := ParseZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	schedule, err = spelledOut(schedule)
	if err != nil {
		return Schedule{}, err
	}
	columns := strings.Fields(schedule)
	if slices.ContainsFunc(columns, empty) { // the parser takes it; Next would try all seconds of five years
		return Schedule{}, explain(columns)
	}
	days := len(columns) - 1
	columns[days] = sundays(columns[days])
	spec, err := parser.Parse(strings.Join(columns, " "))
	if err != nil {
		return Schedule{}, explain(strings.Fields(schedule))
	}
	s := Schedule{spec.(*cron.SpecSchedule), loc}
	// Only a date that no calendar has stays unmatched for five years, so any start shows it.
	if s.Next(time.Unix(0, 0)).IsZero() {
		return Schedule{}, errors.New("never fires: no year has such a date")
	}
	return s, nil
}

// spelledOut replaces a word by its fields, and refuses text that must not reach the
// parser.
func spelledOut(schedule string) (string, error) {
	word := strings.TrimSpace(schedule)
	if !strings.HasPrefix(word, "@") {
		return schedule, guard(schedule)
	}
	if fields, ok := words[word]; ok {
		return fields, nil
	}
	return "", errors.New("a schedule with @ is one of @hourly, @daily, @weekly, @monthly, @yearly")
}

// sundays writes a column for days of the week without 7, which the parser does not know: a day
// as 0, a range that ends with 7 as the list of its days. A column with an error keeps its
// error.
func sundays(column string) string {
	parts := strings.Split(column, ",")
	for i, part := range parts {
		span, every, stepped := strings.Cut(part, "/")
		first, last, ranged := strings.Cut(span, "-")
		from, known := weekday(first)
		step, err := strconv.Atoi(every)
		switch {
		case span == "7" && !ranged && (!stepped || err == nil && step > 0):
			parts[i] = "0"
		case ranged && last == "7" && known && (!stepped || err == nil && step > 0):
			var days []string
			for day := from; day <= 7; day += max(step, 1) {
				days = append(days, strconv.Itoa(day%7))
			}
			parts[i] = strings.Join(days, ",")
		}
	}
	return strings.Join(parts, ",")
}

// weekday returns the number of a day, given as a number or a name.
func weekday(text string) (int, bool) {
	if i := slices.Index([]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, strings.ToLower(text)); i >= 0 {
		return i, true
	}
	day, err := strconv.Atoi(text)
	return day, err == nil && day >= 0 && day <= 7
}

// guard refuses text that must not reach the parser.
func guard(schedule string) error {
	if len(schedule) > longest {
		return fmt.Errorf("a schedule has at most %d characters", longest)
	}
	if n := len(strings.Fields(schedule)); n != 5 && n != 6 {
		return fmt.Errorf("a schedule has 5 fields (minute hour day month weekday), or 6 with seconds in front, not %d", n)
	}
	if !allowed().MatchString(schedule) {
		return errors.New("a schedule holds only letters, digits, blanks and * / , ? -")
	}
	return nil
}

// empty reports whether a field is a list of nothing.
func empty(part string) bool { return strings.Trim(part, ",") == "" }

// explain finds the field that the parser refuses, by trying each alone: the parser's own
// message is about Go's parsing.
func explain(parts []string) error {
	columns := fields[len(fields)-len(parts):]
	for i, c := range columns {
		part := parts[i]
		if c.option == cron.Dow {
			part = sundays(part)
		}
		if _, err := cron.NewParser(c.option).Parse(part); err != nil || empty(part) {
			return fmt.Errorf("%s field %q: must be %s, alone or as *, a list a,b, a range a-b or a step */n", c.name, parts[i], c.allowed)
		}
	}
	return errors.New("not a schedule")
}
