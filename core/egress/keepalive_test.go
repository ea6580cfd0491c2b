package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventgateway/gateway/core"
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
// next write.
type spy struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
	broken atomic.Bool
}

func (s *spy) Write(b []byte) (int, error) {
	if s.broken.Load() {
		return 0, errors.New("broken pipe")
	}
	return s.Conn.Write(b)
}

func (s *spy) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// spyOn returns a client and a channel of the connections that it makes.
func spyOn(t *testing.T) (*Client, chan *spy) {
	client, spies := newClient(t), make(chan *spy, 10)
	client.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := client.dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s := &spy{Conn: conn, closed: make(chan struct{})}
		spies <- s
		return s, nil
	}
	return client, spies
}

func TestConnectionsAreReused(t *testing.T) {
	client, spies := spyOn(t)
	for _, body := range []string{"", "thanks"} {
		s := newSender(t, client, Target{URL: serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })})
		for range 5 {
			send(t, s, taken("J", "{}"))
		}
		if n := len(spies); n != 1 {
			t.Errorf("5 deliveries with a reply of %q took %d connections, want 1", body, n)
		}
		<-spies
	}
}

// TestConnectionClosedBetweenDeliveries: a delivery succeeds although the handler closed the
// connection after the delivery before.
func TestConnectionClosedBetweenDeliveries(t *testing.T) {
	client, spies := spyOn(t)
	url := serveRaw(t, say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) // and closes
	s := newSender(t, client, Target{URL: url})
	for n := range 5 {
		if got := send(t, s, taken("J", "{}")); !got.OK {
			t.Errorf("Send() number %d = %+v, want it delivered", n, got)
		}
		<-(<-spies).closed
	}
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
		for _, payload := range []string{"{}", ""} {
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
