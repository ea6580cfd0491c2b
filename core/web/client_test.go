package web_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/web"
)

func TestClientAddress(t *testing.T) {
	listed := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:f::/48")}
	tests := []struct {
		name      string
		clients   web.Clients
		peer      string
		forwarded string // lines of X-Forwarded-For, separated by |
		realIP    string
		want      string
	}{
		{name: "peer", peer: "192.0.2.1:99", want: "192.0.2.1"},
		{name: "peer without port", peer: "192.0.2.1", want: "192.0.2.1"},
		{name: "peer IPv6", peer: "[2001:db8::1]:99", want: "2001:db8::1"},
		{name: "peer IPv6 without port", peer: "2001:db8::1", want: "2001:db8::1"},
		{name: "peer in both families", peer: "[::ffff:192.0.2.1]:99", want: "192.0.2.1"},
		{name: "peer with zone", peer: "[fe80::1%eth0]:99", want: "fe80::1"},
		{name: "no peer", peer: "@", want: "invalid IP"},
		{name: "not trusted", peer: "192.0.2.1:99", forwarded: "198.51.100.1", realIP: "198.51.100.2", want: "192.0.2.1"},

		{name: "one hop", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "198.51.100.1", want: "198.51.100.1"},
		{name: "one hop, rightmost", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "1.1.1.1, 198.51.100.1", want: "198.51.100.1"},
		{name: "lines are joined", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "198.51.100.1|198.51.100.2", want: "198.51.100.2"},
		{name: "blank elements", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "198.51.100.1, ,|", want: "198.51.100.1"},
		{name: "with port", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "198.51.100.1:4711", want: "198.51.100.1"},
		{name: "IPv6 with port", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "[2001:db8::7]:4711", want: "2001:db8::7"},
		{name: "IPv6 in brackets", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "[2001:db8::7]", want: "2001:db8::7"},
		{name: "in brackets, in disguise", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "[::ffff:198.51.100.1]", want: "198.51.100.1"},
		{name: "X-Real-IP in brackets", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", realIP: " [2001:db8::7] ", want: "2001:db8::7"},
		{name: "IPv4 in brackets", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "[198.51.100.1]", want: "10.0.0.1"},
		{name: "half a bracket", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "2001:db8::7]", want: "10.0.0.1"},
		{name: "two brackets", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "[[2001:db8::7]]", want: "10.0.0.1"},
		{name: "no port after the colon", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "[2001:db8::7]:", want: "10.0.0.1"},
		{name: "port too high", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "198.51.100.1:65536", want: "10.0.0.1"},
		{name: "bad entry", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "198.51.100.1, unknown", want: "10.0.0.1"},
		{name: "bad entry hides X-Real-IP", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", forwarded: "unknown", realIP: "198.51.100.2", want: "10.0.0.1"},
		{name: "X-Real-IP", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", realIP: "198.51.100.2", want: "198.51.100.2"},
		{name: "bad X-Real-IP", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", realIP: "me", want: "10.0.0.1"},
		{name: "nothing claimed", clients: web.Clients{TrustProxy: true}, peer: "10.0.0.1:99", want: "10.0.0.1"},

		{name: "listed", clients: web.Clients{TrustProxy: true, Proxies: listed}, peer: "10.0.0.1:99", forwarded: "1.1.1.1, 198.51.100.1, 10.0.0.2, 2001:db8:f::3", want: "198.51.100.1"},
		{name: "listed, in disguise", clients: web.Clients{TrustProxy: true, Proxies: listed}, peer: "10.0.0.1:99", forwarded: "198.51.100.1, ::ffff:10.0.0.2", want: "198.51.100.1"},
		{name: "listed, with ports", clients: web.Clients{TrustProxy: true, Proxies: listed}, peer: "10.0.0.1:99", forwarded: "192.0.2.1:443, [2001:db8:f::3], [2001:db8:f::4]:443, 10.0.0.2:443", want: "192.0.2.1"},
		{name: "listed, bad entry", clients: web.Clients{TrustProxy: true, Proxies: listed}, peer: "10.0.0.1:99", forwarded: "198.51.100.1, x, 10.0.0.2", want: "10.0.0.1"},
		{name: "listed, all proxies", clients: web.Clients{TrustProxy: true, Proxies: listed}, peer: "10.0.0.1:99", forwarded: "10.0.0.3, 10.0.0.2", want: "10.0.0.3"},
		{name: "peer is not listed", clients: web.Clients{TrustProxy: true, Proxies: listed}, peer: "192.0.2.1:99", forwarded: "198.51.100.1", realIP: "198.51.100.2", want: "192.0.2.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{}}
			if tt.forwarded != "" {
				r.Header["X-Forwarded-For"] = strings.Split(tt.forwarded, "|")
			}
			if tt.realIP != "" {
				r.Header.Set("X-Real-IP", tt.realIP)
			}
			if got := tt.clients.Address(r).String(); got != tt.want {
				t.Errorf("address = %s, want %s", got, tt.want)
			}
		})
	}
}
