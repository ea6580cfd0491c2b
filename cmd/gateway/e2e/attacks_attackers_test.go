//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A side is one of the two parties of an attack: the network address that its connections
// come from, and the headers that a proxy in front of it adds.
type side struct {
	dial    func(context.Context) (net.Conn, error)
	headers []string // name, value, name, value
}

// loopback is a side on this machine, at an address of 127.0.0.0/8.
func (g *gateway) loopback(address string, headers ...string) side {
	return g.sideOf(net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}, headers)
}

// attacker is loopback for an attacker. The kernel buffers as little as it can of the
// gateway's replies until the attacker reads.
func (g *gateway) attacker(address string, headers ...string) side {
	return g.sideOf(net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Control: narrow}, headers)
}

func (g *gateway) sideOf(d net.Dialer, headers []string) side {
	d.Timeout = dialTimeout
	to := fmt.Sprintf("127.0.0.1:%d", g.port)
	return side{headers: headers, dial: func(ctx context.Context) (net.Conn, error) {
		return d.DialContext(ctx, "tcp4", to)
	}}
}

// narrow makes a socket that is about to connect look as if it were on another machine, and
// slow: with segments of an Ethernet, and the smallest receive buffer. The segments of a
// loopback are so large that the kernel would otherwise buffer the first megabytes of each
// reply of the gateway.
func narrow(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) {
		err = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1), // the kernel rounds it up
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1400),
		)
	})
	return errors.Join(failed, err)
}

// dialTimeout bounds how long an attacker waits for a connection. A gateway with as many
// connections as it accepts leaves further ones in the kernel's queue.
const dialTimeout = 2 * time.Second

// head is the head of a request of this side, without the empty line at its end.
func (s side) head(method, path string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: gateway\r\n", method, path)
	for _, list := range [][]string{s.headers, headers} {
		for i := 0; i+1 < len(list); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", list[i], list[i+1])
		}
	}
	return b.String()
}

// An attack is a number of connections that all do the same, again and again.
type attack struct {
	name        string
	connections int

	// act misuses one connection until ctx ends or the connection is useless. It calls
	// standing once the connection has its effect.
	act func(ctx context.Context, c net.Conn, from side, standing func())
}

// The attacks. They take slots of server.max_inbound, connections, the budget of polls, or
// memory.
var (
	idle = attack{"idle connections", 4096, func(_ context.Context, c net.Conn, from side, standing func()) {
		// A connection without a request must send its headers soon. After a request it may
		// be idle for longer.
		say(c, from.head("GET", "/health")+"\r\n")
		standing()
		drain(c)
	}}
	halfBodies = attack{"half bodies", 100, func(_ context.Context, c net.Conn, from side, standing func()) {
		path := []string{"/callback/x", "/webhooks/shop"}[rand.N(2)]
		say(c, from.head("POST", path, "Content-Length", "100")+"\r\n{")
		standing()
		drain(c)
	}}
	slowHeaders = attack{"slow headers", 500, func(ctx context.Context, c net.Conn, from side, standing func()) {
		say(c, from.head("POST", "/webhooks/shop")+"X-Slow: ")
		standing()
		trickle(ctx, c, "x")
	}}
	slowChunks = attack{"slow chunks", 150, func(ctx context.Context, c net.Conn, from side, standing func()) {
		say(c, from.head("POST", "/webhooks/shop", "Transfer-Encoding", "chunked")+"\r\n")
		standing()
		trickle(ctx, c, "1\r\nx\r\n")
	}}
	pipelines = attack{"pipelines without a reader", 100, func(ctx context.Context, c net.Conn, from side, standing func()) {
		one := from.head("GET", "/health") + "\r\n" + from.head("GET", "/openapi.json", bearer(attackToken)...) + "\r\n"
		say(c, strings.Repeat(one, 20)) // the replies have more than a megabyte
		standing()
		hold(ctx)
	}}
	// The gateway serves fewer polls at once, so that none would be left for the victim.
	parkedPolls = attack{"parked polls", maxPolls + 100, func(_ context.Context, c net.Conn, from side, standing func()) {
		say(c, from.head("GET", "/api/queues/parked/messages?wait=30s")+"\r\n")
		standing()
		drain(c)
	}}
	forgeries = attack{"forged webhooks", 4, func(ctx context.Context, c net.Conn, from side, standing func()) {
		go drain(c)
		standing()
		for ctx.Err() == nil && say(c, from.head("POST", "/webhooks/shop", "X-Webhook-Signature", strings.Repeat("0", 64), "Content-Length", "2")+"\r\n{}") {
			pause(ctx, 20*time.Millisecond)
		}
	}}
	unreadPolls   = unread("polls", "/api/queues/large/messages?batch=100&wait=30s", attackerKey)
	unreadPeeks   = unread("peeks", "/api/queues/large/peek?limit=100", attackToken)
	unreadDead    = unread("dead letters", "/api/queues/dead/dlq?limit=100", attackToken)
	unreadExports = unread("exports", "/api/export/events?source=large&limit=1000", attackToken)
)

// unread is an attack by clients that ask for large replies and read none of them.
func unread(name, path, key string) attack {
	return attack{"unread " + name, 110, func(ctx context.Context, c net.Conn, from side, standing func()) {
		say(c, from.head("GET", path, bearer(key)...)+"\r\n")
		standing()
		hold(ctx)
	}}
}

// say writes a text within a second, and reports whether the whole text was written.
func say(c net.Conn, text string) bool {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := io.WriteString(c, text)
	return err == nil
}

// drain reads until the gateway or the test closes the connection.
func drain(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// trickle writes a little each second until the gateway closes the connection.
func trickle(ctx context.Context, c net.Conn, text string) {
	go drain(c)
	for pause(ctx, time.Second); ctx.Err() == nil && say(c, text); {
		pause(ctx, time.Second)
	}
}

// hold keeps a connection for 5 s to 25 s. It does not read, and so does not see the end of
// the connection.
func hold(ctx context.Context) { pause(ctx, 5*time.Second+rand.N(20*time.Second)) }

// Attackers carry out attacks until the test ends.
type attackers struct {
	ctx     context.Context
	dialing chan struct{} // holds a value for each connection that is being made
	members sync.WaitGroup
	opened  atomic.Int64 // connections in all
	failed  atomic.Int64 // connections that could not be made

	mu   sync.Mutex
	next time.Time // of the next connection that replaces an earlier one
}

const (
	// rejoin is the interval between two connections of attackers that replace earlier ones.
	// An attacker could make more, but on two processors the test would then measure itself.
	rejoin = 2 * time.Millisecond

	dialers  = 32
	standsIn = 6 * time.Second        // within this time an attack must be standing, as far as it can be
	settles  = 250 * time.Millisecond // until the gateway has read the attackers' requests
)

// attackWith begins the attacks from one side. It returns when each of their connections has
// its effect or is refused.
func attackWith(t *testing.T, from side, attacks ...attack) *attackers {
	t.Helper()
	return attackFrom(t, []side{from}, attacks...)
}

// attackFrom is attackWith for several sides, which share the connections of each attack.
func attackFrom(t *testing.T, sides []side, attacks ...attack) *attackers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	at := &attackers{ctx: ctx, dialing: make(chan struct{}, dialers)}
	t.Cleanup(func() {
		cancel()
		at.members.Wait()
	})
	var standing sync.WaitGroup
	for _, a := range attacks {
		standing.Add(a.connections)
		for i := range a.connections {
			from := sides[i%len(sides)]
			at.members.Go(func() { at.carryOut(a, from, standing.Done) })
		}
	}
	all := make(chan struct{})
	go func() { standing.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(standsIn):
	}
	<-time.After(settles)
	return at
}

// carryOut makes one connection of an attack, and then the connections that replace it.
func (at *attackers) carryOut(a attack, from side, standing func()) {
	once := sync.OnceFunc(standing)
	for first := true; at.ctx.Err() == nil; first = false {
		if !first {
			pause(at.ctx, time.Second)
			pause(at.ctx, at.turn())
		}
		at.connect(a, from, once)
		once()
	}
}

// connect makes one connection and uses it up.
func (at *attackers) connect(a attack, from side, standing func()) {
	select {
	case at.dialing <- struct{}{}:
	case <-at.ctx.Done():
		return
	}
	c, err := from.dial(at.ctx)
	<-at.dialing
	if err != nil {
		at.failed.Add(1)
		return
	}
	at.opened.Add(1)
	defer c.Close()
	defer context.AfterFunc(at.ctx, func() { c.Close() })()
	a.act(at.ctx, c, from, standing)
}

// turn is how long to wait before the next connection that replaces an earlier one.
func (at *attackers) turn() time.Duration {
	at.mu.Lock()
	defer at.mu.Unlock()
	now := time.Now()
	at.next = at.next.Add(rejoin)
	if at.next.Before(now) {
		at.next = now
	}
	return at.next.Sub(now)
}

// anyOf is a random address of an IPv6 network of 64 bits.
func anyOf(network string) netip.Addr {
	a := netip.MustParsePrefix(network).Addr().As16()
	for i := 8; i < 16; i++ {
		a[i] = byte(rand.N(255) + 1)
	}
	return netip.AddrFrom16(a)
}
