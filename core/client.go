package core

import "net/netip"

// ClientOf is the address under which the requests of a client are counted: an IPv4 address
// itself, an IPv6 address by its network of 64 bits, which is the least that a client has.
// The zero address stays as it is.
func ClientOf(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	network, _ := a.Prefix(64) // an IPv6 address without a zone has one
	return network.Addr()
}
