//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A wire forwards connections to a server, and can be cut.
type wire struct {
	t               testing.TB
	address         string
	network, target string
	bytes           atomic.Int64 // forwarded bytes in both directions

	mu       sync.Mutex
	listener net.Listener // nil while the wire is cut
	open     map[*link]bool
}

// A link is one forwarded connection.
type link struct {
	outer, inner net.Conn
	dead         atomic.Bool // drops all bytes without closing the connection
}

func newWire(t testing.TB, network, target string) *wire {
	t.Helper()
	w := &wire{t: t, network: network, target: target, open: map[*link]bool{}}
	t.Cleanup(w.cut)
	for range 100 {
		// The port is below the range of ports for outgoing connections, so that no other
		// process gets it while the wire is cut.
		w.address = fmt.Sprintf("127.0.0.1:%d", 21000+rand.IntN(11000))
		if w.listen() == nil {
			return w
		}
	}
	t.Fatal("no free port")
	return nil
}

// mend accepts connections again.
func (w *wire) mend() {
	w.t.Helper()
	if err := w.listen(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) listen() error {
	l, err := net.Listen("tcp", w.address)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener = l
	go w.accept(l)
	return nil
}

// cut closes all connections and refuses new ones.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener == nil {
		return
	}
	w.listener.Close()
	w.listener = nil
	w.breakAll()
}

// sever closes all connections, like a server that restarts.
func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breakAll()
}

func (w *wire) breakAll() {
	for l := range w.open {
		l.close()
	}
	clear(w.open)
}

// forget drops the bytes of all connections without closing them, like a network that has
// forgotten the connections. New connections work.
func (w *wire) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.open {
		l.dead.Store(true)
	}
}

func (w *wire) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the wire was cut
		}
		go w.forward(l, c)
	}
}

func (w *wire) forward(from net.Listener, outer net.Conn) {
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

// note records a link. It returns false if the wire was cut meanwhile.
func (w *wire) note(from net.Listener, l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != from {
		return false
	}
	w.open[l] = true
	return true
}

func (w *wire) pump(l *link, to, from net.Conn) {
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
