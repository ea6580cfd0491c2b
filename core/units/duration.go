// Package units reads and writes quantities as users write them: in configurations, flags,
// queries and replies. It imports core/once and no other package of this module.
package units

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core/once"
)

// A Duration is a span of time as users write it: 500ms, 30s, 5m, 2h, 1d, or a whole number of
// seconds.
type Duration struct{ time.Duration }

var (
	durationForm = once.Regexp(`^([0-9]+)(ms|s|m|h|d|)$`)
	factors      = map[string]time.Duration{"ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// ParseDuration reads one whole number and one unit, without which the number counts seconds.
// It refuses negative and combined forms (1h30m). Its errors name the permitted forms.
func ParseDuration(s string) (Duration, error) {
	m := durationForm().FindStringSubmatch(s)
	if m == nil {
		return Duration{}, errors.New("must be a duration such as 500ms, 30s, 5m, 2h or 1d, or a whole number of seconds")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := factors[m[2]]
	if err != nil || n > math.MaxInt64/int64(unit) {
		return Duration{}, errors.New("is longer than a duration can be")
	}
	return Duration{time.Duration(n) * unit}, nil
}

// String writes whole seconds as in 60s, and others as milliseconds. ParseDuration reads it
// back. Fractions of a millisecond are lost.
func (d Duration) String() string {
	if d.Duration%time.Second == 0 {
		return strconv.FormatInt(int64(d.Duration/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// MarshalText returns the text of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
