package cron

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An oracle is a slow second reading of a schedule, without the library. It reports for each
// second whether the second is a slot.
type oracle struct {
	fields [6][60]bool // second to day of week
	star   [6]bool     // the field says any
	zone   *time.Location
}

var bounds = [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}

var valueNames = [6][]string{
	4: {"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	5: {"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
}

// newOracle reads a schedule. It returns false for unusual spellings.
func newOracle(schedule string, zone *time.Location) (o *oracle, ok bool) {
	columns := strings.Fields(schedule)
	if len(columns) == 5 {
		columns = append([]string{"0"}, columns...)
	}
	if len(columns) != 6 {
		return nil, false
	}
	o = &oracle{zone: zone}
	for i, column := range columns {
		for part := range strings.SplitSeq(column, ",") {
			if !o.add(i, part) {
				return nil, false
			}
		}
	}
	return o, true
}

// add adds a value, a range or a step to a field.
func (o *oracle) add(field int, part string) bool {
	low, high, step := bounds[field][0], bounds[field][1], 1
	if field == 5 {
		high = 6 // a step ends with Saturday; 7 is Sunday again
	}
	span, every, stepped := strings.Cut(part, "/")
	if stepped {
		n, ok := number(every)
		if !ok || n == 0 {
			return false
		}
		step = n
	}
	first, last, ranged := strings.Cut(span, "-")
	switch {
	case span == "*" || span == "?":
		o.star[field] = o.star[field] || step == 1
	case ranged:
		a, okA := value(field, first)
		b, okB := value(field, last)
		if !okA || !okB || a > b {
			return false
		}
		low, high = a, b
	default:
		a, ok := value(field, first)
		if !ok {
			return false
		}
		if low = a; !stepped || a > high {
			high = a
		}
	}
	for v := low; v <= high; v += step {
		if field == 5 {
			o.fields[field][v%7] = true
			continue
		}
		o.fields[field][v] = true
	}
	return true
}

func value(field int, text string) (int, bool) {
	if i := slices.Index(valueNames[field], strings.ToLower(text)); i >= 0 && text != "" {
		return i, true
	}
	n, ok := number(text)
	return n, ok && n >= bounds[field][0] && n <= bounds[field][1]
}

func number(text string) (int, bool) {
	if len(text) == 0 || len(text) > 3 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// slot reports whether a second is a slot. One of the two day fields must match, or both if one
// of them permits any day.
func (o *oracle) slot(t time.Time) bool {
	t = t.In(o.zone)
	f := &o.fields
	if !f[0][t.Second()] || !f[1][t.Minute()] {
		return false
	}
	dom, dow := f[3][t.Day()], f[5][t.Weekday()]
	day := dom || dow
	if o.star[3] || o.star[5] {
		day = dom && dow
	}
	return day && f[2][t.Hour()] && f[4][t.Month()]
}

// slots returns all slots after from, up to and including to. Both are whole seconds.
func (o *oracle) slots(from, to time.Time) (all []time.Time) {
	for t := from.Add(time.Second); !t.After(to); t = t.Add(time.Second) {
		if o.slot(t) {
			all = append(all, t)
		}
	}
	return all
}

// FuzzCron: the slots of a schedule rise, and are the seconds that the oracle reports. Their
// count agrees as well. Nothing panics.
func FuzzCron(f *testing.F) {
	for _, seed := range []struct {
		schedule, zone string
		from           int64
	}{
		{"0 9 * * mon-fri", "+09:00", 1_800_000_000},
		{"*/15 * * * * *", "-03:30", 1_800_000_001},
		{"0 0 29 2 *", "UTC", 1_709_164_799},
		{"59 59 23 31 12 ?", "+14:00", 1_798_761_599},
		{"5/7 1-20/3 0,12 1,15 JAN,jul 1", "-14:00", 1_767_225_600},
		{"0 0 */2 * 1", "UTC", 1_772_323_200},
		{"0 0 */1 * 1", "UTC", 1_772_323_200},
		{"* * * * *", "UTC", 4_102_444_799},
		{"0 0 * * 7", "UTC", 0},
		{"0 0 * * 5-7/2", "UTC", 0},
		{"0 0 * * 7/2,mon-7", "UTC", 0},
		{"*/10 * * * *", "Europe/Berlin", 1_774_745_000},
		{"@daily", "Pacific/Apia", 1_325_200_000},
		{"TZ=0", "UTC", 0},
		{"TZ=UTC * * * * *", "UTC", 0},
		{"@every 1s", "UTC", 0},
		{"*-5 * * * *", "UTC", 0},
		{",1,, * * * *", "UTC", 0},
		{", * * * * *", "UTC", 23},
		{"? ? ? ? ?", "+00:00", 951_782_399},
	} {
		f.Add(seed.schedule, seed.zone, seed.from)
	}
	f.Fuzz(func(t *testing.T, schedule, zone string, from int64) {
		s, err := Parse(schedule, zone)
		loc, wrongZone := ParseZone(zone)
		if wrongZone != nil {
			loc = time.UTC
		}
		if _, ok := words[strings.TrimSpace(schedule)]; ok {
			schedule = words[strings.TrimSpace(schedule)]
		}
		o, plain := newOracle(schedule, loc)
		if err != nil {
			if plain && wrongZone == nil && len(schedule) <= longest && !strings.Contains(err.Error(), "never fires") && allowed().MatchString(schedule) {
				t.Errorf("Parse(%q, %q) = %v, want no error", schedule, zone, err)
			}
			return
		}
		// Up to 2079: where 2100 comes near, there is no 29 February for eight years.
		start := time.Unix(946_684_800+(from&(1<<62-1))%2_500_000_000, 0)
		slot := start
		for range 4 {
			next := s.Next(slot)
			if !next.After(slot) || next.Nanosecond() != 0 {
				t.Fatalf("Parse(%q, %q).Next(%s) = %s, want a later second", schedule, zone, slot, next)
			}
			if began, end := slot.In(loc).ZoneBounds(); plain && began.IsZero() && end.IsZero() {
				wantNext(t, o, slot, next)
			}
			slot = next
		}
		wantSpan(t, s, start, slot, 4)
		wantSpan(t, s, start, slot.Add(-time.Second), 3)
	})
}

// wantNext requires a slot at next, and no slot between from and next. It checks at most an
// hour of seconds.
func wantNext(t *testing.T, o *oracle, from, next time.Time) {
	t.Helper()
	until := next.Add(-time.Second)
	if far := from.Add(time.Hour); far.Before(until) {
		until = far
	}
	if missed := o.slots(from, until); len(missed) > 0 {
		t.Errorf("Next(%s) = %s, want %s", from, next, missed[0])
	}
	if !o.slot(next) {
		t.Errorf("Next(%s) = %s, which is no slot", from, next)
	}
}

// wantSpan compares a count with the slots themselves, if they are few enough.
func wantSpan(t *testing.T, s Schedule, from, to time.Time, n int) {
	t.Helper()
	got, want := s.Span(from, to), Span{Slots: n, First: s.Next(from), Last: s.Next(from)}
	for range n - 1 {
		want.Last = s.Next(want.Last)
	}
	if got.Slots != want.Slots || !got.First.Equal(want.First) || !got.Last.Equal(want.Last) {
		t.Errorf("Span(%s, %s) = %v, want %v", from, to, got, want)
	}
}

// TestSpan counts the slots of years, and compares the slots of two weeks with the oracle.
func TestSpan(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 30, 30, 500, time.UTC)
	for _, tc := range []struct {
		schedule, zone string
		to             time.Time
		want           int
	}{
		{"* * * * * *", "UTC", from.AddDate(1, 0, 0), 365 * 86400},
		{"* * * * *", "-05:30", from.AddDate(1, 0, 0), 365 * 1440},
		{"0 9 * * mon-fri", "UTC", from.AddDate(1, 0, 0), 261},
		{"0 0 29 2 *", "UTC", from.AddDate(10, 0, 0), 3},
		{"* * * * * *", "UTC", from, 0},
		{"* * * * * *", "UTC", from.Add(time.Second), 1},
		{"* * * * * *", "UTC", from.Add(-time.Hour), 0},
	} {
		s, err := Parse(tc.schedule, tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Span(from, tc.to); got.Slots != tc.want {
			t.Errorf("Parse(%q).Span(%s, %s) = %v, want %d slots", tc.schedule, from, tc.to, got, tc.want)
		}
	}
	for _, schedule := range []string{"7-50/3 */7 1,5,23 * * *", "59 23 1-10 * 1", "30 */5 8-18/2 ? * tue,sat"} {
		s, err := Parse(schedule, "+05:45")
		if err != nil {
			t.Fatal(err)
		}
		o, _ := newOracle(schedule, s.zone)
		whole := from.Truncate(time.Second)
		all := o.slots(whole, whole.AddDate(0, 0, 16))
		for i := range all {
			got := s.Span(whole, all[i])
			if got.Slots != i+1 || !got.First.Equal(all[0]) || !got.Last.Equal(all[i]) {
				t.Fatalf("Parse(%q).Span(%s, %s) = %v, want %d slots", schedule, whole, all[i], got, i+1)
			}
			if i > 50 && i < len(all)-50 && i%97 != 0 {
				continue
			}
			if got := s.Span(all[i], all[len(all)-1]); got.Slots != len(all)-1-i {
				t.Fatalf("Parse(%q).Span(%s, %s) = %v, want %d slots", schedule, all[i], all[len(all)-1], got, len(all)-1-i)
			}
		}
	}
	if got := (Schedule{}).Span(from, from.AddDate(1, 0, 0)); got.Slots != 0 {
		t.Errorf("Schedule{}.Span = %v, want none", got)
	}
}
