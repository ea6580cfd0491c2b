//go:build linux

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	proxyAddress = "127.0.0.3"

	behindProxy   = "198.51.100.7" // the victim, as the proxy names it
	attackerNamed = "203.0.113.9"
)

// TestAttackThroughProxy: attacker and victim come from the address of one proxy. The gateway
// counts each by the address that the proxy names.
func TestAttackThroughProxy(t *testing.T) {
	for _, tt := range []struct{ name, server string }{
		{"any proxy", "  trust_proxy: true"},
		{"a listed proxy", "  trust_proxy: true\n  trusted_proxies: [" + proxyAddress + "]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, c := besiege(t, tt.server)
			g.forgetPeak()
			at := attackWith(t, g.attacker(proxyAddress, "X-Forwarded-For", attackerNamed), halfBodies, slowChunks, parkedPolls, forgeries)
			v := newVictim(t, g, g.loopback(proxyAddress, "X-Forwarded-For", behindProxy))
			v.endure(c, attackTime(t, attackShort, 0.5))
			at.log(t)
		})
	}
}

// TestAttackBesideProxy: an attacker claims to be the victim's address, and is no trusted
// proxy. It does not keep the victim behind the proxy from the gateway.
func TestAttackBesideProxy(t *testing.T) {
	g, c := besiege(t, "  trust_proxy: true\n  trusted_proxies: ["+proxyAddress+"]")
	g.forgetPeak()
	at := attackWith(t, g.attacker(attackerAddress, "X-Forwarded-For", behindProxy), halfBodies, parkedPolls, idle)
	v := newVictim(t, g, g.loopback(proxyAddress, "X-Forwarded-For", behindProxy))
	v.endure(c, attackTime(t, attackShort, 0.5))
	at.log(t)
}

// TestBurstOfConnections: a proxy holds 1,000 connections open at once, each for another
// client. The gateway serves each client.
func TestBurstOfConnections(t *testing.T) {
	const connections, atOnce = 1000, 16
	g, _ := besiege(t, "  trust_proxy: true")
	proxy := g.loopback(proxyAddress)
	var (
		work = make(chan int)
		open = make(chan net.Conn, connections)
		all  sync.WaitGroup
	)
	t.Cleanup(func() {
		close(open)
		for c := range open {
			c.Close()
		}
	})
	for range atOnce {
		all.Go(func() {
			for i := range work {
				c, err := proxy.postKept(fmt.Sprintf("198.51.%d.%d", i/250, i%250+1), i)
				if err != nil {
					t.Errorf("connection %d of the proxy: %v", i+1, err)
				}
				if c != nil {
					open <- c
				}
			}
		})
	}
	for i := range connections {
		work <- i
	}
	close(work)
	all.Wait()
	if t.Logf("the proxy has %d connections open", len(open)); !g.healthy() {
		t.Error("/health does not answer 200 beside the proxy's connections")
	}
}

// postKept posts an event for a client on a new connection, which stays open.
func (s side) postKept(client string, i int) (net.Conn, error) {
	c, err := s.dial(context.Background())
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"n":%d}`, i)
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	headers := append(bearer(attackToken), "X-Forwarded-For", client, "Content-Length", fmt.Sprint(len(body)))
	if _, err := io.WriteString(c, s.head("POST", "/events/app/order.created", headers...)+"\r\n"+body); err != nil {
		return c, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return c, err
	}
	if resp.StatusCode != http.StatusAccepted || resp.Close {
		return c, fmt.Errorf("the answer is %s, and the gateway closes the connection: %v; want 202 and that it stays open", resp.Status, resp.Close)
	}
	return c, nil
}
