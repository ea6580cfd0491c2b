// Package dnsrig is a DNS server for tests that can lie: it can answer the same question
// differently each time, and return any address. It supports the part of RFC 1035 that a stub
// resolver needs, over UDP. It imports nothing of this module.
//
// The idea to know: a [Zone] is a function of the name and of the number of the question, so
// that a rebinding attack is one line. Every answer has a TTL of 0.
package dnsrig

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// The types of questions, as on the wire.
const (
	A     uint16 = 1
	cname uint16 = 5
	AAAA  uint16 = 28
)

// A Zone returns the addresses of a name: IPv4 and IPv6 addresses in their usual form. It may
// also return another name, which is then an alias in the same zone; aliases must not form a
// circle. The name is in lower case, without the final dot. A mapped address such as
// ::ffff:127.0.0.1 is in the answers of type AAAA. n counts the questions of each name and
// type, from 1. An empty result means that the name does not exist.
type Zone func(name string, n int) []string

// A Server answers for a zone.
type Server struct {
	conn net.PacketConn
	zone Zone

	mu    sync.Mutex
	asked map[question]int
}

type question struct {
	name string
	kind uint16
}

// New starts a server on a free port of 127.0.0.1. It is closed at the end of the test.
func New(t testing.TB, zone Zone) *Server {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return Serve(t, conn, zone)
}

// Serve is New on an existing socket. It closes the socket at the end of the test.
func Serve(t testing.TB, conn net.PacketConn, zone Zone) *Server {
	s := &Server{conn: conn, zone: zone, asked: map[question]int{}}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		s.serve()
	}()
	return s
}

// Resolver returns a resolver that asks only this server.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

// Asked returns the number of questions of a type about a name.
func (s *Server) Asked(name string, kind uint16) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[question{name, kind}]
}

func (s *Server) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := s.reply(buffer[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

const (
	headerSize = 12
	noSuchName = 3
)

// reply returns the answer to a message with one question, or nil for another message.
func (s *Server) reply(message []byte) []byte {
	q, end := parse(message)
	if end == 0 {
		return nil
	}
	s.mu.Lock()
	s.asked[q]++
	n := s.asked[q]
	s.mu.Unlock()
	reply := append([]byte(nil), message[:end]...)
	reply[2], reply[3] = 0x81, 0x80 // a response, recursion desired and available
	clear(reply[6:headerSize])
	values := s.zone(q.name, n)
	if len(values) == 0 {
		reply[3] |= noSuchName
	}
	return s.records(reply, q, values, n)
}

// records appends the records of a name and of its aliases.
func (s *Server) records(reply []byte, q question, values []string, n int) []byte {
	for _, value := range values {
		a, err := netip.ParseAddr(value)
		switch {
		case err != nil:
			reply = record(reply, q.name, cname, wire(value))
			reply = s.records(reply, question{value, q.kind}, s.zone(value, n), n)
		case a.Is4() && q.kind == A || a.Is6() && q.kind == AAAA:
			reply = record(reply, q.name, q.kind, a.AsSlice())
		}
	}
	return reply
}

func record(reply []byte, name string, kind uint16, data []byte) []byte {
	reply[7]++ // number of answers; it is always small
	reply = append(reply, wire(name)...)
	reply = binary.BigEndian.AppendUint16(reply, kind)
	reply = append(reply, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
	reply = binary.BigEndian.AppendUint16(reply, uint16(len(data)))
	return append(reply, data...)
}

// wire returns a name in the form of the protocol.
func wire(name string) []byte {
	var b []byte
	for label := range strings.SplitSeq(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0)
}

// parse returns the question and its end; 0 if it cannot be read.
func parse(message []byte) (q question, end int) {
	if len(message) < headerSize || binary.BigEndian.Uint16(message[4:]) != 1 {
		return q, 0
	}
	var labels []string
	at := headerSize
	for at < len(message) && message[at] != 0 {
		next := at + 1 + int(message[at])
		if message[at] > 63 || next > len(message) {
			return q, 0
		}
		labels = append(labels, strings.ToLower(string(message[at+1:next])))
		at = next
	}
	if at+5 > len(message) {
		return q, 0
	}
	return question{strings.Join(labels, "."), binary.BigEndian.Uint16(message[at+1:])}, at + 5
}
