package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time in the file's spelling: 500ms, 30s, 5m, 2h, 1d, or a whole number of seconds.
type Duration struct{ time.Duration }

var (
	durationForm = regexp.MustCompile(`^([0-9]+)(ms|s|m|h|d|)$`)
	units        = map[string]time.Duration{"ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// ParseDuration reads one whole number and one unit; without a unit it counts seconds. Negative and combined forms
// (1h30m) are refused.
func ParseDuration(s string) (Duration, error) {
	m := durationForm.FindStringSubmatch(s)
	if m == nil {
		return Duration{}, errors.New("must be a duration such as 500ms, 30s, 5m, 2h or 1d, or a whole number of seconds")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := units[m[2]]
	if err != nil || n > math.MaxInt64/int64(unit) {
		return Duration{}, errors.New("is longer than a duration can be")
	}
	return Duration{time.Duration(n) * unit}, nil
}

// String writes seconds, as in 60s, and milliseconds where there are fractions; ParseDuration reads it back.
func (d Duration) String() string {
	if d.Duration%time.Second == 0 {
		return strconv.FormatInt(int64(d.Duration/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// MarshalText writes what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// mask is all that is ever printed of a secret.
const mask = "***"

// Secret is text that no log, error or encoder prints: each of them sees ***. An empty Secret means "not set".
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns ***.
func (s Secret) String() string { return mask }

// GoString returns ***.
func (s Secret) GoString() string { return mask }

// Format writes *** for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON returns "***".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }

// MarshalText returns ***.
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// MarshalYAML returns ***.
func (s Secret) MarshalYAML() (any, error) { return mask, nil }

// LogValue returns ***.
func (s Secret) LogValue() slog.Value { return slog.StringValue(mask) }

// Secrets is one secret or several: while a key is being rotated, old and new hold side by side.
type Secrets []Secret

// First is the text of the first secret, for a program that proves itself with one; empty if there is none.
func (s Secrets) First() string {
	if len(s) == 0 {
		return ""
	}
	return s[0].Reveal()
}

// Network is an address range: one IP or a CIDR block.
type Network struct{ netip.Prefix }

// ParseNetwork reads an IP address or a CIDR block. IPv4 in IPv6 clothes becomes IPv4; host bits are cleared.
func ParseNetwork(s string) (Network, error) {
	bad := errors.New("must be an IP address or a CIDR block such as 10.0.0.0/8")
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" {
			return Network{}, bad
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	if !prefix.IsValid() {
		return Network{}, bad
	}
	return Network{prefix.Masked()}, nil
}

// SQLitePath returns the file of the sqlite driver: URL without "file:" or "sqlite:", and without the // after it.
func (d Database) SQLitePath() string {
	path := d.URL.Reveal()
	for _, scheme := range []string{"file:", "sqlite:"} {
		if rest, ok := strings.CutPrefix(path, scheme); ok {
			return strings.TrimPrefix(rest, "//")
		}
	}
	return path
}
