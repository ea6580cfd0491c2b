package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Clients says how to tell the address of a client.
type Clients struct {
	// TrustProxy believes what proxies say about whom they speak for. Without it
	// the client is whoever holds the other end of the connection.
	TrustProxy bool

	// Proxies are the networks of the proxies to believe. None means that exactly
	// one proxy is in front, whatever its address.
	Proxies []netip.Prefix
}

// Address is the address of the request's client; the zero Addr if it is not
// known.
//
// Behind a proxy it is the rightmost entry of X-Forwarded-For that is not itself
// one of the proxies: every entry left of it was written by the client, or by
// someone it chose. X-Real-IP is read only if there is no X-Forwarded-For. An
// entry that is not an address means that something is not as configured, and
// gives the peer.
func (c Clients) Address(r *http.Request) netip.Addr {
	peer := peerAddress(r.RemoteAddr)
	if !c.Proxy(peer) {
		return peer
	}
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

// rightmost walks the entries of all lines from the last to the first. If all
// are proxies, the first is the client: one of the proxies' own network.
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

func (c Clients) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(c.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// peerAddress reads Request.RemoteAddr, which has a port except where there is
// no connection, as in a function.
func peerAddress(s string) netip.Addr {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return plain(netip.ParseAddr(s))
}

// entryAddress reads one address of a header. Some proxies add the port, or write
// an IPv6 address in brackets as with one.
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

// plain takes away what would let one address pass for another: the IPv6 form
// of an IPv4 address, and the zone.
func plain(a netip.Addr, err error) netip.Addr {
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
