package cron

import (
	"testing"
	"time"
)

// TestClockChanges holds the slots of days on which a clock is set forward or back.
func TestClockChanges(t *testing.T) {
	for _, tc := range []struct {
		schedule, zone, from string
		want                 []string
	}{
		// In Berlin 02:00 to 03:00 is left out on 29 March and shown twice on 25 October.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", []string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"*/20 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", []string{"2026-03-29T01:40:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:20:00+02:00"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T03:00:00+01:00"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:15:00Z", []string{"2026-10-26T02:30:00+01:00"}}, // after the first 02:30, in the second hour
		{"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		// Lord Howe moves its clock by half an hour.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-03T18:00:00Z", []string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		// Midnight is left out in Sao Paulo, and all of 30 December 2011 in Apia.
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", []string{"2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"}},
		{"0 9 30 12 *", "Pacific/Apia", "2011-06-01T00:00:00Z", []string{"2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"}},
		// Caracas went from -04:00 to -04:30.
		{"45 2 * * *", "America/Caracas", "2007-12-08T12:00:00Z", []string{"2007-12-09T02:45:00-04:00", "2007-12-10T02:45:00-04:30"}},
	} {
		s, err := Parse(tc.schedule, tc.zone)
		if err != nil {
			t.Errorf("Parse(%q, %q) = %v, want no error", tc.schedule, tc.zone, err)
			continue
		}
		at, _ := time.Parse(time.RFC3339, tc.from)
		for _, want := range tc.want {
			if at = s.Next(at); at.Format(time.RFC3339) != want {
				t.Errorf("Parse(%q, %q): the slot after %s = %s, want %s", tc.schedule, tc.zone, tc.from, at.Format(time.RFC3339), want)
				break
			}
		}
	}
}

// wallOracle goes through a zone minute by minute. It fires the slots whose local time the
// clock reaches for the first time, or skips over.
func wallOracle(o *oracle, zone *time.Location, from, to time.Time) (slots []time.Time) {
	shown := func(t time.Time) time.Time {
		y, m, d := t.In(zone).Date()
		h, minute, _ := t.In(zone).Clock()
		return time.Date(y, m, d, h, minute, 0, 0, time.UTC)
	}
	var newest time.Time
	for t := from.Add(-72 * time.Hour); !t.After(to); t = t.Add(time.Minute) {
		wall, due := shown(t), false
		if newest.IsZero() {
			newest = wall
		}
		for newest.Before(wall) {
			newest = newest.Add(time.Minute)
			due = due || o.slot(newest)
		}
		if due && t.After(from) {
			slots = append(slots, t)
		}
	}
	return slots
}

// TestZones compares a year of slots with the slots of wallOracle. The zones change their
// clocks by 30 minutes, 1 hour or 2 hours, at midnight, for Ramadan, once for ever, or never.
func TestZones(t *testing.T) {
	years := []struct {
		zone string
		year int
	}{
		{"Europe/Berlin", 2026}, {"America/New_York", 2006}, {"America/New_York", 2007}, {"Australia/Lord_Howe", 2025},
		{"Asia/Kolkata", 2025}, {"Asia/Kathmandu", 1985}, {"Pacific/Apia", 2011}, {"America/Caracas", 2007}, {"Africa/Casablanca", 2024},
		{"America/Sao_Paulo", 2018}, {"Antarctica/Troll", 2024}, {"Asia/Pyongyang", 2015}, {"Asia/Tehran", 2022}, {"Pacific/Kwajalein", 1993},
		{"Europe/Dublin", 2040}, {"UTC", 2028}, {"+05:45", 2026},
	}
	schedules := []string{"*/7 * * * *", "30 2 * * *", "15,45 0-3 * * 7", "0 */6 1,30,31 * *"}
	if testing.Short() {
		years = years[:4]
	}
	for _, y := range years {
		zone, err := ParseZone(y.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, to := time.Date(y.year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(y.year+1, 1, 3, 0, 0, 0, 0, time.UTC)
		for _, text := range schedules {
			s, err := Parse(text, y.zone)
			if err != nil {
				t.Fatal(err)
			}
			o, _ := newOracle(text, time.UTC)
			want := wallOracle(o, zone, from, to)
			at := from
			for i, w := range want {
				if at = s.Next(at); !at.Equal(w) {
					t.Errorf("Parse(%q, %q): slot %d of %d = %s, want %s", text, y.zone, i, y.year, at, w.In(zone))
					break
				}
			}
			for _, cut := range []int{len(want), len(want) / 2, len(want) / 5} {
				last := want[cut-1]
				if got := s.Span(from, last); got.Slots != cut || !got.First.Equal(want[0]) || !got.Last.Equal(last) {
					t.Errorf("Parse(%q, %q).Span(%s, %s) = %v, want %d slots", text, y.zone, from, last, got, cut)
				}
				if got := s.Span(last, to); got.Slots != len(want)-cut {
					t.Errorf("Parse(%q, %q).Span(%s, %s) = %v, want %d slots", text, y.zone, last, to, got, len(want)-cut)
				}
			}
		}
	}
}
