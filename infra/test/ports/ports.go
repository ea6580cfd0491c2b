// Package ports reserves TCP ports of 127.0.0.1 for tests. A test needs a port of its own if
// it must know the port before a server listens, or if a server is to go away and come back
// at the same address. Only tests and benchmarks import the package. It imports nothing of
// this module.
//
// The idea to know: a reservation is a bound socket that never listens. While it is open, the
// kernel gives its port to no other socket, in no process: not to a server that asks for any
// port, not to another reservation, and not to an outgoing connection. Connections to the
// port are refused. The reservation ends with its process, so nothing is left behind.
//
// A port that is chosen by listening and closing the listener belongs to no process until its
// server starts. Test binaries run side by side, so another process can take the port
// meanwhile: "bind: address already in use". A range of ports for each package, or a lock
// file for each port, would hold only against the processes that follow the same convention.
//
// Only Linux lets a server bind a port next to a reservation. Elsewhere a port is chosen and
// closed.
package ports

import (
	"net"
	"strconv"
	"sync"
	"testing"
)

// A Port is a reserved port of 127.0.0.1. Its methods are safe for concurrent use.
type Port struct {
	number int

	mu   sync.Mutex // guards held: the number of a closed socket may be another file's
	held socket
}

// Reserve reserves a port of the kernel's choice. The caller ends the reservation with
// [Port.Close].
func Reserve() (*Port, error) {
	held, number, err := bind()
	if err != nil {
		return nil, err
	}
	return &Port{number: number, held: held}, nil
}

// New reserves a port until the end of the test.
func New(t testing.TB) *Port {
	t.Helper()
	p, err := Reserve()
	if err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// Refusing returns an address "127.0.0.1:port" that refuses connections until the end of the
// test.
func Refusing(t testing.TB) string {
	t.Helper()
	return New(t).Addr()
}

// ForServer reserves a port until the end of the test, for a server that another process
// starts, as often as it likes. See [Port.Lend].
func ForServer(t testing.TB) int {
	t.Helper()
	p := New(t)
	if err := p.Lend(); err != nil {
		t.Fatalf("lend port %d to a server: %v", p.number, err)
	}
	return p.number
}

// Number returns the number of the port.
func (p *Port) Number() int { return p.number }

// Addr returns the address, "127.0.0.1:port".
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Lend lets servers of any process listen on the port, one at a time. They need the socket
// option SO_REUSEADDR, which Go, PostgreSQL, MariaDB and node set. A lent port is still given
// to no socket that asks for any port.
func (p *Port) Lend() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held.lend()
}

// Listen listens on the port. When the listener is closed, connections are refused again and
// the port stays reserved, so Listen can be called again.
func (p *Port) Listen() (net.Listener, error) {
	return listen(p.Addr())
}

// Close ends the reservation. A server that listens on the port goes on. Close may be called
// again.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held.close()
}
