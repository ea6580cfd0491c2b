// Package wire has a TCP forwarder between the program under test and a server. A test can cut
// it, sever its connections, or have it lose bytes, like a network. Only tests import the
// package.
//
// The idea to know: the server keeps running and knows nothing. So the test sees how the
// program treats a broken connection and not how it treats a restarted server, and it needs no
// rights to change the machine's network.
package wire

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventgateway/gateway/infra/test/ports"
)

// A Wire forwards the connections to its address to a server. Its methods are safe for
// concurrent use, except that Cut and Mend are called by one goroutine at a time.
type Wire struct {
	t               testing.TB
	port            *ports.Port // stays reserved while the wire is cut
	network, target string
	bytes           atomic.Int64

	mu       sync.Mutex // guards the fields below, and starts and ends of links
	listener net.Listener
	open     map[*link]bool
}

// A link is one forwarded connection.
type link struct {
	outer, inner net.Conn
	dead         atomic.Bool // drops all bytes without closing the connection
}

// New forwards connections to a server until the end of the test. Network and target are as
// for [net.Dial]: "tcp" with "host:port", or "unix" with a path.
func New(t testing.TB, network, target string) *Wire {
	t.Helper()
	w := &Wire{t: t, port: ports.New(t), network: network, target: target, open: map[*link]bool{}}
	w.Mend()
	t.Cleanup(w.Cut)
	return w
}

// Addr returns the address to connect to, "127.0.0.1:port". It stays the same over cuts.
func (w *Wire) Addr() string { return w.port.Addr() }

// Bytes returns the number of bytes read in both directions so far, dropped bytes included.
func (w *Wire) Bytes() int64 { return w.bytes.Load() }

// Mend accepts connections again after a cut.
func (w *Wire) Mend() {
	w.t.Helper()
	l, err := w.port.Listen()
	if err != nil {
		w.t.Fatalf("mend the connection to %s: %v", w.target, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener = l
	go w.accept(l)
}

// Cut closes all connections and refuses new ones. No other process can take the address
// meanwhile.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener == nil {
		return
	}
	w.listener.Close()
	w.listener = nil
	w.breakAll()
}

// Sever closes all connections, like a server that restarts. New connections work.
func (w *Wire) Sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breakAll()
}

// breakAll closes all connections. The caller holds the lock.
func (w *Wire) breakAll() {
	for l := range w.open {
		l.close()
	}
	clear(w.open)
}

// Forget drops the bytes of all open connections without closing them, like a network that
// has forgotten the connections. New connections work.
func (w *Wire) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.open {
		l.dead.Store(true)
	}
}

func (w *Wire) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the wire was cut
		}
		go w.forward(l, c)
	}
}

// forward connects to the server and forwards bytes until one side closes. A client of an
// unreachable server sees its connection closed.
func (w *Wire) forward(from net.Listener, outer net.Conn) {
	inner, err := net.Dial(w.network, w.target)
	if err != nil {
		outer.Close()
		return
	}
	l := &link{outer: outer, inner: inner}
	if !w.note(from, l) {
		l.close()
		return
	}
	go w.pump(l, outer, inner)
	w.pump(l, inner, outer)
}

// note records a link. It returns false if the wire was cut while the link was made: Cut would
// have closed the link.
func (w *Wire) note(from net.Listener, l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != from {
		return false
	}
	w.open[l] = true
	return true
}

func (w *Wire) pump(l *link, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		w.bytes.Add(int64(n))
		if l.dead.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, l)
	l.close()
}

func (l *link) close() {
	l.outer.Close()
	l.inner.Close()
}
