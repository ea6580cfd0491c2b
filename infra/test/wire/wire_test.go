//go:build linux

package wire_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wire"
)

// echo starts a server that sends back all that it reads.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, w *wire.Wire) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a byte, and returns the error of the answer.
func ask(c net.Conn, limit time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// TestCutKeepsItsAddress: while a wire is cut, no other socket can take its address, and
// connections are refused. If one could, Mend would fail with "address already in use"
// whenever a test of another package runs at the same time.
func TestCutKeepsItsAddress(t *testing.T) {
	t.Parallel()
	w := wire.New(t, "tcp", echo(t))
	c := dial(t, w)
	if err := ask(c, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.Cut()
		if err := ask(c, 10*time.Second); err == nil {
			t.Error("a connection survives a cut")
		}
		if l, err := net.Listen("tcp", w.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
			if err == nil {
				l.Close()
			}
			t.Errorf("listen on the address of a cut wire = %v, want address already in use", err)
		}
		if _, err := net.Dial("tcp", w.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connect over a cut wire = %v, want connection refused", err)
		}
		w.Mend()
		c = dial(t, w)
		if err := ask(c, 10*time.Second); err != nil {
			t.Fatalf("after Mend: %v", err)
		}
	}
}

// TestSeverAndForget: Sever closes connections, and Forget keeps them open without answers.
// Otherwise the tests of lost connections test something else.
func TestSeverAndForget(t *testing.T) {
	t.Parallel()
	w := wire.New(t, "tcp", echo(t))
	c := dial(t, w)
	if err := ask(c, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	w.Sever()
	if err := ask(c, 10*time.Second); err == nil || errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("ask over a severed connection = %v, want a closed connection", err)
	}
	c = dial(t, w)
	if err := ask(c, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	w.Forget()
	var late net.Error
	if err := ask(c, 50*time.Millisecond); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("ask over a forgotten connection = %v, want a timeout", err)
	}
	if err := ask(dial(t, w), 10*time.Second); err != nil {
		t.Errorf("ask over a new connection: %v", err)
	}
	if n := w.Bytes(); n < 7 {
		t.Errorf("Bytes() = %d, want the bytes of four questions and three answers, 7, or more", n)
	}
}
