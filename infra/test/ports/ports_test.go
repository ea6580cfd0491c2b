//go:build linux

package ports_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
)

func TestMain(m *testing.M) {
	if os.Getenv(grabs) != "" {
		grab()
	}
	os.Exit(m.Run())
}

// connect returns the error of a connection to an address.
func connect(addr string) error {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// refused requires that a connection to the port is refused.
func refused(t *testing.T, p *ports.Port) {
	t.Helper()
	if err := connect(p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("connect to %s = %v, want connection refused", p.Addr(), err)
	}
}

// TestReserved: no other socket gets a reserved port. Otherwise a test's server fails to come
// back with "address already in use", whenever a test of another package runs at the same
// time.
func TestReserved(t *testing.T) {
	t.Parallel()
	p := ports.New(t)
	taken := func(when string) {
		t.Helper()
		if l, err := net.Listen("tcp", p.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
			if err == nil {
				l.Close()
			}
			t.Fatalf("%s: listen on the reserved port %d = %v, want address already in use", when, p.Number(), err)
		}
		// An outgoing connection from the port needs the port as its source.
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.Number()}}
		if c, err := from.Dial("tcp", "127.0.0.1:1"); !errors.Is(err, syscall.EADDRINUSE) {
			if err == nil {
				c.Close()
			}
			t.Fatalf("%s: connect from the reserved port %d = %v, want address already in use", when, p.Number(), err)
		}
	}
	taken("before the first listener")
	refused(t, p)
	l, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	taken("while it listens")
	// The connection stays open beyond the end of its listener, as after a cut.
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	l.Close()
	taken("after its listener")
	refused(t, p)
	if l, err = p.Listen(); err != nil {
		t.Fatalf("listen again beside an open connection of the earlier listener: %v", err)
	}
	if err := connect(p.Addr()); err != nil {
		t.Error(err)
	}
	l.Close()
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if l, err = net.Listen("tcp", p.Addr()); err != nil {
		t.Fatalf("listen after the end of the reservation: %v", err)
	}
	l.Close()
}

// TestLent: another program can listen on a lent port again and again, also after it was
// killed with open connections. Otherwise tests cannot restart a gateway or a database.
func TestLent(t *testing.T) {
	t.Parallel()
	p := ports.New(t)
	if err := p.Lend(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		refused(t, p)
		l, err := net.Listen("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		accepted.Close() // the server closes first: its side is in TIME_WAIT
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	refused(t, p)
}

// TestTwoReservations: each reservation has its own port. Otherwise two servers of one test
// get the same port.
func TestTwoReservations(t *testing.T) {
	t.Parallel()
	known := map[int]bool{}
	for range 500 {
		p := ports.New(t)
		if known[p.Number()] {
			t.Fatalf("port %d is reserved twice", p.Number())
		}
		known[p.Number()] = true
		if p.Number()%2 == 0 { // a lent port is as safe from other reservations
			if err := p.Lend(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// grabs is set in a process that takes ports.
const grabs = "GATEWAY_TEST_GRAB_PORTS"

// grab listens on ports until the process is killed: on any port, and on random ports of the
// kernel's range. It keeps each port for a moment.
func grab() {
	var held []net.Listener
	for n := 0; ; n++ {
		addr := "127.0.0.1:0"
		if n%2 == 0 {
			addr = fmt.Sprintf("127.0.0.1:%d", 32768+rand.IntN(61000-32768))
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			held = append(held, l)
		}
		if len(held) > 200 {
			held[0].Close()
			held = held[1:]
		}
		if n == 1000 {
			fmt.Println("grabbing")
		}
	}
}

// TestCutAndMend: a server goes away and comes back 200 times while another process takes
// ports as fast as it can. This is the flake of functions/e2e TestDatabaseAway: a test of
// another package took the port while the connection to the database was cut. The test runs
// alone, since the process would take the lent ports of the other tests.
func TestCutAndMend(t *testing.T) {
	grabber := exec.CommandContext(t.Context(), os.Args[0])
	grabber.Env = append(os.Environ(), grabs+"=yes")
	grabber.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := grabber.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := grabber.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = grabber.Process.Kill(), grabber.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the process that takes ports does not run: %v", err)
	}
	p := ports.New(t)
	for n := range 200 {
		l, err := p.Listen()
		if err != nil {
			t.Fatalf("listen the %dth time: %v", n+1, err)
		}
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatalf("connect the %dth time: %v", n+1, err)
		}
		l.Close()
		refused(t, p)
		c.Close()
	}
}
