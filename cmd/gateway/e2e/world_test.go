//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/dnsrig"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A world is a network namespace in which every address, public ones too, is this machine, and
// one DNS server resolves all names. The test sees each connection, and no packet leaves the
// machine.
type world struct {
	t    *testing.T
	path string      // of the network namespace
	do   chan func() // run on a thread of this network namespace
	over chan struct{}

	hosts, resolv string // files in place of /etc/hosts and /etc/resolv.conf

	mu   sync.Mutex
	seen []netip.AddrPort // addresses of connections
}

// nameserver is the address of a world's DNS server.
const nameserver = "127.0.0.53"

// newWorld needs the rights to make a network and to mount.
func newWorld(t *testing.T, zone dnsrig.Zone) *world {
	t.Helper()
	for _, tool := range []string{"nsenter", "unshare", "ip"} {
		_, err := exec.LookPath(tool)
		need(t, tool+" (util-linux, iproute2)", err)
	}
	need(t, "the right to make a network and to mount", exec.Command("unshare", "-n", "-m", "true").Run())
	w := &world{t: t, do: make(chan func()), over: make(chan struct{})}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		w.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), syscall.Gettid())
		made <- err
		for {
			select {
			case f := <-w.do:
				f()
			case <-w.over:
				return
			}
		}
	}()
	need(t, "the right to make a network", <-made)
	t.Cleanup(func() { close(w.over) })
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"route", "add", "local", "0.0.0.0/0", "dev", "lo"},
		{"-6", "route", "add", "local", "::/0", "dev", "lo"},
	} {
		var out []byte
		var err error
		w.within(func() { out, err = exec.Command("ip", args...).CombinedOutput() })
		need(t, fmt.Sprintf("ip %v %s", args, out), err)
	}
	w.name(zone)
	return w
}

// name starts the DNS server that resolves all names, and writes the files that name it.
func (w *world) name(zone dnsrig.Zone) {
	w.t.Helper()
	dir := w.t.TempDir()
	w.hosts, w.resolv = filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	write(w.t, w.hosts, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
	write(w.t, w.resolv, "nameserver "+nameserver+"\n")
	w.within(func() {
		conn, err := net.ListenPacket("udp", nameserver+":53")
		if err != nil {
			w.t.Error(err)
			return
		}
		dnsrig.Serve(w.t, conn, zone)
	})
}

// within runs f on a thread of this network, and waits for it. It does nothing after the end
// of the test.
func (w *world) within(f func()) {
	done := make(chan struct{})
	select {
	case w.do <- func() { f(); close(done) }:
		<-done
	case <-w.over:
	}
}

// listen answers every request to a port, at any address, with 200, and records the address.
func (w *world) listen(port int) {
	w.t.Helper()
	w.within(func() {
		l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
		if err != nil {
			w.t.Error(err)
			return
		}
		serveRaw(w.t, &noting{l, w}, talks("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	})
}

// noting records the local addresses of its connections.
type noting struct {
	net.Listener
	w *world
}

func (n *noting) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	to := c.LocalAddr().(*net.TCPAddr).AddrPort()
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.seen = append(n.w.seen, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	return c, nil
}

// connected returns the addresses of connections since its last call, each once, and the
// number of connections.
func (w *world) connected() (to []string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.seen {
		to = append(to, a.String())
	}
	n, w.seen = len(w.seen), nil
	slices.Sort(to)
	return slices.Compact(to), n
}

// command returns a command line that runs in this world.
func (w *world) command(c command) command {
	const script = `mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"`
	c.args = append([]string{"--net=" + w.path, "unshare", "-m", "sh", "-c", script, "sh", w.hosts, w.resolv, binary}, c.args...)
	c.name = "nsenter"
	return c
}

// start starts a gateway in this world, and forwards requests from outside to its port.
func (w *world) start(g *gateway) {
	w.t.Helper()
	g.process = spawn(w.t, w.command(g.command("start")))
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", g.port))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			go w.forward(c, g.port)
		}
	}()
	g.awaitReady()
}

func (w *world) forward(c net.Conn, port int) {
	defer c.Close()
	var inner net.Conn
	err := net.ErrClosed
	w.within(func() {
		inner, err = new(net.Dialer).DialContext(context.Background(), "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	})
	if err != nil {
		return
	}
	defer inner.Close()
	go func() {
		_, _ = io.Copy(inner, c)
		inner.Close()
	}()
	_, _ = io.Copy(c, inner)
}

// TestWorld: the world records each dialled address, and no other.
func TestWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(string, int) []string { return []string{"192.0.2.7"} })
	w.listen(8080)
	for _, to := range []string{"8.8.8.8", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "2001:db8::1"} {
		to = net.JoinHostPort(to, "8080")
		w.within(func() {
			c, err := net.Dial("tcp", to)
			if err != nil {
				t.Errorf("dial %s: %v", to, err)
				return
			}
			c.Close()
		})
		wait.For(t, 5*time.Second, "a connection to "+to+" is seen", func() bool {
			seen, _ := w.connected()
			return slices.Equal(seen, []string{to})
		})
	}
}
