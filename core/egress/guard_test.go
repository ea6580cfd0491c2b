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

// What is connected to only if server.allow_private_urls says so.
var liftable = []string{
	"127.0.0.0/8", "::1/128",
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
}

// What is never connected to: every range of the registries that is not public
// and not liftable, and everything that wraps an IPv4 address.
var forbidden = []string{
	"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
	"::/128", "::/127", "::2/127", "::127.0.0.1/128", "::10.0.0.0/104", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fe80::/10", "fec0::/10", "ff00::/8",
	"100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128", "fd00:c1::a9fe:a9fe/128",
}

// What always is.
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

// samples are the first and last address of a range and some in between, each of
// an IPv4 range also in its mapped form.
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

// Literals that a handler's URL might hold. Those the URL's shape does not rule
// out are refused when dialled.
var literals = []string{
	"127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.255", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.254",
	"100.64.0.1", "100.100.100.200", "100.127.255.254", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1",
	"172.31.255.254", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.254",
	"198.18.0.1", "198.19.255.254", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
	"255.255.255.255", "168.63.129.16",
	"[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
	"[::ffff:0:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
	"[2002:a9fe:a9fe::]", "[2001::7f00:1]", "[2001:0:7f00:1::]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]",
	"[fe80::1]", "[fe80::a9fe:a9fe]", "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[fd00:ec2::23]", "[fd20:ce::254]", "[ff02::1]",
	"2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "localhost",
}

func TestLiteralsAreRefused(t *testing.T) {
	witness := newWitness(t)
	client := New(Options{Concurrency: 1})
	defer client.Close()
	for _, host := range literals {
		sender, err := client.HTTP(Target{URL: "http://" + host + ":" + witness.port})
		if err != nil {
			continue // by its shape
		}
		if got := send(t, sender, taken("J", "{}")); !strings.HasPrefix(got.Error, "blocked: ") {
			t.Errorf("Send() to %s = %+v, want it blocked", host, got)
		}
	}
	witness.check(t)
}

// A name is judged by the address dialled, whatever it resolved to before.
func TestNamesThatResolveToForbiddenAddresses(t *testing.T) {
	witness := newWitness(t)
	for name, answers := range map[string][]string{
		"loopback.test": {"127.0.0.1"},
		"private.test":  {"10.0.0.1", "127.0.0.1"},
		"six.test":      {"::1"},
		"mapped.test":   {"::ffff:127.0.0.1"},
		"metadata.test": {"169.254.169.254", "fd00:ec2::254"},
	} {
		client := New(Options{Concurrency: 1})
		client.dialer.Resolver = resolver(t, answers)
		sender := newSender(t, client, Target{URL: "http://" + name + ":" + witness.port})
		for range 100 {
			if got := send(t, sender, taken("J", "{}")); !strings.HasPrefix(got.Error, "blocked: ") {
				t.Errorf("Send() to %s = %+v, want it blocked", name, got)
			}
		}
		client.Close()
	}
	witness.check(t)
}

func TestMetadataStaysBlockedWhenPrivateIsAllowed(t *testing.T) {
	client := newClient(t)
	for _, host := range []string{
		"169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[::ffff:100.100.100.200]",
		"[64:ff9b::a9fe:a9fe]", "[64:ff9b::6464:64c8]", "[2002:a9fe:a9fe::]", "[fe80::1]",
	} {
		if got := send(t, newSender(t, client, Target{URL: "http://" + host}), taken("J", "{}")); !strings.HasPrefix(got.Error, "blocked: ") {
			t.Errorf("Send() to %s = %+v, want it blocked", host, got)
		}
	}
}

// Other calls go through the same door, and follow no redirects either.
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

// check makes one connection of its own, and expects it to be the first.
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

// resolver answers every question with the addresses of the asked family.
func resolver(t *testing.T, answers []string) *net.Resolver {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			server.WriteTo(answer(buffer[:n], answers), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answer makes a DNS reply (RFC 1035) with a TTL of 0.
func answer(question []byte, answers []string) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	kind := question[end+2] // 1 is A, 28 is AAAA
	reply := append([]byte(nil), question[:end+5]...)
	reply[2], reply[3] = 0x81, 0x80
	clear(reply[6:12])
	for _, text := range answers {
		a := netip.MustParseAddr(text)
		if a.Is4() == (kind == 1) && (kind == 1 || kind == 28) {
			reply[7]++
			reply = append(reply, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, byte(len(a.AsSlice())))
			reply = append(reply, a.AsSlice()...)
		}
	}
	return reply
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
