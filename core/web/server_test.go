package web_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/web"
)

// soon is after how long the servers of these tests give up on slow clients. It is long enough for a client that
// is not slow, but on a busy machine, to send what it has.
const soon = 300 * time.Millisecond

func send(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// A server without a header timeout let silent clients hold every connection
// (hookaido #203).
func TestSlowHeaders(t *testing.T) {
	address := newWorld(t).serve(func(s *http.Server) { s.ReadHeaderTimeout = soon })
	for _, sent := range []string{"", "POST /webhooks/plain HT", "POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nX: "} {
		c := dial(t, address)
		send(t, c, sent)
		got, err := io.ReadAll(c) // until the server closes
		if err != nil || len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
			t.Errorf("after %q: %q, %v; want the connection closed", sent, got, err)
		}
		if len(got) > 0 {
			checkAlways(t, string(got))
		}
	}
}

func TestSlowBody(t *testing.T) {
	address := newWorld(t).serve(func(s *http.Server) { s.ReadTimeout = soon })
	for _, head := range []string{"Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n123"} {
		c := dial(t, address)
		send(t, c, "POST /webhooks/plain HTTP/1.1\r\nHost: x\r\n"+head)
		got, err := io.ReadAll(c) // until the server closes
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") || !strings.Contains(string(got), "\r\nConnection: close\r\n") {
			t.Errorf("%q: %q, %v; want 408 and the connection closed", head, got, err)
		}
		checkAlways(t, string(got))
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	c := dial(t, newWorld(t).serve(func(s *http.Server) { s.IdleTimeout = 30 * time.Millisecond }))
	send(t, c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
		t.Errorf("%q, %v; want a reply and the connection closed", got, err)
	}
}

func TestBodyCutShort(t *testing.T) {
	address := newWorld(t).serve()
	for _, head := range []string{"Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"} {
		c := dial(t, address)
		send(t, c, "POST /webhooks/plain HTTP/1.1\r\nHost: x\r\n"+head)
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
			t.Errorf("%q: %q, %v; want 400", head, got, err)
		}
	}
}

// The limit of headers is 16 KiB plus the slack that net/http adds.
func TestLongHeaders(t *testing.T) {
	address := newWorld(t).serve()
	for _, request := range []string{
		"POST /webhooks/" + strings.Repeat("x", 30<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 30<<10) + "\r\n\r\n",
	} {
		c := dial(t, address)
		_, _ = io.WriteString(c, request) // may fail: the server does not read it all
		got, err := readReply(c, "POST")
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 431 ") {
			t.Errorf("%.40q: %q, %v; want 431", request, got, err)
		}
		checkAlways(t, got)
	}
}

// A keep-alive connection outlives refusals whose body is small.
func TestConnectionIsKept(t *testing.T) {
	c := dial(t, newWorld(t).serve())
	for _, want := range []string{"404", "404", "404"} {
		send(t, c, "POST /webhooks/nobody HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if got, err := readReply(c, "POST"); err != nil || !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Fatalf("%q, %v; want %s", got, err, want)
		}
	}
}

// checkAlways checks for the headers of every reply.
func checkAlways(t *testing.T, reply string) {
	t.Helper()
	head, _, _ := strings.Cut(strings.ToLower(reply), "\r\n\r\n")
	for _, h := range []string{"x-content-type-options: nosniff", "x-frame-options: deny", "cache-control: no-store", "x-api-version: 1"} {
		if !strings.Contains(head+"\r\n", "\r\n"+h+"\r\n") {
			t.Errorf("no %s in %q", h, reply)
		}
	}
}

// FuzzRequest sends any bytes. The server sends nothing, or first one complete reply with the
// headers of every reply.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST /events/shop/a%2Fb HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"HEAD /nothing HTTP/1.0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=0\r\nAccept: application/json\r\nX-Forwarded-For: x\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	scripts := scriptListener(make(chan *script))
	w := newWorld(nil, "trust_proxy")
	server := web.NewServer(w.handler(), slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(web.Limit(scripts, web.Crowd{Most: 64, Each: 64})) }()
	f.Cleanup(func() { _ = server.Close() })
	f.Fuzz(func(t *testing.T, request []byte) {
		s := &script{in: bytes.NewReader(request), done: make(chan struct{})}
		scripts <- s
		<-s.done
		out := strings.TrimPrefix(s.out.String(), "HTTP/1.1 100 Continue\r\n\r\n")
		if out == "" {
			return
		}
		method, _, _ := strings.Cut(strings.TrimLeft(string(request), "\r\n"), " ")
		reply, err := readReply(strings.NewReader(out), method)
		if err != nil {
			t.Errorf("%q is answered %q: %v", request, out, err)
		}
		checkAlways(t, reply)
	})
}

// A script is the server's end of a connection whose client sends all it has and
// then nothing more. Unlike with a pipe, neither end ever waits for the other.
type script struct {
	net.Conn // nil: anything else net/http might call is a finding
	in       *bytes.Reader
	out      bytes.Buffer
	once     sync.Once
	done     chan struct{}
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) Close() error                     { s.once.Do(func() { close(s.done) }); return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9} }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

type scriptListener chan *script

func (l scriptListener) Accept() (net.Conn, error) {
	if s, ok := <-l; ok {
		return s, nil
	}
	return nil, net.ErrClosed
}

func (l scriptListener) Close() error   { close(l); return nil }
func (l scriptListener) Addr() net.Addr { return &net.TCPAddr{} }
