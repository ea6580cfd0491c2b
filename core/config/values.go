package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/eventgateway/gateway/core/units"
)

// Duration is a span of time as configurations write it. See [units.Duration].
type Duration = units.Duration

// mask replaces a secret in all output.
const mask = "***"

// Secret is text that no log, error or encoder prints: each of them sees ***. An empty Secret
// means "not set".
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns ***.
func (s Secret) String() string { return mask }

// GoString returns ***.
func (s Secret) GoString() string { return mask }

// Format writes *** for every verb. Without it, %x and %q would print the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON returns "***".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }

// MarshalText returns ***.
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// MarshalYAML returns ***.
func (s Secret) MarshalYAML() (any, error) { return mask, nil }

// LogValue returns ***.
func (s Secret) LogValue() slog.Value { return slog.StringValue(mask) }

// Secrets is one secret or several. While a key is rotated, the old and the new one are valid
// together.
type Secrets []Secret

// First returns the text of the first secret, for a program that authenticates with one; empty
// if there is none.
func (s Secrets) First() string {
	if len(s) == 0 {
		return ""
	}
	return s[0].Reveal()
}

// Network is an address range: one IP or a CIDR block.
type Network struct{ netip.Prefix }

// ParseNetwork reads an IP address or a CIDR block. An IPv4 address in IPv6 form becomes IPv4;
// host bits are cleared.
func ParseNetwork(s string) (Network, error) {
	bad := errors.New("must be an IP address or a CIDR block such as 10.0.0.0/8")
	// A single address is a block of its own size.
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" {
			return Network{}, bad
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	// An IPv4 address may be written in either form.
	if addr := prefix.Addr(); addr.Is4In6() {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	if !prefix.IsValid() {
		return Network{}, bad
	}
	return Network{prefix.Masked()}, nil
}

// SQLitePath returns the file of the sqlite driver: URL without "file:" or "sqlite:", and
// without the // after it.
func (d Database) SQLitePath() string {
	path := d.URL.Reveal()
	for _, scheme := range []string{"file:", "sqlite:"} {
		if rest, ok := strings.CutPrefix(path, scheme); ok {
			return strings.TrimPrefix(rest, "//")
		}
	}
	return path
}
