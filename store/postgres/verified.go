package postgres

import (
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Unverified names the weakness of a connection to a server on another machine: the
// connection may be unencrypted, or the server's identity is not verified. Every sslmode but
// verify-full and verify-ca has one of them. Unverified returns "" if there is no weakness,
// and for a URL that cannot be read.
func Unverified(url string) string {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return ""
	}
	// pgx tries each way in turn: sslmode=prefer has one with TLS and one without. The weakest
	// way counts, since an attacker can make the others fail.
	ways := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	why := ""
	for _, way := range ways {
		t := way.TLSConfig
		switch {
		case local(way.Host):
		case t == nil:
			return "the connection to " + way.Host + " may be unencrypted"
		case t.InsecureSkipVerify && t.VerifyPeerCertificate == nil && t.VerifyConnection == nil:
			why = "nothing proves that " + way.Host + " is the server: its certificate is not verified"
		}
	}
	return why
}

// local reports whether a host is this machine, or the folder of a Unix socket.
func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || err == nil && address.IsLoopback()
}
