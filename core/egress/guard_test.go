package egress

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// liftable are the ranges that need server.allow_private_urls.
var liftable = []string{
	"127.0.0.0/8", "::1/128",
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
}

// forbidden are the ranges that are never permitted: every range of the registries that is
// neither public nor liftable, and every range that embeds IPv4 addresses.
var forbidden = []string{
	"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
	"::/128", "::/127", "::2/127", "::127.0.0.1/128", "::10.0.0.0/104", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fe80::/10", "fec0::/10", "ff00::/8",
	"100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128", "fd00:c1::a9fe:a9fe/128",
}

// allowed are addresses that are always permitted.
var allowed = []string{
	"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
	"172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
	"2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8",
}

func TestGuardTable(t *testing.T) {
	for _, open := range []bool{false, true} {
		g := guard{allowPrivate: open}
		for _, text := range forbidden {
			for _, a := range samples(netip.MustParsePrefix(text)) {
				if a == netip.MustParseAddr("::1") {
					continue // of ::/127
				}
				if g.check(a) == nil {
					t.Errorf("check(%v) passes with allowPrivate %v; it is of %s", a, open, text)
				}
			}
		}
		for _, text := range liftable {
			for _, a := range samples(netip.MustParsePrefix(text)) {
				if err := g.check(a); (err == nil) != open && !within(metadata, a) {
					t.Errorf("check(%v) = %v with allowPrivate %v; it is of %s", a, err, open, text)
				}
			}
		}
		for _, text := range allowed {
			if err := g.check(netip.MustParseAddr(text)); err != nil {
				t.Errorf("check(%s) = %v with allowPrivate %v, want nil", text, err, open)
			}
		}
	}
}

// samples returns the first and last address of a range and some in between. Addresses of an
// IPv4 range are returned in their IPv6-mapped form as well.
func samples(p netip.Prefix) []netip.Addr {
	list := []netip.Addr{p.Masked().Addr()}
	for _, fill := range []func() byte{func() byte { return 0xff }, random, random, random} {
		bytes := p.Masked().Addr().AsSlice()
		for bit := p.Bits(); bit < len(bytes)*8; bit++ {
			bytes[bit/8] |= fill() & (0x80 >> (bit % 8))
		}
		a, _ := netip.AddrFromSlice(bytes)
		list = append(list, a)
	}
	for _, a := range list {
		if a.Is4() {
			list = append(list, netip.AddrFrom16(a.As16()))
		}
	}
	return list
}

func random() byte { return byte(rand.Uint32()) }

func TestBlockedInWords(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1":        "10.0.0.1 is a private address (server.allow_private_urls is false)",
		"::ffff:10.0.0.1": "10.0.0.1 is a private address (server.allow_private_urls is false)",
		"127.0.0.1":       "127.0.0.1 is a loopback address (server.allow_private_urls is false)",
		"169.254.169.254": "169.254.169.254 may be a cloud's metadata service",
		"192.0.2.1":       "192.0.2.1 is not a public address",
		"64:ff9b::a00:1":  "64:ff9b::a00:1 is not a public address",
	} {
		if err := (guard{}).check(netip.MustParseAddr(address)); err == nil || err.Error() != want {
			t.Errorf("check(%s) = %v, want %s", address, err, want)
		}
	}
}

func TestControlFailsClosed(t *testing.T) {
	for _, c := range []struct{ network, address string }{
		{"tcp4", "127.0.0.1"}, {"tcp4", ""}, {"tcp4", "localhost:80"}, {"tcp6", "[::1"}, {"unix", "/run/x"}, {"udp4", "8.8.8.8:53"},
		{"tcp6", "[fe80::1%lo]:80"}, {"tcp6", "[2001:4860:4860::8888%lo]:80"}, {"tcp6", "[fd00::1%lo]:80"},
	} {
		if err := (guard{allowPrivate: true}).control(t.Context(), c.network, c.address, nil); err == nil {
			t.Errorf("control(%s, %q) = nil, want an error", c.network, c.address)
		}
	}
}

// TestHTTPClient: other calls use the same guarded dialler, and follow no redirects.
func TestHTTPClient(t *testing.T) {
	witness := newWitness(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:"+witness.port, http.StatusFound)
	})
	resp, err := newClient(t).HTTPClient(20 * time.Second).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("Get() of a redirect = %s, want the redirect itself", resp.Status)
	}
	closed := New(Options{})
	defer closed.Close()
	if _, err := closed.HTTPClient(20 * time.Second).Get("http://127.0.0.1:" + witness.port); err == nil {
		t.Error("Get() of a loopback address = nil, want it blocked")
	}
	witness.check(t)
}

// A witness counts the connections to a port on every loopback address.
type witness struct {
	port string
	seen chan net.Addr
}

func newWitness(t *testing.T) *witness {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	w := &witness{port: port, seen: make(chan net.Addr, 1000)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.seen <- conn.RemoteAddr()
			conn.Close()
		}
	}()
	return w
}

// check makes one connection. The test fails if another one came before it.
func (w *witness) check(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+w.port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, want := (<-w.seen).String(), conn.LocalAddr().String(); got != want {
		t.Errorf("a connection came in from %s", got)
	}
}

func TestUnknownNameSaysSo(t *testing.T) {
	client := newClient(t)
	client.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no network")
	}}
	got := send(t, newSender(t, client, Target{URL: "http://handler.test/?token=s3cret"}), taken("J", "{}"))
	checkFailure(t, got, 0, "dns: ")
	if !strings.Contains(got.Error, "(handler.test)") {
		t.Errorf("Send() error = %q, want it to name the host", got.Error)
	}
}
