package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/dnsrig"
	"github.com/eventgateway/gateway/infra/test/servers"
	gatewayv1 "github.com/eventgateway/gateway/proto/gateway/v1"
)

// serveH2 serves HTTP/2 in plaintext. The handler h makes the gRPC parts of the replies.
func serveH2(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// frame is a message as gRPC sends it.
func frame(compressed byte, body []byte) []byte {
	return append([]byte{compressed, byte(len(body) >> 24), byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// success is the frame of an answer.
func success(message string) []byte {
	b, _ := proto.Marshal(&gatewayv1.DeliverResponse{Success: true, Message: message})
	return frame(0, b)
}

// reply answers a call with frames and a status.
func reply(w http.ResponseWriter, status string, frames ...[]byte) {
	w.Header().Set("Content-Type", "application/grpc")
	for _, f := range frames {
		w.Write(f)
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
}

// dials counts the connections a client makes.
func dials(c *Client) *atomic.Int32 {
	var n atomic.Int32
	guard := c.dialer.ControlContext
	c.dialer.ControlContext = func(ctx context.Context, network, address string, raw syscall.RawConn) error {
		n.Add(1)
		return guard(ctx, network, address, raw)
	}
	return &n
}

// open returns the number of a client's open channels.
func open(c *Client) int {
	c.channels.Lock()
	defer c.channels.Unlock()
	return len(c.channels.open)
}

// TestGRPCDisorderlyAnswers holds the outcomes for servers that do not speak gRPC, or speak it
// wrongly.
func TestGRPCDisorderlyAnswers(t *testing.T) {
	h2 := func(h http.HandlerFunc) string { return serveH2(t, h) }
	raw := func(talk func(net.Conn)) string { return "http://" + accept(t, talk) }
	// hush waits until the client has closed the connection, so that closing resets nothing.
	hush := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, c := range map[string]struct{ url, class string }{
		"HTTP/1":                {serve(t, http.NotFound), "protocol: error reading server preface: "},
		"garbage":               {raw(func(conn net.Conn) { say("garbage, garbage")(conn); hush(conn) }), "protocol: error reading server preface: "},
		"closes at once":        {raw(say()), "protocol: "},
		"closes after settings": {raw(func(conn net.Conn) { say("\x00\x00\x00\x04\x00\x00\x00\x00\x00")(conn); conn.Read(make([]byte, 1)) }), "protocol: "},
		"TLS":                   {strings.Replace(serveTLS(t, nil).URL, "https", "http", 1), "protocol: "},
		"a page":                {h2(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>hello") }), "protocol: unexpected HTTP status code received from server: 200 (OK); transport: received unexpected content-type"},
		"404":                   {h2(http.NotFound), "protocol: unexpected HTTP status code received from server: 404 (Not Found)"},
		"401 without a word":    {h2(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }), "protocol: unexpected HTTP status code received from server: 401 (Unauthorized)"},
		"endless page": {h2(func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}), "protocol: unexpected HTTP status code"},
		"resets": {h2(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "protocol: "},
		"no status": {h2(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Write(success(""))
		}), "protocol: "},
		"odd status":     {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "fine", success("")) }), "protocol: malformed grpc-status"},
		"no answer":      {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0") }), "protocol: cardinality violation: "},
		"two answers":    {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", success(""), success("")) }), "protocol: cardinality violation: "},
		"half an answer": {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", success("hello")[:8]) }), "protocol: unexpected EOF"},
		"not a message":  {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", frame(0, []byte("\xff\xff"))) }), "protocol: failed to unmarshal"},
		"not text":       {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", frame(0, []byte("\x12\x01\xff"))) }), "protocol: failed to unmarshal"},
		"compressed":     {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", frame(1, success(""))) }), "protocol: compressed flag set"},
		"gzip": {h2(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Encoding", "gzip")
			reply(w, "0", frame(1, success("")))
		}), "protocol: "},
		"huge headers": {h2(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Filler", strings.Repeat("x", 100<<10))
			reply(w, "0", success(""))
		}), "protocol: "},
		"huge answer promised": {h2(func(w http.ResponseWriter, r *http.Request) {
			reply(w, "0", []byte("\x00\xff\xff\xff\xff"))
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), "protocol: received message larger than max"},
		"in order": {h2(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", success("")) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFailure(t, send(t, newGRPCSender(t, newClient(t), Target{URL: c.url}), taken("J", "{}")), 0, c.class)
		})
	}
}

func TestGRPCNoConnection(t *testing.T) {
	plain := strings.Replace(serve(t, http.NotFound), "http:", "https:", 1)
	for name, c := range map[string]struct{ url, class string }{
		"refused":      {"http://" + free(t), "connect: connection refused"},
		"no such name": {"http://handler.invalid", "dns: "},
		"not trusted":  {serveTLS(t, nil).URL, "tls: x509: certificate signed by unknown authority"},
		"old TLS":      {serveTLS(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).URL, "tls: "},
		"not TLS":      {plain, "tls: first record does not look like a TLS handshake"},
	} {
		client := newClient(t)
		s := newGRPCSender(t, client, Target{URL: c.url})
		for range 2 { // also when there is a failure to remember
			checkFailure(t, send(t, s, taken("J", "{}")), 0, c.class)
		}
		if n := open(client); n != 0 {
			t.Errorf("%s: %d channels are kept", name, n)
		}
	}
}

func TestGRPCBlocked(t *testing.T) {
	witness := newWitness(t)
	client := New(Options{})
	defer client.Close()
	for _, host := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "localhost", "2130706433", "0x7f.1"} {
		s, err := client.GRPC(Target{URL: "http://" + host + ":" + witness.port})
		if err != nil {
			continue // by its shape
		}
		if got := send(t, s, taken("J", "{}")); !strings.HasPrefix(got.Error, "blocked: ") {
			t.Errorf("Send() to %s = %+v, want it blocked", host, got)
		}
	}
	for _, scheme := range []string{"http", "https"} {
		s := newGRPCSender(t, newClient(t), Target{URL: scheme + "://169.254.169.254"})
		checkFailure(t, send(t, s, taken("J", "{}")), 0, "blocked: 169.254.169.254 may be a cloud's metadata service")
	}
	witness.check(t)
}

func loopbackZone(string, int) []string { return []string{"127.0.0.1"} }

// TestGRPCNames: the client's own resolver looks up a name for each connection. No name is read
// as one of grpc's URL schemes.
func TestGRPCNames(t *testing.T) {
	client := newClient(t)
	client.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no network")
	}}
	got := send(t, newGRPCSender(t, client, Target{URL: "http://handler.test"}), taken("J", "{}"))
	checkFailure(t, got, 0, "dns: ")
	if !strings.Contains(got.Error, "(handler.test)") {
		t.Errorf("Send() error = %q, want it to name the host", got.Error)
	}
	witness := newWitness(t)
	blocked := New(Options{})
	defer blocked.Close()
	blocked.dialer.Resolver = dnsrig.New(t, loopbackZone).Resolver()
	s := newGRPCSender(t, blocked, Target{URL: "http://handler.test:" + witness.port})
	for range 20 {
		checkFailure(t, send(t, s, taken("J", "{}")), 0, "blocked: ")
	}
	witness.check(t)
}

// TestGRPCNoProxy: proxies of the environment are not used.
func TestGRPCNoProxy(t *testing.T) {
	witness := newWitness(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://127.0.0.1:"+witness.port)
	}
	client := newClient(t)
	client.dialer.Resolver = dnsrig.New(t, loopbackZone).Resolver() // "localhost" would never be proxied
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(serveH2(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", success("")) }), "http://"))
	s := newGRPCSender(t, client, Target{URL: "http://handler.test:" + port})
	checkFailure(t, send(t, s, taken("J", "{}")), 0, "")
	witness.check(t)
}

func TestGRPCAddress(t *testing.T) {
	for raw, want := range map[string]struct{ address, authority string }{
		"http://example.com":        {"example.com:80", "example.com"},
		"https://example.com/":      {"example.com:443", "example.com"},
		"https://example.com:50051": {"example.com:50051", "example.com:50051"},
		"http://[::1]":              {"[::1]:80", "[::1]"},
		"http://[::1]:8080":         {"[::1]:8080", "[::1]:8080"},
	} {
		l := newGRPCSender(t, newClient(t), Target{URL: raw}).(*grpcSender).line
		if hostPort(l.url) != want.address || l.url.Host != want.authority {
			t.Errorf("%s: address %s of %s, want %s of %s", raw, hostPort(l.url), l.url.Host, want.address, want.authority)
		}
	}
}

// TestGRPCSecure: the receiver's certificate must be signed by a trusted root, and be valid for
// the host's name.
func TestGRPCSecure(t *testing.T) {
	server := serveTLS(t, nil)
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := servers.StartReceiver(servers.ReceiverOptions{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	})
	servers.Check(t, err)
	t.Cleanup(func() { _ = receiver.Stop() })
	client := newClient(t)
	checkFailure(t, send(t, newGRPCSender(t, client, Target{URL: receiver.URL()}), taken("J", "{}")), 0, "tls: x509: ")
	client.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	client.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	s := newGRPCSender(t, client, Target{URL: receiver.URL(), Headers: to(map[string]any{"message": "safe"})})
	if got := send(t, s, taken("SECURE", "{}")); !got.OK || got.Response != "safe" {
		t.Errorf("Send() = %+v", got)
	}
	plain := strings.Replace(receiver.URL(), "https", "http", 1)
	checkFailure(t, send(t, newGRPCSender(t, client, Target{URL: plain}), taken("J", "{}")), 0, "protocol: ")
	other := strings.Replace(receiver.URL(), "127.0.0.1", "localhost", 1)
	checkFailure(t, send(t, newGRPCSender(t, client, Target{URL: other}), taken("J", "{}")), 0, "tls: x509: ")
}

// TestGRPCHangs: the deadline includes connecting. The next attempt does not wait for a
// connection that hangs.
func TestGRPCHangs(t *testing.T) {
	silence := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, c := range map[string]struct {
		scheme string
		talk   func(net.Conn)
	}{
		"before HTTP/2":  {"http", silence},
		"before TLS":     {"https", silence},
		"drips":          {"http", drip("\x00")},
		"after settings": {"http", func(conn net.Conn) { say("\x00\x00\x00\x04\x00\x00\x00\x00\x00")(conn); silence(conn) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() { defer conn.Close(); c.talk(conn) }()
				}
			}()
			client := newClient(t)
			made := dials(client)
			s := newGRPCSender(t, client, Target{URL: c.scheme + "://" + l.Addr().String()})
			for attempt := range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				got := s.Send(ctx, taken("J", "{}"))
				cancel()
				if name == "drips" && strings.HasPrefix(got.Error, "protocol: ") {
					continue // nine of them are a frame that is none
				}
				checkFailure(t, got, 0, "timeout: no answer within ")
				if n := int(made.Load()); n != attempt+1 {
					t.Errorf("%d connections after %d attempts", n, attempt+1)
				}
			}
			if n := open(client); n != 0 {
				t.Errorf("%d channels are kept", n)
			}
		})
	}
}

// TestGRPCReceiverComesBack: after a failure the next call connects at once, without grpc's
// backoff.
func TestGRPCReceiverComesBack(t *testing.T) {
	receiver, err := servers.StartReceiver(servers.ReceiverOptions{})
	servers.Check(t, err)
	t.Cleanup(func() { _ = receiver.Stop() })
	client := newClient(t)
	made := dials(client)
	s := newGRPCSender(t, client, Target{URL: receiver.URL()})
	for round := range 2 {
		for range 3 {
			checkFailure(t, send(t, s, taken("J", "{}")), 0, "")
		}
		if n := made.Swap(0); n != 1 {
			t.Errorf("round %d: 3 deliveries took %d connections", round, n)
		}
		receiver.Kill()
		for range 10 {
			got := send(t, s, taken("J", "{}"))
			if strings.HasPrefix(got.Error, "protocol: ") {
				continue // the old connection's end was not seen yet
			}
			checkFailure(t, got, 0, "connect: connection refused")
		}
		if n := made.Swap(0); n < 9 {
			t.Errorf("round %d: 10 attempts made %d connections, want one each", round, n)
		}
		if err := receiver.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if err := receiver.Restart(); err != nil { // in good order
		t.Fatal(err)
	}
	got := send(t, s, taken("J", "{}"))
	if !got.OK {
		got = send(t, s, taken("J", "{}"))
	}
	checkFailure(t, got, 0, "")
}

// TestGRPCCallSentBack: a receiver that shuts down may refuse a call unread. grpc then uses
// another connection. If there is none, the refusal is the result of the attempt.
func TestGRPCCallSentBack(t *testing.T) {
	l := listen(t)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		l.Close()
		say("\x00\x00\x00\x04\x00\x00\x00\x00\x00")(conn) // SETTINGS
		io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		const headers = 1
		for head := make([]byte, 9); head[3] != headers; {
			if _, err := io.ReadFull(conn, head); err != nil {
				return
			}
			io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
		}
		say("\x00\x00\x08\x07\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00")(conn) // GOAWAY, nothing was read
		io.Copy(io.Discard, conn)
	}()
	s := newGRPCSender(t, newClient(t), Target{URL: "http://" + l.Addr().String()})
	checkFailure(t, send(t, s, taken("J", "{}")), 0, "connect: connection refused")
}

// TestGRPCConcurrentCalls: calls share a connection, and each gets its own answer.
func TestGRPCConcurrentCalls(t *testing.T) {
	const calls = 50
	var arrived sync.WaitGroup
	arrived.Add(calls)
	url := serveH2(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request gatewayv1.DeliverRequest
		if err := proto.Unmarshal(body[5:], &request); err != nil || r.Header.Get("X-Gateway-Job-Id") != request.Payload || r.Header.Get("Webhook-Id") != request.Payload {
			t.Errorf("job %s arrived with payload %s, %v", r.Header.Get("X-Gateway-Job-Id"), request.Payload, err)
		}
		arrived.Done()
		arrived.Wait() // they are all under way
		reply(w, "0", success(request.Payload))
	})
	client := newClient(t)
	made := dials(client)
	s := newGRPCSender(t, client, Target{URL: url, Secrets: []string{"s"}})
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			id := fmt.Sprintf("JOB%d", i)
			if got := send(t, s, taken(core.ID(id), id)); !got.OK || got.Response != id {
				t.Errorf("Send(%s) = %+v", id, got)
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != 1 || open(client) != 1 {
		t.Errorf("%d connections, %d channels, want one", n, open(client))
	}
}

// TestGRPCSilentConnection: a call without an answer closes its connection for new calls, since
// the connection may be dead. Other calls on the connection go on.
func TestGRPCSilentConnection(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	url := serveH2(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Gateway-Job-Id") {
		case "SILENT":
			<-r.Context().Done()
		case "SLOW":
			arrived <- true
			<-release
		}
		reply(w, "0", success(r.RemoteAddr))
	})
	client := newClient(t)
	s := newGRPCSender(t, client, Target{URL: url})
	first := send(t, s, taken("FIRST", "{}")).Response
	slow := make(chan string)
	go func() { slow <- send(t, s, taken("SLOW", "{}")).Response }()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	checkFailure(t, s.Send(ctx, taken("SILENT", "{}")), 0, "timeout: ")
	if got := send(t, s, taken("NEXT", "{}")).Response; got == first || got == "" {
		t.Errorf("the next delivery came from %q, want another connection than %q", got, first)
	}
	close(release)
	if got := <-slow; got != first {
		t.Errorf("the slow delivery was answered to %q, want %q", got, first)
	}
}

// TestGRPCCloseDuringCalls: Close lets calls under way end, and leaves no connection behind.
func TestGRPCCloseDuringCalls(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	url := serveH2(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-release
		reply(w, "0", success(""))
	})
	client := newClient(t)
	s := newGRPCSender(t, client, Target{URL: url})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { checkFailure(t, send(t, s, taken("J", "{}")), 0, "") })
	}
	for range 5 {
		<-arrived
	}
	client.Close()
	client.Close()
	close(release)
	all.Wait()
	if n := open(client); n != 0 {
		t.Errorf("%d channels are left", n)
	}
	go func() { <-arrived }()
	checkFailure(t, send(t, s, taken("LATE", "{}")), 0, "")
	if n := open(client); n != 0 {
		t.Errorf("%d channels are left by a call after Close()", n)
	}
}

// TestGRPCIdle: an idle channel is closed, and opened again by the next call.
func TestGRPCIdle(t *testing.T) {
	closed := make(chan bool)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, "0", success("")) }))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- true
		}
	}
	s.Start()
	defer s.Close()
	client := newClient(t)
	client.idle = time.Millisecond
	sender := newGRPCSender(t, client, Target{URL: s.URL})
	for range 3 {
		checkFailure(t, send(t, sender, taken("J", "{}")), 0, "")
		<-closed
		if n := open(client); n != 0 {
			t.Errorf("%d channels are open", n)
		}
	}
}

// TestGRPCLargePayload: server.max_body_size alone bounds a sent payload; grpc's own limits do
// not.
func TestGRPCLargePayload(t *testing.T) {
	url := serveH2(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		reply(w, "0", success(fmt.Sprint(n > 8<<20)))
	})
	payload := string(bytes.Repeat([]byte("x"), 8<<20))
	if got := send(t, newGRPCSender(t, newClient(t), Target{URL: url}), taken("J", payload)); got.Response != "true" {
		t.Errorf("Send() of 8 MiB = %+v", got)
	}
}
