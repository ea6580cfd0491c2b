package core

import "time"

// A Clock tells the time. Code that decides by time takes a Clock, so that tests can set
// the time.
//
// Times that are stored, or compared with stored times, come from the clock of the
// database: see [DatabaseClock]. Times that are exchanged with other systems come from the
// clock of the machine. Examples are certificates, and signatures, which prove when a
// sender made them.
type Clock func() time.Time

// SystemClock is the clock of the machine.
func SystemClock() time.Time { return time.Now() }

// TimeLayout is how every interface writes a time: UTC, milliseconds, no zone.
const TimeLayout = "2006-01-02T15:04:05.000"

// FormatTime writes t as TimeLayout, and the zero time as the empty string.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(TimeLayout)
}

// ParseTime reads a time as callers write it: TimeLayout, with or without a fraction, with
// or without a zone as in RFC 3339, or a bare date. A time without a zone is UTC. The
// result is cut to milliseconds. The error is a [Refusal] of kind [Invalid].
func ParseTime(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05", time.RFC3339, "2006-01-02"} {
		// Parse accepts a fraction after the seconds without the layout naming one.
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, Refuse(Invalid, "%q is not a time: write 2006-01-02T15:04:05 (UTC), or a date", clip(s, 40))
}
