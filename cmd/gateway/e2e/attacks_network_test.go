//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eventgateway/gateway/infra/test/wait"
)

const (
	attackerNetwork = "2001:db8:bad:1::/64"
	victimHost      = "2001:db8:900d:1::7"
)

// TestAttackByANetwork: an attacker may have a whole IPv6 network of 64 bits, as each home
// has, and use another address of it for each connection. It counts as one address.
func TestAttackByANetwork(t *testing.T) {
	attackable(t)
	w := newWorld(t, func(string, int) []string { return nil })
	g := besiegeable(t, "")
	g.env = append(g.env, "HOST=::")
	c := newMemoryCage(t)
	g.process = spawn(t, w.command(g.command("start")))
	c.hold(g.process)
	v := newVictim(t, g, w.side(g, 2, func() netip.Addr { return netip.MustParseAddr(victimHost) }, anyAddress))
	wait.For(t, 30*time.Second, "gateway ready", func() bool {
		a, err := fetch(v.fresh, request{method: "GET", url: g.url("/health")})
		return err == nil && a.status == 200
	})
	g.forgetPeak()
	at := attackWith(t, w.side(g, 8, func() netip.Addr { return anyOf(attackerNetwork) }, anyAddress, narrow),
		halfBodies, slowChunks, parkedPolls, idle)
	v.endure(c, attackTime(t, attackShort, 0.5))
	at.log(t)
}

// side is a side in this world. It connects from the addresses that from returns, with
// sockets that all functions of set have set up. It makes at most threads connections at
// once.
func (w *world) side(g *gateway, threads int, from func() netip.Addr, set ...control) side {
	w.t.Helper()
	do := make(chan func())
	w.t.Cleanup(func() { close(do) })
	for range threads {
		joined := make(chan error)
		go w.join(do, joined)
		if err := <-joined; err != nil {
			w.t.Fatalf("join the network of the gateway: %v", err)
		}
	}
	to := fmt.Sprintf("[::1]:%d", g.port)
	return side{dial: func(ctx context.Context) (c net.Conn, err error) {
		done := make(chan struct{})
		select {
		case do <- func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from().AsSlice()}, Timeout: dialTimeout, Control: each(set)}
			c, err = d.DialContext(ctx, "tcp6", to)
			close(done)
		}:
			<-done
			return c, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// join runs functions on a thread of its own, whose sockets are this world's.
func (w *world) join(do <-chan func(), joined chan<- error) {
	runtime.LockOSThread() // for ever: the thread ends with the goroutine
	network, err := os.Open(w.path)
	if err == nil {
		err = errors.Join(unix.Setns(int(network.Fd()), syscall.CLONE_NEWNET), network.Close())
	}
	joined <- err
	for f := range do {
		f()
	}
}

// A control sets up a socket before it connects; see [net.Dialer].
type control = func(network, address string, c syscall.RawConn) error

func each(all []control) control {
	return func(network, address string, c syscall.RawConn) error {
		for _, set := range all {
			if err := set(network, address, c); err != nil {
				return err
			}
		}
		return nil
	}
}

// anyAddress lets a socket have an address that no interface has. In a world all addresses
// lead to this machine, so answers to such an address arrive.
func anyAddress(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1) })
	return errors.Join(failed, err)
}
