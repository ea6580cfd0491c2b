package config

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// CheckURL tells what is wrong with the shape of an address that requests are sent to, at load and before each use.
// Shapes that resolvers and URL parsers read differently are refused, since a guard would judge another host than the
// one dialled: user names, zones, numbers that are almost an IPv4 address, names that hide ASCII in punycode.
// Which addresses may be dialled is not judged here. No error quotes the address: it may hold a credential.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("is not a valid address; write one such as https://example.com/hooks")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must start with http:// or https://")
	case u.Host == "" || u.Hostname() == "":
		return errors.New("has no host; write an address such as https://example.com/hooks")
	case u.User != nil:
		return errors.New("must not hold a user name or password; send them as a header")
	}
	if err := checkPort(u); err != nil {
		return err
	}
	return checkHost(u.Hostname(), strings.HasPrefix(u.Host, "["))
}

func checkPort(u *url.URL) error {
	if u.Port() == "" {
		if strings.HasSuffix(u.Host, ":") {
			return errors.New("has a colon but no port")
		}
		return nil
	}
	if port, err := strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
		return errors.New("has a port outside 1 to 65535")
	}
	return nil
}

var (
	hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*$`)
	// numberLabel is a last label that makes resolvers take the whole host for an IPv4 address.
	numberLabel = regexp.MustCompile(`^([0-9]+|0[xX][0-9A-Fa-f]*)$`)
	// asciiPunycode is a label that says nothing that plain ASCII could not say.
	asciiPunycode = regexp.MustCompile(`(?i)^xn--(.*-)?$`)
)

// checkHost judges a host without its brackets.
func checkHost(host string, bracketed bool) error {
	if bracketed {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() || addr.Zone() != "" {
			return errors.New("has brackets around something other than an IPv6 address without a zone")
		}
		return nil
	}
	host = strings.TrimSuffix(host, ".")
	labels := strings.Split(host, ".")
	if numberLabel.MatchString(labels[len(labels)-1]) {
		if _, err := netip.ParseAddr(host); err != nil {
			return errors.New("has a host that is almost an IPv4 address; write four numbers from 0 to 255 without leading zeros")
		}
		return nil
	}
	if len(host) > 253 || !hostForm.MatchString(host) && !asciiPunycodeIn(labels) {
		return errors.New("has a host that is not a name of letters, digits, - and dots; write other scripts in their xn-- form")
	}
	if asciiPunycodeIn(labels) {
		return errors.New("has a host whose xn-- form stands for plain letters; write those")
	}
	return nil
}

func asciiPunycodeIn(labels []string) bool {
	for _, label := range labels {
		if asciiPunycode.MatchString(label) {
			return true
		}
	}
	return false
}

// metadata are the addresses at which clouds hand out credentials; they are refused whatever is allowed.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
}

var sharedRange = netip.MustParsePrefix("100.64.0.0/10") // carrier-grade NAT

// refusal tells why a well-formed address is going to be refused when it is dialled, or "". It sees only what is
// written out; the full table, and names that resolve to such addresses, are the dialler's.
func refusal(raw string, allowPrivate bool) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return refusedAddress(addr.Unmap(), allowPrivate)
	}
	if !allowPrivate && (host == "localhost" || strings.HasSuffix(host, ".localhost")) {
		return "is on this machine" + refusedUnless
	}
	return ""
}

const refusedUnless = ", so deliveries to it are refused unless server.allow_private_urls is true"

func refusedAddress(addr netip.Addr, allowPrivate bool) string {
	for _, m := range metadata {
		if addr == m {
			return "is a cloud metadata address, to which nothing is ever sent"
		}
	}
	private := addr.IsPrivate() || addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || sharedRange.Contains(addr)
	if private && !allowPrivate {
		return "is a private or loopback address" + refusedUnless
	}
	return ""
}
