package mysql

import (
	"net"
	"net/netip"
)

// Unverified says what is wrong with the way to a server on another machine: that it is
// not encrypted, or that nothing proves who the server is. tls=true does both. Empty is
// nothing, also of a URL that cannot be read.
func Unverified(text string) string {
	c, err := parseConfig(text)
	if err != nil || c.Net == "unix" {
		return ""
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		host = c.Addr
	}
	if address, err := netip.ParseAddr(host); host == "localhost" || err == nil && address.IsLoopback() {
		return ""
	}
	switch c.TLSConfig {
	case "", "false":
		return "the connection to " + host + " is not encrypted"
	case "preferred":
		return "the connection to " + host + " may be unencrypted, and its certificate is not verified"
	case "skip-verify":
		return "nothing proves that " + host + " is the server: its certificate is not verified"
	}
	return ""
}
