package core

import (
	"net/netip"
	"testing"
)

func TestClientOf(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1",
		"::ffff:192.0.2.1":     "192.0.2.1",
		"2001:db8::1":          "2001:db8::",
		"2001:db8:0:0:ffff::3": "2001:db8::",
		"2001:db8:0:1::1":      "2001:db8:0:1::",
		"fe80::1%eth0":         "fe80::",
	} {
		if got := ClientOf(netip.MustParseAddr(from)); got != netip.MustParseAddr(want) {
			t.Errorf("ClientOf(%s) = %s, want %s", from, got, want)
		}
	}
	if got := ClientOf(netip.Addr{}); got.IsValid() {
		t.Errorf("ClientOf of no address = %s, want none", got)
	}
}
