package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// CheckURL reports why the shape of a URL keeps the gateway from calling it; nil
// if nothing does. It does not resolve names: where they lead is checked when
// dialling. Errors quote nothing of the URL but its scheme, host and port, for
// the rest may hold secrets.
//
// A URL is http or https, without user information and zone. Its host is an IPv6
// address in brackets, an IPv4 address of four plain decimal parts, or a name
// whose last label is no number: 2130706433, 0x7f.1 and 127.1 are addresses to
// some resolvers and names to others. This is the WHATWG URL Standard's rule for
// a host that ends in a number (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func CheckURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL") // url.Error would quote all of it
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme must be http or https; not %q", u.Scheme)
	case u.User != nil:
		return nil, errors.New("user name or password in a URL: use a header")
	}
	if err := checkPort(u); err != nil {
		return nil, err
	}
	return u, checkHost(u)
}

func checkPort(u *url.URL) error {
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port must be 1 to 65535; not %q", port)
	}
	return nil
}

func checkHost(u *url.URL) error {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() || a.Zone() != "" {
			return fmt.Errorf("host [%s] is not an IPv6 address", host)
		}
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		return nil
	}
	return checkName(strings.TrimSuffix(host, "."))
}

func checkName(name string) error {
	if name == "" || len(name) > 253 {
		return errors.New("host must be 1 to 253 characters")
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if !isLabel(l) {
			return fmt.Errorf("host %q is not a host name", name)
		}
	}
	if isNumber(labels[len(labels)-1]) {
		return fmt.Errorf("host %q is an unusual form of an IPv4 address: write four decimal parts", name)
	}
	return nil
}

// isLabel reports whether s may stand between the dots of a host name. Underscores
// are not for host names (RFC 952), but container networks have them. The hyphen
// rule also refuses punycode that stands for plain ASCII (CVE-2026-39821), as
// that always ends in one.
func isLabel(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '-' && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-'
}

// isNumber reports whether a last label makes resolvers read the host as an IPv4
// address: decimal, octal or hexadecimal digits, of any length.
func isNumber(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}
