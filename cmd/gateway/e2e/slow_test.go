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

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// dial opens a connection to the gateway and writes to it.
func (g *gateway) dial(text string) net.Conn {
	g.t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", g.port))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		g.t.Fatal(err)
	}
	return c
}

// TestSlowClients: a client that sends half a request does not delay others, and its
// connection is closed after a time.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, plainConfig, r)
	g.start()
	const slow = 100
	var headers, bodies []net.Conn
	for range slow {
		headers = append(headers, g.dial("POST /events/order.created HTTP/1.1\r\nHost: x\r\nX-Half: "))
	}
	began := time.Now()
	const good = 50
	for i := range good {
		g.send("/events/order.created", fmt.Sprintf(`{"n":%d}`, i))
	}
	r.Await(t, 10*time.Second, "/ok", good)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d events beside %d slow clients took %v, want at most 5s", good, slow, took)
	}
	// Half of a small body holds no slot of max_inbound, 100.
	for range slow {
		bodies = append(bodies, g.dial("POST /events/order.created HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"))
	}
	g.send("/events/order.created", `{"n":"last"}`)
	for _, c := range headers {
		checkClosed(t, c, 15*time.Second)
	}
	for _, c := range bodies {
		c.Close()
	}
	if n := len(g.events()); n != good+1 {
		t.Errorf("stored events = %d, want %d: half a request is none", n, good+1)
	}
	if !g.healthy() {
		t.Error("not healthy after slow clients")
	}
	g.stop()
}

// checkClosed requires that the gateway closes a connection, with or without an answer.
func checkClosed(t *testing.T, c net.Conn, limit time.Duration) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); kindOf(orEOF(err)) != broken {
		t.Errorf("connection with half a header: %v, want that the gateway closes it within %v", err, limit)
	}
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF // io.Copy returns nil for the end
	}
	return err
}

// TestFullHouse: requests beyond max_inbound get 503 with Retry-After, and /health still
// answers.
func TestFullHouse(t *testing.T) {
	t.Parallel()
	g := newGateway(t, plainConfig, receiver.New(t))
	g.start()
	l := openLedger(t, g.database())
	l.db.SetMaxOpenConns(1)
	if _, err := l.db.Exec(`BEGIN IMMEDIATE`); err != nil { // no process can store anything meanwhile
		t.Fatal(err)
	}
	const most = 100 // the default of server.max_inbound
	var crowd []net.Conn
	for range most {
		crowd = append(crowd, g.dial("POST /events/order.created HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"))
	}
	wait.For(t, 5*time.Second, "503 for one too many", func() bool {
		c := g.dial("POST /events/order.created HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if err := c.SetReadDeadline(time.Now().Add(1500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 500)
		n, _ := c.Read(head)
		if n == 0 { // the request has a slot
			crowd = append(crowd, c)
			return false
		}
		return strings.HasPrefix(string(head[:n]), "HTTP/1.1 503 ") && strings.Contains(string(head[:n]), "\r\nRetry-After: 1\r\n")
	})
	// /health may already say that no event can be stored.
	if status, body, err := g.health(); err != nil || status != http.StatusOK && !strings.Contains(body, `"status":"error"`) {
		t.Errorf("/health in a full house: %d %s %v, want its own answer", status, body, err)
	}
	if _, err := l.db.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	answers := map[int]int{}
	for _, c := range crowd {
		answers[statusFrom(t, c)]++
	}
	if answers[http.StatusAccepted] != most || answers[http.StatusServiceUnavailable] != len(crowd)-most {
		t.Errorf("answers to a crowd of %d = %v, want %d accepted and the others 503", len(crowd), answers, most)
	}
	if n := len(g.events()); n != most {
		t.Errorf("stored events = %d, want the %d that were accepted", n, most)
	}
	g.send("/events/order.created", `{}`)
}

// statusFrom reads the status of an answer.
func statusFrom(t *testing.T, c net.Conn) int {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var status int
	if _, err := fmt.Fscanf(c, "HTTP/1.1 %d", &status); err != nil {
		t.Errorf("read an answer: %v", err)
	}
	return status
}
