//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	hangingPolls   = 110
	unreadMessages = 200
	unreadSize     = 1<<20 - 100

	// Containers of the compose files have 512 MiB, and the garbage collector limits the heap
	// to 384 MiB.
	unreadMemory = 384 << 20
)

// TestUnreadReplies: consumers that receive large messages and read none of them do not fill
// the memory. A consumer at another address gets messages meanwhile.
func TestUnreadReplies(t *testing.T) {
	for _, tt := range []struct {
		name string
		on   func(testing.TB) *store
	}{{"SQLite", ownFile}, {"PostgreSQL", onPostgres}} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGatewayOn(t, tt.on(t), pollConfig, nil)
			g.start()
			payload := `{"a":"` + strings.Repeat("x", unreadSize-8) + `"}`
			for range unreadMessages {
				g.send("/events/mail.sent", payload)
			}
			for range hangingPolls {
				c := dialFrom(t, "127.0.0.66", g)
				fmt.Fprintf(c, "GET /api/queues/mail/messages?batch=100&wait=20s HTTP/1.1\r\nHost: gateway\r\n\r\n")
			}
			began, n := time.Now(), 0
			for n = 0; n < 20; {
				n += receiveFrom(t, "127.0.0.7", g)
			}
			peak := g.memory("VmHWM")
			t.Logf("%d messages of 1 MiB received beside %d unread replies in %v; at most %d MiB resident", n, hangingPolls, time.Since(began).Round(time.Millisecond), peak>>20)
			if peak > unreadMemory {
				t.Errorf("the gateway had %d MiB, want at most %d", peak>>20, unreadMemory>>20)
			}
			if !g.healthy() {
				t.Error("/health does not answer 200 beside unread replies")
			}
		})
	}
}

// dialFrom connects from a loopback address.
func dialFrom(t *testing.T, from string, g *gateway) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url(""), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// receiveFrom receives up to five messages, and returns their number.
func receiveFrom(t *testing.T, from string, g *gateway) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}, Timeout: 30 * time.Second}
	r, err := c.Get(g.url("/api/queues/mail/messages?batch=5&wait=10s"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body := new(strings.Builder)
	if _, err := io.Copy(body, r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("a consumer at another address: %d, %v, want 200", r.StatusCode, err)
	}
	n := strings.Count(body.String(), `"receipt"`)
	if n == 0 {
		t.Fatal("a consumer at another address got no message")
	}
	return n
}
