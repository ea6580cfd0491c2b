package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Clients determines the address of a client.
type Clients struct {
	// TrustProxy trusts the headers in which proxies name their clients. Without it the
	// client is the peer of the connection.
	TrustProxy bool

	// Proxies are the networks of the trusted proxies. An empty list means that exactly one
	// proxy is in front, at any address.
	Proxies []netip.Prefix
}

// Address returns the address of the request's client, or the zero Addr if it is unknown.
//
// Behind a proxy it is the rightmost entry of X-Forwarded-For that is not one of the
// proxies: every entry left of it comes from the client, or from a system of the client's
// choice. X-Real-IP is read only without X-Forwarded-For. An entry that is not an address
// means that the configuration does not match the proxies; then the client is the peer.
func (c Clients) Address(r *http.Request) netip.Addr {
	// A request that did not come from a proxy may have any header, so its headers do not count.
	peer := peerAddress(r.RemoteAddr)
	if !c.Proxy(peer) {
		return peer
	}
	// X-Forwarded-For counts alone if it is there: a proxy that sets one of the two headers may pass
	// the other one on as the client sent it.
	claimed := netip.Addr{}
	if lines := r.Header["X-Forwarded-For"]; len(lines) > 0 {
		claimed = c.rightmost(lines)
	} else if lines := r.Header["X-Real-Ip"]; len(lines) > 0 {
		claimed = entryAddress(lines[len(lines)-1])
	}
	if claimed.IsValid() {
		return claimed
	}
	return peer
}

// Proxy reports whether an address may be the address of a proxy, which connects for other
// clients.
func (c Clients) Proxy(peer netip.Addr) bool {
	return c.TrustProxy && (len(c.Proxies) == 0 || c.isProxy(peer))
}

// rightmost reads the entries of all lines from the last to the first. If all are proxies,
// the first is the client: a machine in the proxies' own network.
func (c Clients) rightmost(lines []string) (found netip.Addr) {
	for _, line := range slices.Backward(lines) {
		for line != "" {
			var entry string
			if i := strings.LastIndexByte(line, ','); i >= 0 {
				line, entry = line[:i], line[i+1:]
			} else {
				line, entry = "", line
			}
			if entry = strings.TrimSpace(entry); entry == "" {
				continue // RFC 9110, 5.6.1: empty elements of a list do not count
			}
			if found = entryAddress(entry); !c.isProxy(found) {
				return found // the client, or the zero address of a bad entry
			}
		}
	}
	return found
}

// isProxy reports whether an address is in one of the configured networks. Without networks no
// entry of a header is a proxy, and the last one is the client.
func (c Clients) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(c.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// peerAddress reads Request.RemoteAddr. It has a port unless there is no connection, as in
// a function.
func peerAddress(s string) netip.Addr {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return plain(netip.ParseAddr(s))
}

// entryAddress reads one address of a header. Some proxies add the port, or write an IPv6
// address in brackets even without one.
func entryAddress(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return plain(ap.Addr(), nil)
	}
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(s, "]") && strings.Contains(s, ":") {
		s = strings.TrimSuffix(inner, "]")
	}
	return plain(netip.ParseAddr(s))
}

// plain removes two differences between spellings of one address: the IPv6 form of an IPv4
// address, and the zone.
func plain(a netip.Addr, err error) netip.Addr {
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
