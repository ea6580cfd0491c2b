package config

import (
	"net/netip"
	"slices"

	"github.com/eventgateway/gateway/core/order"
)

// A span is the addresses from first to last, of one family.
type span struct{ first, last netip.Addr }

// union returns the addresses of all networks, as sorted spans that neither overlap nor
// touch. So two lists with the same addresses have the same union: 10.0.0.0/9 and
// 10.128.0.0/9 together are 10.0.0.0/8.
func union(networks []Network) []span {
	all := make([]span, 0, len(networks))
	for _, n := range networks {
		all = append(all, span{n.Masked().Addr(), lastOf(n.Prefix)})
	}
	order.Sort(all, func(a, b span) int { return a.first.Compare(b.first) })
	// In the order of their first addresses, each span extends the last one or begins a new
	// one.
	merged := all[:0]
	for _, s := range all {
		if i := len(merged) - 1; i >= 0 && merged[i].touches(s) {
			if merged[i].last.Less(s.last) {
				merged[i].last = s.last
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// touches reports whether next overlaps s or begins right after it. next must not begin before
// s. IPv4 and IPv6 never touch.
func (s span) touches(next span) bool {
	if s.last.BitLen() != next.first.BitLen() {
		return false
	}
	behind := s.last.Next() // the zero Addr behind the last address of a family
	return !s.last.Less(next.first) || behind == next.first
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// everyAddress is the meaning of an empty list of allowed networks.
var everyAddress = []Network{{netip.MustParsePrefix("0.0.0.0/0")}, {netip.MustParsePrefix("::/0")}}

// within reports whether the other networks contain every address of the given networks.
func within(networks, others []Network) bool {
	outer := union(others)
	for _, s := range union(networks) {
		// The union has no touching spans, so one outer span must contain the whole inner one.
		i, _ := slices.BinarySearchFunc(outer, s, func(o, s span) int { return o.last.Compare(s.last) })
		if i == len(outer) || s.first.Less(outer[i].first) || outer[i].first.BitLen() != s.first.BitLen() {
			return false
		}
	}
	return true
}
