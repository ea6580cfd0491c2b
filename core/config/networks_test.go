package config

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func networks(t *testing.T, list string) (all []Network) {
	t.Helper()
	for _, s := range strings.Fields(list) {
		n, err := ParseNetwork(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		networks, others string
		want             bool
	}{
		{"10.0.0.0/9 10.128.0.0/9", "10.0.0.0/8", true},
		{"10.0.0.0/8", "10.0.0.0/9 10.128.0.0/9", true},
		{"10.0.0.0/8", "10.128.0.0/9 10.0.0.0/10 10.64.0.0/10", true},
		{"10.0.0.0/8", "10.0.0.0/9 10.128.0.0/10", false},
		{"10.0.0.0/8", "10.0.0.0/9 10.129.0.0/16", false},
		{"10.0.0.0/8 10.1.0.0/16", "10.0.0.0/8", true},
		{"10.0.0.1", "10.0.0.0/8", true},
		{"11.0.0.1", "10.0.0.0/8", false},
		{"9.255.255.255", "10.0.0.0/8", false},
		{"10.0.0.0/8 192.0.2.7", "192.0.2.0/24 10.0.0.0/8", true},
		{"192.0.2.6 192.0.2.7", "192.0.2.6/31", true},
		{"192.0.2.6/31", "192.0.2.6 192.0.2.7", true},
		{"", "10.0.0.0/8", true}, // no address at all
		{"", "", true},
		{"10.0.0.1", "", false},
		{"0.0.0.0/0", "0.0.0.0/1 128.0.0.0/1", true},
		{"0.0.0.0/1 128.0.0.0/1", "0.0.0.0/0", true},
		{"0.0.0.0/0", "128.0.0.0/1 0.0.0.0/2", false},
		{"::/0", "::/1 8000::/1", true},
		{"::/0", "0.0.0.0/0", false},
		{"0.0.0.0/0", "::/0", false},
		{"255.255.255.255", "::/0", false},
		{"::", "0.0.0.0/0", false},
		{"0.0.0.0/0 ::/0", "::/0 0.0.0.0/0", true},
		{"2001:db8::/33 2001:db8:8000::/33", "2001:db8::/32", true},
		{"2001:db8::/32", "2001:db8::/33 2001:db8:8000::/34", false},
		{"::ffff:10.0.0.1", "10.0.0.0/8", true},
	} {
		if got := within(networks(t, c.networks), networks(t, c.others)); got != c.want {
			t.Errorf("within(%q, %q) = %v, want %v", c.networks, c.others, got, c.want)
		}
	}
}

// The union contains an address exactly if the list does.
func TestUnionHasTheSameAddresses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	in := func(all []Network, a netip.Addr) bool {
		for _, n := range all {
			if n.Contains(a) {
				return true
			}
		}
		return false
	}
	for range 300 {
		var a, b []Network
		for range random.IntN(6) {
			a = append(a, networks(t, fmt.Sprintf("10.0.0.%d/%d", random.IntN(256), 24+random.IntN(9)))...)
			b = append(b, networks(t, fmt.Sprintf("10.0.0.%d/%d", random.IntN(256), 24+random.IntN(9)))...)
		}
		want := true
		for i := range 256 {
			addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			if in(a, addr) && !in(b, addr) {
				want = false
			}
		}
		if got := within(a, b); got != want {
			t.Errorf("within(%v, %v) = %v, want %v", a, b, got, want)
		}
	}
}
