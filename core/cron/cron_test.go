package cron

import (
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // a Sunday
	for _, tc := range []struct{ schedule, zone, want string }{
		{"* * * * *", "UTC", "2026-03-01T12:01:00Z"},
		{"*/15 * * * * *", "UTC", "2026-03-01T12:00:15Z"},
		{"0 9 * * *", "+09:00", "2026-03-02T09:00:00+09:00"},
		{"30 9 * * mon-fri", "UTC", "2026-03-02T09:30:00Z"},
		{"0 0 29 2 *", "UTC", "2028-02-29T00:00:00Z"},
		{"0 0 ? jan,jul *", "UTC", "2026-07-01T00:00:00Z"},
		{"0 8 * * *", "-03:30", "2026-03-02T08:00:00-03:30"},
		{"0 8 * * 7", "UTC", "2026-03-08T08:00:00Z"},
		{"0 8 * * 5-7", "UTC", "2026-03-06T08:00:00Z"},
		{"0 8 * * mon,7", "UTC", "2026-03-02T08:00:00Z"},
		{"@hourly", "UTC", "2026-03-01T13:00:00Z"},
		{"@daily", "+09:00", "2026-03-02T00:00:00+09:00"},
		{" @weekly ", "UTC", "2026-03-08T00:00:00Z"},
		{"@monthly", "UTC", "2026-04-01T00:00:00Z"},
		{"@yearly", "UTC", "2027-01-01T00:00:00Z"},
		{"0 9 * * *", "Europe/Berlin", "2026-03-02T09:00:00+01:00"},
	} {
		s, err := Parse(tc.schedule, tc.zone)
		if err != nil {
			t.Errorf("Parse(%q, %q) = %v, want no error", tc.schedule, tc.zone, err)
			continue
		}
		if got := s.Next(from).Format(time.RFC3339); got != tc.want {
			t.Errorf("Parse(%q, %q).Next = %v, want %v", tc.schedule, tc.zone, got, tc.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ schedule, zone, want string }{
		{"", "UTC", "not 0"},
		{"* * * *", "UTC", "not 4"},
		{"* * * * * * *", "UTC", "not 7"},
		{"@midnight", "UTC", "one of @hourly, @daily, @weekly, @monthly, @yearly"},
		{"@every 1s", "UTC", "one of @hourly"},
		{"@DAILY", "UTC", "one of @hourly"},
		{"* * * * 7-1", "UTC", `day of week field "7-1": must be 0 to 7 (0 and 7 are Sunday)`},
		{"* * * * 1-7/0", "UTC", `day of week field "1-7/0"`},
		{"* * * * 7/x", "UTC", `day of week field "7/x"`},
		{"* * * * 17", "UTC", `day of week field "17"`},
		{"TZ=0 * * * *", "UTC", "only letters"},
		{"CRON_TZ=UTC 0 9 * * *", "UTC", "only letters"},
		{"0 25 * * *", "UTC", `hour field "25": must be 0 to 23`},
		{"0 0 9 * * 8", "UTC", `day of week field "8"`},
		{"0 0 * foo *", "UTC", `month field "foo"`},
		{"*/0 * * * *", "UTC", `minute field "*/0"`},
		{", * * * * *", "UTC", `second field ",": must be 0 to 59`},
		{"* * * * ,,", "UTC", `day of week field ",,"`},
		{"0 0 30 2 *", "UTC", "never fires"},
		{"0 0 31 4,6,9,11 *", "UTC", "never fires"},
		{strings.Repeat("1,", 300) + "1 * * * *", "UTC", "at most 512"},
		{"* * * * *", "", "must be UTC, a zone such as Europe/Berlin, or a fixed offset such as +09:00"},
		{"* * * * *", "Local", "must be UTC"},
		{"* * * * *", "europe/paris", `did you mean "Europe/Paris"?`},
		{"* * * * *", "Paris", `did you mean "Europe/Paris"?`},
		{"* * * * *", "new york", `did you mean "America/New_York"?`},
		{"* * * * *", "utc", `did you mean "UTC"?`},
		{"* * * * *", "Europe/Berln", "the database of zones has none of this name"},
		{"* * * * *", "../etc/passwd", "the database of zones has none of this name"},
		{"* * * * *", strings.Repeat("x", 1000), "the database of zones has none of this name"},
		{"* * * * *", "+9:00", "must be UTC"},
		{"* * * * *", "+14:01", "at most 14 hours"},
		{"* * * * *", "-15:00", "at most 14 hours"},
	} {
		if _, err := Parse(tc.schedule, tc.zone); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Parse(%q, %q) = %v, want an error with %q", tc.schedule, tc.zone, err, tc.want)
		}
	}
}

func TestZeroSchedule(t *testing.T) {
	if got := (Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("Schedule{}.Next = %v, want the zero time", got)
	}
}
