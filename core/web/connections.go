package web

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/eventgateway/gateway/core"
)

// The connections that a process should hold open at most; see [Limit].
const (
	MaxConnections     = 4096
	MaxConnectionsEach = MaxConnections / 2 // of one client
	maxSpare           = 64                 // above MaxConnections, for probes
	maxSpareEach       = maxSpare / 4       // of one client
)

// A Crowd limits connections.
type Crowd struct {
	// Most is how many connections may be open at once. Each is how many of them one address
	// may have, or one IPv6 network of /64.
	Most, Each int

	// Proxy reports whether an address may have more than Each, since it connects for many
	// clients. Nil means that no address may.
	Proxy func(netip.Addr) bool

	// Closed is called for each connection that is closed to make room, and for each that is
	// refused since there are too many, with its address. It may be nil.
	Closed func(why core.ClosedFor, client netip.Addr)
}

// Limit bounds the connections of a listener. An address at its bound that opens a further
// connection loses its longest idle one. If there are too many connections in all, the
// address with the most connections loses its longest idle one. If no connection is idle, the
// further connection is for probes: on it /health and /metrics are answered, and every other
// request gets 503. Connections for probes are few, and have bounds of the same kind. The
// caller must serve the listener with a server of [NewServer],
// which reports the idle connections.
//
// Limit also completes the replies that net/http makes itself, before a handler has a
// request: see [conn.Write].
func Limit(l net.Listener, c Crowd) net.Listener {
	return &limited{Listener: l, Crowd: c,
		ordinary: seats{most: c.Most, each: c.Each, hosts: map[netip.Addr]*host{}},
		probes:   seats{most: maxSpare, each: maxSpareEach, hosts: map[netip.Addr]*host{}},
	}
}

// A limited listener counts its connections. Its mutex guards all seats, hosts and connections,
// and is never held while a connection is read, written or closed.
type limited struct {
	net.Listener
	Crowd

	mu       sync.Mutex
	waits    uint64 // how often a connection became idle
	ordinary seats
	probes   seats
}

// Seats are the open connections of one kind, ordinary or probes, and their bounds.
type seats struct {
	most, each int
	hosts      map[netip.Addr]*host
	open       int // connections of all hosts
}

// A host is the connections of one address, or of one network.
type host struct {
	open int
	idle list.List // of *conn; the longest idle one is first
}

// errCrowd is the reason for closing a connection right after the gateway accepted it.
var errCrowd = errors.New("too many connections")

// Accept returns the next connection within the bounds.
func (l *limited) Accept() (net.Conn, error) {
	for {
		// A refused connection is closed at once and costs a turn of this loop. It gets no reply,
		// since a reply would have to wait for its reader.
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerAddress(accepted.RemoteAddr().String())
		c := &conn{Conn: accepted, client: core.ClientOf(peer), of: l}
		closed, err := l.admit(c, l.speaksForMany(peer))
		// Connections are closed outside of the lock, since closing may block.
		if closed != nil {
			l.end(closed, core.ClosedIdle)
		}
		if err == nil {
			return c, nil
		}
		l.end(c, core.ClosedRefused)
	}
}

// speaksForMany reports whether an address may have more connections than others. A peer
// without an address is on a local socket, such as a Unix socket.
func (l *limited) speaksForMany(peer netip.Addr) bool {
	return !peer.IsValid() || l.Proxy != nil && l.Proxy(peer)
}

// end closes a connection that no longer counts.
func (l *limited) end(c *conn, why core.ClosedFor) {
	_ = c.Conn.Close()
	if l.Closed != nil {
		l.Closed(why, c.client)
	}
}

// admit finds a seat for a connection, and returns the connection to close for it.
func (l *limited) admit(c *conn, many bool) (closed *conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if closed, ok := l.ordinary.admit(c, many); ok {
		return closed, nil
	}
	// No ordinary seat is free, and no idle connection can give one up.
	if closed, ok := l.probes.admit(c, many); ok {
		return closed, nil
	}
	return nil, errCrowd
}

// admit seats a connection within the bounds, and returns the idle connection that gave up
// its seat, if one had to. It returns false if there is no seat.
func (s *seats) admit(c *conn, many bool) (closed *conn, ok bool) {
	h := s.hosts[c.client]
	switch {
	// The client is at its own bound, so it loses a connection of its own.
	case h != nil && h.open >= s.each && !many:
		if closed = h.dismiss(); closed == nil {
			return nil, false
		}
	// All seats are taken. The client with the most connections gives one up.
	case s.open >= s.most:
		if closed = s.largest().dismiss(); closed == nil {
			return nil, false
		}
	}
	s.seat(c)
	return closed, true
}

// seat counts a connection for its host.
func (s *seats) seat(c *conn) {
	h := s.hosts[c.client]
	if h == nil {
		h = &host{}
		s.hosts[c.client] = h
	}
	c.seats, c.host = s, h
	h.open++
	s.open++
	// A new connection is idle until its first request. Many clients open some in advance.
	c.wait()
}

// dismiss takes the longest idle connection away from a host. It returns nil if none is idle.
func (h *host) dismiss() *conn {
	if h == nil || h.idle.Len() == 0 {
		return nil
	}
	c := h.idle.Front().Value.(*conn)
	c.drop()
	return c
}

// largest returns the host with the most connections, among hosts with an idle one. Of hosts
// with equally many connections it returns the host with the longest idle connection.
func (s *seats) largest() (largest *host) {
	for _, h := range s.hosts {
		switch {
		case h.idle.Len() == 0:
		case largest == nil, h.open > largest.open, h.open == largest.open && h.first() < largest.first():
			largest = h
		}
	}
	return largest
}

// first is the number of the wait of the longest idle connection. A lower number is older.
func (h *host) first() uint64 { return h.idle.Front().Value.(*conn).since }

// drop stops counting a connection, if it still counts.
func (c *conn) drop() {
	if c.host == nil {
		return
	}
	c.work()
	c.host.open--
	c.seats.open--
	if c.host.open == 0 {
		delete(c.seats.hosts, c.client)
	}
	c.host = nil
}

// A conn is a connection of a [limited] listener, whose mutex guards the last fields.
//
// Its life: admitted and idle, busy with each request (note), idle again, and dropped when it is
// closed or gives up its seat. Only an idle one is ever taken from a client, so no request is cut
// off for another client.
type conn struct {
	net.Conn
	client netip.Addr
	of     *limited

	seats   *seats        // never changes after Accept
	host    *host         // of the seats; nil once the connection no longer counts
	waiting *list.Element // among the idle ones of its host; nil if it is not idle
	since   uint64        // the number of this wait, of all waits
}

// wait marks a connection as idle: it has no request.
func (c *conn) wait() {
	if c.waiting == nil {
		c.of.waits++
		c.waiting, c.since = c.host.idle.PushBack(c), c.of.waits
	}
}

// work marks a connection as busy.
func (c *conn) work() {
	if c.waiting != nil {
		c.host.idle.Remove(c.waiting)
		c.waiting = nil
	}
}

// Close closes the connection, and makes room for another one.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.drop()
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// note is called by net/http when the state of a connection changes.
func note(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	// net/http reports changes also after the listener has given the seat away.
	case c.host == nil: // it is being closed
	case state == http.StateActive:
		c.work()
	case state == http.StateIdle:
		c.wait()
	}
}

// forProbes reports whether a request came by a connection for probes.
func forProbes(r *http.Request) bool {
	c, ok := r.Context().Value(connection{}).(*conn)
	return ok && c.seats == &c.of.probes
}
