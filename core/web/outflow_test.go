package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core/web"
)

// A stuck client reads nothing of what it is written, as a connection whose buffers are
// full, until it is let go or the time to write has come.
type stuck struct {
	header   http.Header
	address  string
	status   int
	written  int
	bytes    int // that it reads each second; 0 none
	deadline time.Time
}

func (s *stuck) Header() http.Header                { return s.header }
func (s *stuck) WriteHeader(status int)             { s.status = status }
func (s *stuck) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }

func (s *stuck) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = 200
	}
	need := 100 * time.Hour
	if s.bytes > 0 {
		need = time.Duration(len(p)) * time.Second / time.Duration(s.bytes)
	}
	wait := time.Minute // the server's own
	if !s.deadline.IsZero() {
		wait = time.Until(s.deadline)
	}
	time.Sleep(max(0, min(need, wait))) // virtual
	if need > wait {
		return 0, fmt.Errorf("write: i/o timeout")
	}
	s.written += len(p)
	return len(p), nil
}

// request has a stuck client send a request beside the test.
func (s *stuck) request(t *testing.T, h http.Handler, path string) (ended <-chan time.Duration) {
	s.header = http.Header{}
	r, err := http.NewRequestWithContext(t.Context(), "GET", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = s.address + ":4711"
	c, began := make(chan time.Duration, 1), time.Now()
	go func() {
		defer func() { _ = recover() }() // an export that is cut off
		defer func() { c <- time.Since(began) }()
		h.ServeHTTP(s, r)
	}()
	return c
}

const large = 1 << 20

// largeWorld has messages and events of 1 MiB each.
func largeWorld(t *testing.T) *world {
	w := newWorld(t)
	w.settings.Counts = &web.Counts{}
	w.counter.payload = []byte(`"` + strings.Repeat("x", large-2) + `"`)
	w.archive.payload, w.archive.events = w.counter.payload, 1000
	return w
}

// Every reply whose size is not a constant is within the budget: many clients at one
// address that read nothing leave room for another one, and when they are cut off
// everything has come back.
func TestUnreadReplies(t *testing.T) {
	for _, path := range []string{
		"/api/queues/work/messages?batch=100",
		"/api/queues/work/messages?batch=100&wait=30s",
		"/api/queues/work/peek?limit=100",
		"/api/queues/work/dlq?limit=100",
		"/api/events/" + string(eventNumber(1)),
		"/api/export/events?limit=20",
		"/api/workflow-runs/" + string(runNumber(1)),
		"/api/tail",
		"/api/jobs",
		"/api/events",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := largeWorld(t)
				w.settings.MaxInbound = 1000
				h, counts := w.handler(), w.settings.Counts
				var ended []<-chan time.Duration
				for range 110 {
					ended = append(ended, (&stuck{address: "192.0.2.66"}).request(t, h, path))
				}
				synctest.Wait()
				if n := counts.Unwritten(); n == 0 || n > web.MaxUnwritten/4 {
					t.Errorf("%d bytes of the budget are taken by 110 requests of one address, want at most %d", n, web.MaxUnwritten/4)
				}
				other := &stuck{address: "192.0.2.7", bytes: 100 << 20}
				if took := <-other.request(t, h, path); other.status != 200 || took > 10*time.Second {
					t.Errorf("a client at another address: %d after %v, want 200 at once", other.status, took)
				}
				for _, c := range ended {
					<-c
				}
				if n := counts.Unwritten(); n != 0 {
					t.Errorf("%d bytes are taken when all requests have ended", n)
				}
			})
		})
	}
}

// However many addresses there are, the whole budget holds, and another one gets something.
func TestUnreadRepliesOfManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := largeWorld(t)
		h, counts := w.handler(), w.settings.Counts
		for i := range 8 {
			for range 10 {
				(&stuck{address: fmt.Sprintf("[2001:db8:0:%x::1]", i)}).request(t, h, "/api/queues/work/messages?batch=100")
			}
		}
		synctest.Wait()
		if n := counts.Unwritten(); n > web.MaxUnwritten {
			t.Errorf("%d bytes are taken, want at most %d", n, web.MaxUnwritten)
		}
		other := &stuck{address: "192.0.2.7", bytes: 100 << 20}
		if <-other.request(t, h, "/api/queues/work/messages?batch=100"); other.status != 200 || other.written < large {
			t.Errorf("a client at another address: %d with %d bytes, want a message", other.status, other.written)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// A client that reads nothing is cut off soon, a slow one gets its reply, and one that
// reads a little each time does not keep the memory for long.
func TestSlowReaders(t *testing.T) {
	const batch = 7
	for _, tt := range []struct {
		bytes int // a second
		all   bool
		least time.Duration
		most  time.Duration
	}{
		{0, false, 10 * time.Second, 10 * time.Second},
		{100_000, true, 70 * time.Second, 100 * time.Second},
		{7_000, false, 100 * time.Second, 160 * time.Second},
		{1_000, false, 10 * time.Second, 11 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := largeWorld(t)
			client := &stuck{address: "192.0.2.7", bytes: tt.bytes}
			took := <-client.request(t, w.handler(), fmt.Sprintf("/api/queues/work/messages?batch=%d", batch))
			if all := client.written > batch*large; all != tt.all || took < tt.least || took > tt.most {
				t.Errorf("a client that reads %d bytes a second got %d after %v, all: %v; want all: %v after %v to %v", tt.bytes, client.written, took, all, tt.all, tt.least, tt.most)
			}
		})
	}
}

// A refusal names what is the matter, and when to come back.
func TestUnreadRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := largeWorld(t)
		reasons := make(chan string, 100)
		w.settings.Refused = func(reason string) { reasons <- reason }
		h := w.handler()
		for range 30 {
			(&stuck{address: "192.0.2.66"}).request(t, h, "/api/queues/work/messages?batch=100&wait=30s")
		}
		synctest.Wait()
		r := httptest.NewRequest("GET", "/api/queues/work/messages", nil)
		r.RemoteAddr = "192.0.2.66:1"
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if got.Code != 503 || got.Header().Get("Retry-After") != "1" || !strings.Contains(got.Body.String(), "this client address") || <-reasons != "unread_address" {
			t.Errorf("a poll too many: %d %s; want 503, with the reason unread_address", got.Code, got.Body)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// Over a connection: who reads nothing is cut off, though the kernel takes over the
// beginning, and the rest is given back.
func TestUnreadReplyOverAConnection(t *testing.T) {
	w := largeWorld(t)
	l := w.serve()
	c := dial(t, l)
	fmt.Fprintf(c, "GET /api/queues/work/messages?batch=8 HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	if n := w.settings.Counts.Unwritten(); n < 5*large {
		t.Errorf("%d bytes of a reply of 7 MiB are unwritten while the client reads nothing; the kernel has the others", n)
	}
	if n, err := io.Copy(io.Discard, in); n < 7*large && err == nil {
		t.Errorf("read %d bytes, want all", n)
	}
}
