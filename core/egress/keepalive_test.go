package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A counter is a handler that answers all deliveries but some. It reads those, and then closes
// the connection without a reply.
type counter struct {
	mu       sync.Mutex
	requests map[string]int // by job id
	drop     string
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	id := r.Header.Get("X-Gateway-Job-Id")
	c.mu.Lock()
	c.requests[id]++
	first := c.requests[id] == 1
	c.mu.Unlock()
	if id == c.drop && first {
		panic(http.ErrAbortHandler)
	}
}

func (c *counter) of(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[id]
}

// A spy is a client's connection. It reports when it is closed, and can be made to fail at its
// next write, or in the middle of it.
type spy struct {
	net.Conn
	once        sync.Once
	closed      chan struct{}
	broken, cut atomic.Bool
}

func (s *spy) Write(b []byte) (int, error) {
	switch {
	case s.broken.Load():
		return 0, errors.New("broken pipe")
	case s.cut.Load():
		n, _ := s.Conn.Write(b[:len(b)/2])
		return n, errors.New("broken pipe")
	}
	return s.Conn.Write(b)
}

// SyscallConn implements [syscall.Conn], with which a client sees that the handler has closed.
func (s *spy) SyscallConn() (syscall.RawConn, error) { return s.Conn.(syscall.Conn).SyscallConn() }

func (s *spy) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// spyOn returns a client and a channel of the connections that it makes.
func spyOn(t *testing.T) (*Client, chan *spy) {
	client, spies := newClient(t), make(chan *spy, 10)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := client.dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s := &spy{Conn: conn, closed: make(chan struct{})}
		spies <- s
		return s, nil
	}
	client.direct.dial, client.transport.DialContext = dial, dial
	return client, spies
}

func TestConnectionsAreReused(t *testing.T) {
	client, spies := spyOn(t)
	for _, body := range []string{"", "thanks"} {
		for way, payload := range payloads {
			s := newSender(t, client, Target{URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, body)
			})})
			for range 5 {
				send(t, s, taken("J", payload))
			}
			if n := len(spies); n != 1 {
				t.Errorf("%s: 5 deliveries with a reply of %q took %d connections, want 1", way, body, n)
			}
			<-spies
		}
	}
}

// TestConnectionClosedBetweenDeliveries: a delivery succeeds although the handler closed the
// connection after the delivery before, or sent bytes on it without a request.
func TestConnectionClosedBetweenDeliveries(t *testing.T) {
	for _, c := range []struct{ way, more string }{
		{"direct", ""},
		{"direct", "HTTP/1.1 408 Request Timeout\r\n\r\n"},
		{"net/http", ""},
	} {
		client, spies := spyOn(t)
		answered := make(chan bool)
		url := serveRaw(t, func(conn net.Conn) {
			say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(conn)
			<-answered
			say(c.more)(conn)
		})
		s := newSender(t, client, Target{URL: url})
		for n := range 5 {
			if got := send(t, s, taken("J", payloads[c.way])); !got.OK {
				t.Errorf("Send() number %d = %+v, want it delivered", n, got)
			}
			answered <- true
			last := <-spies
			if c.way == "net/http" {
				<-last.closed
				continue
			}
			w := newWire(last, nil, "")
			wait.For(t, 10*time.Second, "something came, or the end", func() bool { return !w.isQuiet() })
		}
	}
}

// TestConnectionsThatAreNotReused: a connection is closed if its reply says so, is longer than
// announced, or is not read to its end.
func TestConnectionsThatAreNotReused(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, talk := range map[string]func(net.Conn){
		"closes":               say(ok, "Connection: close\r\nContent-Length: 2\r\n\r\nok"),
		"HTTP/1.0":             say("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
		"more than announced":  say(ok + "Content-Length: 2\r\n\r\nok" + ok),
		"more than is read":    say(ok, "Content-Length: 99999\r\n\r\n"+strings.Repeat("x", 99999)),
		"until the connection": say(ok, "\r\nthanks"),
		"another protocol":     say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			client, spies := spyOn(t)
			talking := make(chan bool)
			s := newSender(t, client, Target{URL: serveRaw(t, func(conn net.Conn) {
				talk(conn)
				if name != "until the connection" {
					<-talking // so it is the client that closes the connection
				}
			})})
			for n := range 2 {
				if got := send(t, s, taken("J", "{}")); got.StatusCode == 0 {
					t.Errorf("Send() number %d = %+v, want an answer", n, got)
				}
				spy := <-spies
				<-spy.closed
			}
			close(talking)
		})
	}
}

// TestDeadlineInTheBody: a connection whose deadline has passed while the body came is not used
// again, although the delivery was a success.
func TestDeadlineInTheBody(t *testing.T) {
	t.Parallel()
	client, spies := spyOn(t)
	s := newSender(t, client, Target{URL: serveRaw(t, func(conn net.Conn) {
		say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")(conn)
		io.Copy(io.Discard, conn)
	})})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a busy machine may take a part of it for the head
		defer cancel()
		if got := s.Send(ctx, taken("J", "{}")); !got.OK {
			t.Errorf("Send() = %+v, want it delivered", got)
		}
		<-(<-spies).closed
	}
}

// TestLateEnd: a reply that ends just as the deadline passes leaves no connection whose reads fail.
func TestLateEnd(t *testing.T) {
	client, spies := spyOn(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := newSender(t, client, Target{URL: serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "thanks") })}).(*httpSender)
	job := taken("J", "{}")
	resp, err := client.roundTrip(ctx, s.delivery(&job, Letter{Body: []byte("{}")}, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	io.Copy(io.Discard, resp.Body)
	<-(<-spies).closed
}

// TestSweep: an idle connection is closed if the handler has closed it, or if it was idle for
// long.
func TestSweep(t *testing.T) {
	client, spies := spyOn(t)
	closing := make(chan bool)
	url := serveRaw(t, func(conn net.Conn) {
		say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(conn)
		<-closing
	})
	isClosed := func(s *spy) bool {
		select {
		case <-s.closed:
			return true
		default:
			return false
		}
	}
	s := newSender(t, client, Target{URL: url})
	send(t, s, taken("J", "{}"))
	first := <-spies
	client.direct.sweep()
	if isClosed(first) || client.direct.sweeps == nil {
		t.Errorf("closed = %t, next sweep %v, want a connection that is kept", isClosed(first), client.direct.sweeps)
	}
	closing <- true
	wait.For(t, 10*time.Second, "a sweep closes the connection", func() bool { client.direct.sweep(); return isClosed(first) })
	if len(client.direct.idle) != 0 || client.direct.sweeps != nil {
		t.Errorf("idle = %v, next sweep %v, want none", client.direct.idle, client.direct.sweeps)
	}

	send(t, s, taken("J", "{}"))
	second := <-spies
	for _, idle := range client.direct.idle {
		if since := idle[0].since; since != since.Round(0) {
			t.Errorf("since = %v, want a time of the wall clock alone, which goes on while a function is frozen", since)
		}
		idle[0].since = idle[0].since.Add(-idleTimeout)
	}
	if client.direct.sweep(); !isClosed(second) {
		t.Error("a connection that nobody used for 90s is open")
	}
	close(closing)
}

// TestConnectionBreaksBeforeTheRequest: a delivery succeeds although its connection breaks
// before anything is written, and the handler gets it once.
func TestConnectionBreaksBeforeTheRequest(t *testing.T) {
	for _, method := range methods {
		client, spies := spyOn(t)
		handler := &counter{requests: map[string]int{}}
		s := newSender(t, client, Target{URL: serve(t, handler.ServeHTTP), Method: method})
		send(t, s, taken("FIRST", "{}"))
		(<-spies).broken.Store(true)
		if got := send(t, s, taken("SECOND", "{}")); !got.OK || handler.of("SECOND") != 1 {
			t.Errorf("%s: Send() = %+v, and the handler saw %d, want it delivered once", method, got, handler.of("SECOND"))
		}
	}
}

// TestConnectionBreaksInTheRequest: a connection breaks while the request is written. The receiver
// may have answered before. If it has not, the attempt fails, and is not made twice.
func TestConnectionBreaksInTheRequest(t *testing.T) {
	for answer, want := range map[string]string{
		"": "protocol: broken pipe",
		"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n": "status: 503 Service Unavailable",
	} {
		client, spies := spyOn(t)
		heard := make(chan int, 10)
		closing := make(chan bool)
		url := "http://" + accept(t, func(conn net.Conn) {
			hear(conn)
			say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(conn)
			n, _ := conn.Read(make([]byte, 1))
			heard <- n
			if say(answer)(conn); answer != "" {
				<-closing
			}
		})
		s := newSender(t, client, Target{URL: url})
		send(t, s, taken("FIRST", "{}"))
		first := <-spies
		first.cut.Store(true)
		got := send(t, s, taken("SECOND", "{}"))
		checkFailure(t, got, got.StatusCode, want)
		<-first.closed
		if n := len(spies); n != 0 || <-heard != 1 {
			t.Errorf("%d more connections, want none", n)
		}
		close(closing)
	}
}

// One that ends after the request was written leaves open whether the handler
// acted on it: the attempt fails, and is not made twice. Not even the header by
// which net/http tells a request that may be repeated changes that; GET does.
func TestConnectionEndsAfterTheRequest(t *testing.T) {
	for _, c := range []struct {
		method  string
		headers map[string]string
		want    int
	}{
		{"POST", nil, 1},
		{"PUT", nil, 1},
		{"PATCH", nil, 1},
		{"DELETE", nil, 1},
		{"POST", map[string]string{"Idempotency-Key": "k"}, 1},
		{"POST", map[string]string{"x-idempotency-key": "k"}, 1},
		{"GET", nil, 2},
	} {
		for _, payload := range []string{"", payloads["direct"], payloads["net/http"]} {
			handler := &counter{requests: map[string]int{}, drop: "SECOND"}
			s := newSender(t, newClient(t), Target{URL: serve(t, handler.ServeHTTP), Method: c.method, Headers: c.headers})
			send(t, s, taken("FIRST", payload))
			got := send(t, s, taken(core.ID(handler.drop), payload))
			if n := handler.of("SECOND"); n != c.want || got.OK != (c.want == 2) {
				t.Errorf("%s %v %q: Send() = %+v, and the handler saw %d, want %d", c.method, c.headers, payload, got, n, c.want)
			}
			if !got.OK {
				checkFailure(t, got, 0, "protocol: connection closed before there was an answer")
			}
		}
	}
}
