package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient makes a client that may talk to the test's own servers.
func newClient(t testing.TB) *Client {
	c := New(Options{AllowPrivate: true, Concurrency: 4, Version: "1.2.3"})
	t.Cleanup(c.Close)
	return c
}

func newSender(t testing.TB, c *Client, target Target) worker.Sender {
	t.Helper()
	s, err := c.HTTP(target)
	if err != nil {
		t.Fatalf("HTTP(%+v) = %v", target, err)
	}
	return s
}

func taken(id core.ID, payload string) core.TakenJob {
	return core.TakenJob{
		Job: core.Job{ID: id, EventID: "01HZY8Q4000000000000000EVT", Attempt: 2, MaxAttempts: 5},
		Event: core.Event{
			ID: "01HZY8Q4000000000000000EVT", Source: "shop", Type: "order.created",
			Payload: []byte(payload), ContentType: "application/json",
			CreatedAt: time.UnixMilli(1_718_000_000_120).UTC(),
		},
	}
}

// send makes one attempt with a deadline that is far away.
func send(t testing.TB, s worker.Sender, job core.TakenJob) worker.Reply {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.Send(ctx, job)
}

func serve(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveRaw runs talk for every connection, after the request's headers have come
// in, and closes it when talk returns.
func serveRaw(t testing.TB, talk func(net.Conn)) string {
	return "http://" + accept(t, func(conn net.Conn) {
		if hear(conn) {
			talk(conn)
		}
	})
}

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// hear reads one request.
func hear(conn net.Conn) bool {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// payloads are small enough for a direct, and too large.
var payloads = map[string]string{"direct": "{}", "net/http": `{"filler": "` + strings.Repeat("x", maxDirect) + `"}`}

func say(texts ...string) func(net.Conn) {
	return func(conn net.Conn) {
		for _, text := range texts {
			io.WriteString(conn, text)
		}
	}
}

// untilClosed writes text again and again until the client has closed the connection.
func untilClosed(text string) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

// drip is untilClosed with a pause before each text.
func drip(text string) func(net.Conn) {
	return func(conn net.Conn) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}
