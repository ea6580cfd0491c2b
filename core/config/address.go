package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// metadata are the addresses at which clouds hand out credentials. They are refused under every
// setting.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
}

var sharedRange = netip.MustParsePrefix("100.64.0.0/10") // carrier-grade NAT

// refusal returns why a well-formed address will be refused when it is dialled, or "". It
// checks only literal addresses; the dialler has the full table, and checks the addresses to
// which names resolve.
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

// refusedUnless names the setting that permits such an address: it is mostly a receiver on a
// test machine.
const refusedUnless = ", so deliveries to it are refused unless server.allow_private_urls is true"

// refusedAddress returns why an address is refused, or "". The metadata services come first: no
// setting permits them.
func refusedAddress(addr netip.Addr, allowPrivate bool) string {
	switch {
	case slices.Contains(metadata, addr), addr.IsLinkLocalUnicast():
		return "may be a cloud's metadata service, to which nothing is ever sent"
	case addr.IsUnspecified():
		return "is not an address that can be sent to"
	}
	private := addr.IsPrivate() || addr.IsLoopback() || sharedRange.Contains(addr)
	if private && !allowPrivate {
		return "is a private or loopback address" + refusedUnless
	}
	return ""
}
