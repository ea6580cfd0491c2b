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

// How many connections a process should hold open; see [Limit].
const (
	MaxConnections     = 4096
	MaxConnectionsEach = MaxConnections / 2 // of one client
	maxSpare           = 64                 // above MaxConnections, for probes
)

// A Crowd is what connections are held to.
type Crowd struct {
	// Most is how many connections are open at once, and Each how many of them one
	// address has, or one IPv6 network of /64.
	Most, Each int

	// Proxy reports whether an address may have more than Each, since it speaks for many
	// clients. Nil means that none may.
	Proxy func(netip.Addr) bool

	// Closed is told of each connection that is closed for another one, or is not served
	// at all since there are too many, and of its address. May be nil.
	Closed func(why core.ClosedFor, client netip.Addr)
}

// Limit holds the connections of a listener within bounds. The address that has as many
// as it may have loses the one that is idle for longest when it opens another. So does
// the address that has most connections, when there are too many in all. Where none is
// idle, a few more are accepted for probes: they may ask for /health and /metrics, and get
// 503 for everything else. The listener is to be served by a server of [NewServer], which
// says which connections are idle.
//
// Limit also completes the replies net/http gives on its own, before there is a request to
// hand over: see [conn.Write].
func Limit(l net.Listener, c Crowd) net.Listener {
	return &limited{Listener: l, Crowd: c, hosts: map[netip.Addr]*host{}}
}

type limited struct {
	net.Listener
	Crowd

	mu    sync.Mutex
	hosts map[netip.Addr]*host
	open  int    // connections of all hosts
	waits uint64 // how often a connection became idle
	spare host   // those above
}

// A host is the connections of one address, or of one network.
type host struct {
	open int
	idle list.List // of *conn; the one that is idle for longest is first
}

// errCrowd is why a connection is closed right after it was accepted.
var errCrowd = errors.New("too many connections")

// Accept returns the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerAddress(accepted.RemoteAddr().String())
		c := &conn{Conn: accepted, client: core.ClientOf(peer), of: l}
		closed, err := l.admit(c, l.speaksForMany(peer))
		if closed != nil {
			l.end(closed, core.ClosedIdle)
		}
		if err == nil {
			return c, nil
		}
		l.end(c, core.ClosedRefused)
	}
}

// speaksForMany reports whether an address may have more connections than others. One that
// is not known is that of a socket which is no network's.
func (l *limited) speaksForMany(peer netip.Addr) bool {
	return !peer.IsValid() || l.Proxy != nil && l.Proxy(peer)
}

// end closes a connection that is not counted any more.
func (l *limited) end(c *conn, why core.ClosedFor) {
	_ = c.Conn.Close()
	if l.Closed != nil {
		l.Closed(why, c.client)
	}
}

// admit finds room for a connection, and returns the one that has to be closed for it.
func (l *limited) admit(c *conn, many bool) (closed *conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[c.client]
	switch {
	case h != nil && h.open >= l.Each && !many:
		if closed = l.dismiss(h); closed == nil {
			return nil, errCrowd
		}
	case l.open >= l.Most:
		if closed = l.dismiss(l.largest()); closed == nil {
			return l.probe(c)
		}
	}
	l.seat(c)
	return closed, nil
}

// probe admits a connection that is one too many.
func (l *limited) probe(c *conn) (closed *conn, err error) {
	if l.spare.open >= maxSpare {
		if closed = l.dismiss(&l.spare); closed == nil {
			return nil, errCrowd
		}
	}
	c.host, c.spare = &l.spare, true
	c.host.open++
	c.wait()
	return closed, nil
}

// seat counts a connection for its host.
func (l *limited) seat(c *conn) {
	h := l.hosts[c.client]
	if h == nil {
		h = &host{}
		l.hosts[c.client] = h
	}
	c.host = h
	h.open++
	l.open++
	c.wait()
}

// dismiss takes the connection away from a host that is idle for longest; nil if none is.
func (l *limited) dismiss(h *host) *conn {
	if h == nil || h.idle.Len() == 0 {
		return nil
	}
	c := h.idle.Front().Value.(*conn)
	l.drop(c)
	return c
}

// largest is the host that has most connections, of those that have an idle one. Of hosts
// that have as many it is the one with the connection that is idle for longest.
func (l *limited) largest() (largest *host) {
	for _, h := range l.hosts {
		switch {
		case h.idle.Len() == 0:
		case largest == nil, h.open > largest.open, h.open == largest.open && h.first() < largest.first():
			largest = h
		}
	}
	return largest
}

// first is when the connection became idle that is idle for longest.
func (h *host) first() uint64 { return h.idle.Front().Value.(*conn).since }

// drop stops counting a connection.
func (l *limited) drop(c *conn) {
	h := c.host
	if h == nil {
		return
	}
	c.work()
	c.host = nil
	h.open--
	if c.spare {
		return
	}
	l.open--
	if h.open == 0 {
		delete(l.hosts, c.client)
	}
}

// A conn is a connection of a [limited] listener, whose mutex guards its last fields.
type conn struct {
	net.Conn
	client netip.Addr
	of     *limited
	spare  bool // it is served for probes alone

	host    *host         // nil once it is not counted any more
	waiting *list.Element // among the idle ones of its host; nil if it is not idle
	since   uint64        // which of all waits this one is
}

// wait says that a connection is idle: no request of it is known.
func (c *conn) wait() {
	if c.waiting == nil {
		c.of.waits++
		c.waiting, c.since = c.host.idle.PushBack(c), c.of.waits
	}
}

// work says that it is not.
func (c *conn) work() {
	if c.waiting != nil {
		c.host.idle.Remove(c.waiting)
		c.waiting = nil
	}
}

// Close closes the connection, and makes room for another one.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.drop(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// note hears from net/http what a connection does.
func note(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
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
	return ok && c.spare
}
