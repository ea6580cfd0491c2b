package core

import "net/netip"

// ClientOf returns the address under which the gateway counts the requests of a client. It
// is the client's IPv4 address, or the /64 network of its IPv6 address: each IPv6 client
// has at least such a network. The zero address stays as it is.
func ClientOf(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	network, _ := a.Prefix(64) // every IPv6 address without a zone has a network
	return network.Addr()
}
