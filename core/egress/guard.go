package egress

import (
	"context"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// A guard decides to which addresses the client may connect. code.dny.dev/ssrf, which is
// generated from IANA's registries, defines the public addresses. The tables here add
// addresses that may be permitted, and addresses that never are.
type guard struct{ allowPrivate bool }

// public permits only global unicast addresses that no registry reserves.
var public = ssrf.New()

var loopback = prefixes("127.0.0.0/8", "::1/128")

var private = prefixes(
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
	"100.64.0.0/10", // RFC 6598: carriers, but also overlay and cluster networks
	"fc00::/7",      // RFC 4193
)

// metadata are services that hand out the machine's credentials to every caller that
// reaches them. Most of them have link-local addresses, which no setting permits; these do
// not.
var metadata = prefixes(
	"169.254.0.0/16",
	"100.100.100.200/32",     // Alibaba Cloud
	"168.63.129.16/32",       // Azure; a public address
	"192.0.0.192/32",         // Oracle Cloud, classic
	"fd00:ec2::/32",          // AWS: metadata, pod identity, DNS, time
	"fd20:ce::254/128",       // Google Cloud
	"fd00:c1::a9fe:a9fe/128", // Oracle Cloud
	"fd00:42::42/128",        // Scaleway
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}

// control is the dialer's hook: it runs once per address dialled, after the name
// has been resolved and before the first packet.
func (g guard) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return &blockedError{"this kind of address"}
	}
	return g.check(to.Addr())
}

// check returns a blockedError unless a may be connected to.
func (g guard) check(a netip.Addr) error {
	a = a.Unmap()
	switch {
	case within(metadata, a):
		return &blockedError{a.String() + " may be a cloud's metadata service"}
	case within(loopback, a):
		return g.lifted(a.String() + " is a loopback address")
	case within(private, a):
		return g.lifted(a.String() + " is a private address")
	case public.SafeAddr(a) != nil:
		return &blockedError{a.String() + " is not a public address"}
	}
	return nil
}

func (g guard) lifted(why string) error {
	if g.allowPrivate {
		return nil
	}
	return &blockedError{why + " (server.allow_private_urls is false)"}
}

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// A blockedError says why an address was not dialled.
type blockedError struct{ why string }

func (e *blockedError) Error() string { return e.why }
