//go:build linux

package e2e

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// TestHostedFaults: faults of D1, and of the network between a gateway and D1.
func TestHostedFaults(t *testing.T) {
	t.Parallel()
	const limited = `{"success":false,"errors":[{"code":971,"message":"Please wait and consider throttling your request speed"}],"messages":[],"result":null}`
	for _, tt := range []struct {
		name string
		what servers.Fault
	}{
		{"slow", servers.Stall(8 * time.Second)},
		{"500", servers.Before(500, internalError)},
		{"502 of a proxy", servers.Before(502, "<html>bad gateway</html>")},
		{"503", servers.Before(503, servers.Overloaded)},
		{"429", servers.Before(429, limited)},
		{"answers are lost", servers.After()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st, faults := viaProxy(t, servers.D1(t))
			testFault(t, st, fault{tt.name, func(*testing.T) func() {
				faults.Chance(1, tt.what)
				return faults.Clear
			}})
		})
	}
	t.Run("connection refused", func(t *testing.T) {
		t.Parallel()
		h := servers.D1(t)
		d := newDoor(t, h.Endpoint)
		testFault(t, proxyStore(h, d.url), fault{"connection refused", func(t *testing.T) func() {
			d.shut()
			return func() { d.open(t) }
		}})
	})
}

// A door passes TCP connections on to a server, or refuses them.
type door struct {
	url, address, target string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func newDoor(t *testing.T, base string) *door {
	t.Helper()
	u, err := url.Parse(base)
	check(t, err)
	d := &door{address: "127.0.0.1:0", target: u.Host}
	d.open(t)
	d.address = d.listener.Addr().String()
	u.Host = d.address
	d.url = u.String()
	t.Cleanup(d.shut)
	return d
}

func (d *door) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", d.address)
	check(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.pass(c)
		}
	}()
}

func (d *door) pass(in net.Conn) {
	out, err := net.Dial("tcp", d.target)
	if err != nil {
		_ = in.Close()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, in, out)
	for _, c := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(c[0], c[1])
			_ = c[0].Close()
		}()
	}
}

// shut ends all connections and refuses new ones.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
}
