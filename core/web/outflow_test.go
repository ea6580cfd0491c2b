package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/web"
)

// A stuck client reads nothing, like a connection with full buffers. A write to it returns
// when the test lets the client go, or at the write deadline.
type stuck struct {
	header   http.Header
	address  string
	status   int
	written  int
	bytes    int // that it reads each second; 0 means none
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

// request has a stuck client send a request, on a goroutine of its own.
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

// Every reply whose size is not a constant counts against the budget. Many clients at one
// address that read nothing leave room for another address. All bytes come back when the
// gateway has cut the clients off. A short run asks for every third of the replies.
func TestUnreadReplies(t *testing.T) {
	for i, path := range []string{
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
		if testing.Short() && i%3 > 0 {
			continue
		}
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

// The budget holds for any number of addresses, and a further address still gets bytes.
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

// All addresses of an IPv6 network of /64 have the bytes of one client.
func TestUnreadRepliesOfOneNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := largeWorld(t)
		h, counts := w.handler(), w.settings.Counts
		for i := range 50 {
			(&stuck{address: fmt.Sprintf("[2001:db8:0:1::%x]", i+1)}).request(t, h, "/api/queues/work/messages?batch=100")
		}
		synctest.Wait()
		if n := counts.Unwritten(); n > web.MaxUnwritten/4 {
			t.Errorf("%d bytes are taken by one network, want at most %d", n, web.MaxUnwritten/4)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// A client that reads nothing is cut off soon. A slow client gets its reply. A client that
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

// A refusal names the limit and the time after which the client may retry.
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

// While the gateway reads from the database for a reply, the budget has the bytes that the
// reply may need, also where a single event is larger than a page.
func TestLargeEventsAreReserved(t *testing.T) {
	const most = 20 << 20
	for path, want := range map[string]int{
		"/api/queues/work/peek?limit=100":            most,
		"/api/queues/work/dlq?limit=100":             most,
		"/api/events/" + string(eventNumber(1)):      most,
		"/api/export/events?limit=20":                most,
		"/api/tail":                                  4 << 20,
		"/api/events?match=$.n%20%3E%200":            most,         // a search reads payloads
		"/api/workflow-runs/" + string(runNumber(1)): most + 8<<20, // the event, and twice a page of states
	} {
		w := newWorld(t)
		w.settings.Counts, w.settings.MaxBodySize = &web.Counts{}, most
		reserved := 0
		w.store.asked = func() { reserved = max(reserved, w.settings.Counts.Unwritten()) }
		if got := ask(w.handler(), "GET", path, ""); got.Code != 200 {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
		if reserved < want {
			t.Errorf("%s: %d bytes are reserved while the store is asked, want at least %d", path, reserved, want)
		}
	}
}

// A page of attempts, each with as much as an attempt can keep, fits in the bytes that are reserved for
// it, together with its text.
func TestAttemptsAreReserved(t *testing.T) {
	full := core.Attempt{Number: 1, StatusCode: 500, Error: strings.Repeat("e", 512), Response: strings.Repeat("r", 4<<10), StartedAt: noon, Exchange: &core.Exchange{
		Method: "POST", URL: strings.Repeat("u", core.MaxSentURL), Headers: map[string]string{}, ReplyHeaders: map[string]string{}, BodySHA256: strings.Repeat("0", 64),
	}}
	for i := range core.MaxHeaders / core.MaxHeaderValue {
		name := fmt.Sprint("X-", i)
		full.Exchange.Headers[name], full.Exchange.ReplyHeaders[name] = strings.Repeat("v", core.MaxHeaderValue), strings.Repeat("v", core.MaxHeaderValue)
	}
	for _, path := range []string{"/api/jobs/" + string(jobNumber(1)) + "/attempts", "/api/jobs/" + string(jobNumber(1)) + "?include_attempts=true"} {
		w := newWorld(t)
		w.settings.Counts, w.archive.tries = &web.Counts{}, slices.Repeat([]core.Attempt{full}, manage.AttemptPage)
		reserved := 0
		w.store.asked = func() { reserved = max(reserved, w.settings.Counts.Unwritten()) }
		got := ask(w.handler(), "GET", path, "")
		if got.Code != 200 || got.Body.Len() < manage.AttemptPage*(14<<10) {
			t.Fatalf("%s: %d, %d bytes, want a full page", path, got.Code, got.Body.Len())
		}
		if reserved < 2*got.Body.Len() { // the attempts, and their text
			t.Errorf("%s: %d bytes are reserved for a reply of %d, which is made of as many", path, reserved, got.Body.Len())
		}
	}
}

// A listing of events reads no payloads. So it is not charged as a search is, which is.
func TestListingsAreCheaperThanSearches(t *testing.T) {
	reserved := map[string]int{}
	for _, path := range []string{"/api/events", "/api/events?match=$.n%20%3E%200"} {
		w := newWorld(t)
		w.settings.Counts = &web.Counts{}
		w.store.asked = func() { reserved[path] = w.settings.Counts.Unwritten() }
		if got := ask(w.handler(), "GET", path, ""); got.Code != 200 {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	listing, search := reserved["/api/events"], reserved["/api/events?match=$.n%20%3E%200"]
	if listing == 0 || search < core.MaxRead || search <= listing {
		t.Errorf("%d bytes are reserved for a listing, and %d for a search; want at least %d for a search, and less for a listing", listing, search, core.MaxRead)
	}
}

// A poll that must not wait is refused at once while queries for the same address have the
// bytes, however long the queries take.
func TestPollBesideQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := largeWorld(t)
		w.counter.payload = []byte(`"` + strings.Repeat("x", 4*large) + `"`)
		h, slow := w.handler(), make(chan struct{})
		w.store.asked = func() { <-slow }
		for range 30 {
			(&stuck{address: "192.0.2.66", bytes: 1 << 30}).request(t, h, "/api/queues/work/peek?limit=100")
		}
		synctest.Wait()
		w.store.asked = nil
		r := httptest.NewRequest("GET", "/api/queues/work/messages", nil)
		r.RemoteAddr = "192.0.2.66:1"
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if got.Code != 503 {
			t.Errorf("a poll beside 30 queries: %d %.100s, want 503", got.Code, got.Body)
		}
		w.counter.payload = []byte("1") // the replies themselves take no time
		close(slow)
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}

// Over a real connection a client that reads nothing is cut off as well, although the kernel
// buffers the beginning of the reply. The bytes of the rest come back.
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
