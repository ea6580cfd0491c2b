package web_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
)

// A street is a listener whose clients have any address. It works in a synctest bubble only:
// its connections are pipes.
type street struct {
	t      *testing.T
	calls  chan net.Conn
	over   chan struct{}
	closed []string // the calls of Closed
}

// open starts a server of the handler, within the bounds.
func open(t *testing.T, h http.Handler, c web.Crowd) *street {
	s := &street{t: t, calls: make(chan net.Conn), over: make(chan struct{})}
	c.Closed = func(why core.ClosedFor, client netip.Addr) {
		s.closed = append(s.closed, fmt.Sprintf("%s %s", client, why))
	}
	server := web.NewServer(h, slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(web.Limit(s, c)) }()
	t.Cleanup(func() {
		_ = server.Close()
		time.Sleep(time.Second) // net/http lingers for 500 ms where there is unread input
	})
	return s
}

func (s *street) Accept() (net.Conn, error) {
	select {
	case c := <-s.calls:
		return c, nil
	case <-s.over:
		return nil, net.ErrClosed
	}
}

func (s *street) Close() error   { close(s.over); return nil }
func (s *street) Addr() net.Addr { return &net.TCPAddr{} }

// A call is one connection, as its client sees it.
type call struct {
	net.Conn
	t *testing.T
}

// A piped connection comes from an address.
type piped struct {
	net.Conn
	from net.Addr
}

func (p piped) RemoteAddr() net.Addr { return p.from }

// call opens a connection from an address.
func (s *street) call(from string) *call {
	s.t.Helper()
	client, server := net.Pipe()
	s.calls <- piped{server, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 4711))}
	s.t.Cleanup(func() { _ = client.Close() })
	synctest.Wait()
	return &call{client, s.t}
}

// say sends bytes and does not wait for an answer.
func (c *call) say(text string) {
	go func() { _, _ = io.WriteString(c, text) }()
	synctest.Wait()
}

// get sends a request and returns the status of the answer, or "closed".
func (c *call) get(path string) string {
	c.t.Helper()
	c.say("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
	return c.answer()
}

// answer is the status of the next answer, or "closed".
func (c *call) answer() string {
	c.t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "closed"
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return fmt.Sprint(r.StatusCode)
}

// gone reports whether the server has closed a connection.
func (c *call) gone() bool {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return errors.Is(err, io.EOF)
}

// One address cannot have all connections: a further one closes its longest idle one.
func TestConnectionsOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 100, Each: 3})
		other := s.call("192.0.2.9")
		var calls []*call
		for range 3 {
			calls = append(calls, s.call("192.0.2.1"))
		}
		if got := calls[0].get("/health"); got != "200" { // now the second is idle for longest
			t.Fatalf("the first connection: %s, want 200", got)
		}
		synctest.Wait()
		fourth := s.call("192.0.2.1")
		for i, want := range []bool{false, true, false} {
			if calls[i].gone() != want {
				t.Errorf("connection %d is closed: %v, want %v", i+1, !want, want)
			}
		}
		for name, c := range map[string]*call{"other": other, "first": calls[0], "fourth": fourth} {
			if got := c.get("/health"); got != "200" {
				t.Errorf("%s: %s, want 200", name, got)
			}
		}
		if diff := cmp.Diff([]string{"192.0.2.1 idle"}, s.closed); diff != "" {
			t.Errorf("closed (-want +got):\n%s", diff)
		}
	})
}

// A connection with a request is never closed for another one.
func TestBusyConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 100, Each: 2})
		var busy []*call
		for range 2 {
			c := s.call("192.0.2.1")
			c.say("POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
			busy = append(busy, c)
		}
		if got := s.call("192.0.2.1").get("/api/events"); got != "503" {
			t.Errorf("a third connection of an address that may have two: %s, want 503", got)
		}
		for _, c := range busy {
			c.say("}")
			if got := c.answer(); got != "200" {
				t.Errorf("a request that was under way: %s, want 200", got)
			}
		}
		synctest.Wait()
		if got := s.call("192.0.2.1").get("/health"); got != "200" { // one of those two was idle now
			t.Errorf("a connection after that: %s, want 200", got)
		}
		if diff := cmp.Diff([]string{"192.0.2.1 idle"}, s.closed); diff != "" {
			t.Errorf("closed (-want +got):\n%s", diff)
		}
	})
}

// All addresses of an IPv6 network of /64 count as one.
func TestConnectionsOfOneNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 100, Each: 3})
		first := s.call("2001:db8::1")
		for _, from := range []string{"2001:db8::2", "2001:db8:0:0:ffff::3", "2001:db8::4"} {
			s.call(from)
		}
		next := s.call("2001:db8:0:1::1")
		if !first.gone() || next.gone() {
			t.Errorf("first of four of a network closed: %v, want true; one of the next network: %v, want false", first.gone(), next.gone())
		}
	})
}

// A proxy may have any number of connections.
func TestConnectionsOfAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proxy := web.Clients{TrustProxy: true, Proxies: []netip.Prefix{netip.MustParsePrefix("2001:db8::7/128")}}
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 100, Each: 1, Proxy: proxy.Proxy})
		var calls []*call
		for range 5 {
			calls = append(calls, s.call("2001:db8::7"))
		}
		for i, c := range calls {
			if c.gone() {
				t.Errorf("connection %d of a proxy is closed", i+1)
			}
		}
		s.call("2001:db8::8")
		if len(s.closed) != 1 {
			t.Errorf("closed: %v; want one, of the network of the proxy that is no proxy itself", s.closed)
		}
	})
}

// When there are too many connections in all, the address with the most loses one.
func TestTooManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 5, Each: 4})
		lone := s.call("192.0.2.9")
		var crowd []*call
		for range 4 {
			crowd = append(crowd, s.call("192.0.2.1"))
		}
		fresh := s.call("192.0.2.5")
		if lone.gone() || fresh.gone() || !crowd[0].gone() {
			t.Errorf("closed: the lone one %v, the new one %v, the first of the crowd %v; want false, false, true",
				lone.gone(), fresh.gone(), crowd[0].gone())
		}
	})
}

// When all connections are busy, /health and /metrics are answered all the same. Other
// requests are not.
func TestProbesOfAFullHouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 2, Each: 2})
		var busy []*call
		for i := range 2 {
			c := s.call(fmt.Sprintf("192.0.2.%d", i+1))
			c.say("POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
			busy = append(busy, c)
		}
		if got := s.call("192.0.2.3").get("/health"); got != "200" {
			t.Errorf("/health: %s, want 200", got)
		}
		if got := s.call("192.0.2.3").get("/metrics"); got != "404" { // which this world does not serve
			t.Errorf("/metrics: %s, want 404, as of a route", got)
		}
		for _, path := range []string{"/api/events", "/nothing"} {
			if got := s.call("192.0.2.3").get(path); got != "503" {
				t.Errorf("%s: %s, want 503", path, got)
			}
		}
		for range 100 { // more connections without a request than there are places for probes
			s.call("192.0.2.4")
		}
		if got := s.call("192.0.2.3").get("/health"); got != "200" {
			t.Errorf("/health beside silent connections: %s, want 200", got)
		}
		for _, c := range busy {
			c.say("}")
			if got := c.answer(); got != "200" {
				t.Errorf("a request that was under way: %s, want 200", got)
			}
		}
	})
}

// Probes of an address whose connections are all busy are answered, and take only a part of
// the connections for probes.
func TestProbesOfABusyAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 100, Each: 2})
		hold := func(from string, n int) {
			for range n {
				s.call(from).say("GET /health HTTP/1.1\r\nHost: x\r\n\r\n") // the client does not read the reply
			}
		}
		hold("192.0.2.1", 2)
		if got := s.call("192.0.2.1").get("/health"); got != "200" {
			t.Errorf("/health from an address with two of two connections busy: %s, want 200", got)
		}
		hold("192.0.2.1", 100) // more than there are connections for probes
		if got := s.call("192.0.2.1").get("/health"); got != "closed" {
			t.Errorf("/health from an address that keeps all its connections for probes busy: %s, want closed", got)
		}
		for range 100 {
			s.call("192.0.2.3") // silent connections
		}
		hold("192.0.2.2", 2)
		if got := s.call("192.0.2.2").get("/health"); got != "200" {
			t.Errorf("/health from another busy address: %s, want 200", got)
		}
	})
}

// A place is given back exactly once, however its connection ends.
func TestConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t).handler(), web.Crowd{Most: 2, Each: 2})
		for i := range 20 {
			c := s.call("192.0.2.1")
			if got := c.get("/health"); got != "200" {
				t.Fatalf("connection %d: %s, want 200", i+1, got)
			}
			if i%2 == 0 {
				_ = c.Close()
				synctest.Wait()
			}
		}
		for range 20 {
			c := s.call("192.0.2.2")
			c.say("nonsense\r\n\r\n")
			_ = c.Close()
			synctest.Wait()
		}
		for _, c := range []*call{s.call("192.0.2.3"), s.call("192.0.2.3")} {
			if got := c.get("/health"); !strings.HasPrefix(got, "200") {
				t.Errorf("in the end: %s, want 200", got)
			}
		}
	})
}
