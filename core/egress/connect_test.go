package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// secureWith returns the URL of a TLS server with this configuration, whose certificate the
// client trusts. After the handshake the server only reads.
func secureWith(t *testing.T, client *Client, config *tls.Config) string {
	t.Helper()
	known := serveTLS(t, nil)
	config.Certificates = known.TLS.Certificates
	client.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	client.transport.TLSClientConfig.RootCAs.AddCert(known.Certificate())
	return "https://" + accept(t, func(conn net.Conn) { io.Copy(io.Discard, tls.Server(conn, config)) })
}

// accept runs talk for every connection, and closes it when talk returns.
func accept(t testing.TB, talk func(net.Conn)) (address string) {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); talk(conn) }()
		}
	}()
	return l.Addr().String()
}

// TestGRPCNeedsHTTP2 holds the error for servers that negotiate no protocol (ALPN), or only
// others.
func TestGRPCNeedsHTTP2(t *testing.T) {
	for name, config := range map[string]*tls.Config{
		"silent":          {},
		"silent, TLS 1.2": {MaxVersion: tls.VersionTLS12},
		"HTTP/1":          {NextProtos: []string{"http/1.1"}},
		"HTTP/1, TLS 1.2": {NextProtos: []string{"http/1.1"}, MaxVersion: tls.VersionTLS12},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t)
			url := secureWith(t, client, config)
			if err := connect(t, client, url); !errors.Is(err, ErrNoHTTP2) {
				t.Errorf("Connect() = %v, want %v", err, ErrNoHTTP2)
			}
			got := send(t, newGRPCSender(t, client, Target{URL: url}), taken("J", "{}"))
			if want := "tls: the server offers no HTTP/2, which gRPC needs"; got.Error != want {
				t.Errorf("Send() error = %q, want %q", got.Error, want)
			}
		})
	}
}

func connect(t *testing.T, client *Client, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return client.Connect(ctx, url)
}

func TestConnect(t *testing.T) {
	client := newClient(t)
	url := secureWith(t, client, &tls.Config{NextProtos: []string{"http/1.1", "h2"}})
	if err := connect(t, client, url); err != nil {
		t.Errorf("Connect() = %v, want none as HTTP/2 is offered", err)
	}
	if err := connect(t, client, "http://"+accept(t, say())); err != nil {
		t.Errorf("Connect() without TLS = %v", err)
	}
	if err := connect(t, newClient(t), url); !strings.Contains(err.Error(), "x509: ") {
		t.Errorf("Connect() = %v, want the certificate refused", err)
	}
	if err := connect(t, client, "http://"+free(t)); err == nil {
		t.Error("Connect() to nothing has no error")
	}
}

// TestGRPCHangsUp: however a receiver closes a connection, the error has the same text as over
// HTTP, and names no address of this machine.
func TestGRPCHangsUp(t *testing.T) {
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const goAway = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x07" + "\x00\x00\x00\x0b" // calm down
	hear := func(conn net.Conn) { conn.Read(make([]byte, 1000)) }
	reset := func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) }
	words := []string{"protocol: connection closed before there was an answer", "protocol: connection reset by peer", "protocol: broken pipe"}
	for name, talk := range map[string]func(net.Conn){
		"at once":           say(),
		"within a frame":    func(conn net.Conn) { say(settings[:5])(conn); hear(conn) },
		"after settings":    say(settings),
		"during the call":   func(conn net.Conn) { say(settings)(conn); hear(conn) },
		"rudely":            func(conn net.Conn) { say(settings)(conn); hear(conn); reset(conn) },
		"after a last word": func(conn net.Conn) { say(settings, goAway)(conn); hear(conn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGRPCSender(t, newClient(t), Target{URL: "http://" + accept(t, talk)})
			for range 30 { // which side notices first differs
				got := send(t, s, taken("J", "{}")).Error
				quoted := strings.Contains(got, "received prior goaway") && !strings.Contains(got, "127.0.0.1")
				if !slices.Contains(words, got) && !quoted {
					t.Fatalf("Send() error = %q, want one of %q", got, words)
				}
			}
		})
	}
}

// TestWatchedConn: errors of a watched connection name no address. A message of grpc leads back
// to the connection's error only if grpc quotes it.
func TestWatchedConn(t *testing.T) {
	var l link
	raw, err := net.Dial("tcp", accept(t, func(conn net.Conn) {
		conn.Read(make([]byte, 1))
		conn.(*net.TCPConn).SetLinger(0)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := &watchedConn{raw, &l}
	say("x")(conn)
	_, err = conn.Read(make([]byte, 1))
	if err == nil || err.Error() != "read: connection reset by peer" {
		t.Fatalf("Read() = %v, want it reset, and no addresses", err)
	}
	for message, want := range map[string]error{
		"error reading from server: " + err.Error(): err,
		err.Error():            err,
		"transport is closing": io.EOF,
		"EOF":                  io.EOF,
		"error reading server preface: http2: frame too large": nil,
		"error reading from server: EOF":                       nil, // of another connection
	} {
		if got := l.end(message); got != want {
			t.Errorf("end(%q) = %v, want %v", message, got, want)
		}
	}
	if got, want := broken(err), "connection reset by peer"; got != want {
		t.Errorf("broken(%v) = %q, want %q", err, got, want)
	}
	raw.Close()
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("Write() = %v, want it closed, and no addresses", err)
	}
}

// TestGRPCBareEOF: grpc sent a call twice, and both connections ended. The error that it returns
// then is no status, and names nothing that happened.
func TestGRPCBareEOF(t *testing.T) {
	var sent, ended progress
	sent.sent.Store(true)
	ended.sent.Store(true)
	ended.ended.Store(true)
	for name, p := range map[string]*progress{"sent": &sent, "with a status of the second connection": &ended} {
		got := fail(t.Context(), io.EOF, new(channel), p, nil, time.Now())
		if want := "protocol: connection closed before there was an answer"; got.Error != want {
			t.Errorf("%s: error %q, want %q", name, got.Error, want)
		}
	}
}
