package core

import "net/netip"

// ClientOf is the address under which the requests of a client are counted: an IPv4 address
// itself, or the /64 network of an IPv6 address, since each client has at least such a
// network. The zero address stays as it is.
func ClientOf(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	network, _ := a.Prefix(64) // every IPv6 address without a zone has a network
	return network.Addr()
}
