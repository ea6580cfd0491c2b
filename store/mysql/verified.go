package mysql

import (
	"net"
	"net/netip"
)

// Unverified names the weakness of a connection to a server on another machine: the
// connection is not encrypted, or the server's identity is not verified. tls=true does both.
// Unverified returns "" if there is no weakness, and for a URL that cannot be read.
func Unverified(text string) string {
	c, err := parseConfig(text)
	if err != nil || c.Net == "unix" {
		return ""
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		host = c.Addr
	}
	// The traffic to this machine passes no network.
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
