// Package receiver plays the HTTP services that the program under test calls: handlers, alerts
// and the services of workflow steps. It records each delivery before it is answered, and
// answers as a test says. Only tests import the package, and it imports nothing of this module.
//
// The idea to know: the receiver is a witness outside of the program. Its record survives the
// kills of the program. A delivery is in the record even if its answer is lost, so a test can
// tell a repeated delivery from a lost one.
//
//	r := receiver.New(t)
//	r.On("/billing", receiver.Failing(2)) // two times 500, then 200
//	...                                   // a gateway delivers to r.URL() + "/billing"
//	ds := r.Await(t, 10*time.Second, "/billing", 3)
//
// Tests that need another record than a list by path use [Serve], on which Receiver is built.
package receiver

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Delivery is a whole request, recorded before its answer.
type Delivery struct {
	Method string
	Path   string // without the query
	Query  string
	Header http.Header
	Body   string
	At     time.Time // when the whole request had arrived
}

// Event returns the id of the delivered event, or "".
func (d Delivery) Event() string { return d.Header.Get("X-Gateway-Event-Id") }

// Job returns the id of the delivered job, or "".
func (d Delivery) Job() string { return d.Header.Get("X-Gateway-Job-Id") }

// Attempt returns the number of the job's attempt, from 1. It returns 0, which no attempt has,
// if the request has none.
func (d Delivery) Attempt() int { return d.Number("X-Gateway-Attempt") }

// Number returns the number in a header, or 0.
func (d Delivery) Number(header string) int {
	n, _ := strconv.Atoi(d.Header.Get(header)) // a test of the number fails with 0
	return n
}

// Serve starts a server that calls answer for each delivery, and returns its URL. The body of
// the request can be read again. A request that breaks off before its end is no delivery:
// answer is not called. At the end of the test the server closes its connections, then waits
// for all calls of answer to return.
func Serve(t testing.TB, answer func(Delivery, http.ResponseWriter, *http.Request)) (url string) {
	t.Helper()
	s := httptest.NewServer(handler(answer))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

type handler func(Delivery, http.ResponseWriter, *http.Request)

func (answer handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		Reset(w) // net/http would answer 200, if the client still reads
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer(Delivery{r.Method, r.URL.Path, r.URL.RawQuery, r.Header, string(body), time.Now()}, w, r)
}

// A Script answers the n-th delivery to a path, counted from 1. A script that writes nothing
// answers 200. Scripts run concurrently, as deliveries do.
type Script func(n int, w http.ResponseWriter, r *http.Request)

// A Receiver is a server that records its deliveries. It answers 200, unless the path of the
// delivery has a script. Its methods are safe for concurrent use.
type Receiver struct {
	url     string
	closing chan struct{} // closed at the end of the test, when waiting scripts return

	mu         sync.Mutex // guards the fields below
	scripts    map[string]Script
	counts     map[string]int // deliveries since the script of the path was set
	deliveries []Delivery
	at         map[string]int // recorded deliveries, by path
	news       chan struct{}  // closed at the next record; nil if nothing waits for one
	tap        func(Delivery)
}

// New starts a receiver, which ends with the test.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{closing: make(chan struct{}), scripts: map[string]Script{}, counts: map[string]int{}, at: map[string]int{}}
	r.url = Serve(t, r.Answer)
	t.Cleanup(func() { close(r.closing) }) // before the server waits for the scripts
	return r
}

// URL returns the base URL, such as http://127.0.0.1:40123.
func (r *Receiver) URL() string { return r.url }

// On sets the script of a path; nil means 200. The script's count of deliveries starts again.
func (r *Receiver) On(path string, s Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[path] = s
	r.counts[path] = 0
}

// Tap passes later deliveries to a function, which keeps its own record, in place of the
// receiver's record. Scripts still answer them. Calls of the function do not overlap. The
// function must not call the receiver.
func (r *Receiver) Tap(f func(Delivery)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tap = f
}

// Answer records a delivery and answers it. It is for servers of a test that record their
// deliveries here, such as one with TLS; see [Receiver.ServeHTTP].
func (r *Receiver) Answer(d Delivery, w http.ResponseWriter, q *http.Request) {
	if s, n := r.record(d); s != nil {
		s(n, w, q)
	}
}

// ServeHTTP makes a receiver the handler of another server.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	handler(r.Answer).ServeHTTP(w, q)
}

func (r *Receiver) record(d Delivery) (Script, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tap != nil {
		r.tap(d)
	} else {
		r.deliveries = append(r.deliveries, d)
		r.at[d.Path]++
		if r.news != nil {
			close(r.news)
			r.news = nil
		}
	}
	r.counts[d.Path]++
	return r.scripts[d.Path], r.counts[d.Path]
}

// All returns the recorded deliveries so far, in order of arrival.
func (r *Receiver) All() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deliveries)
}

// At returns the recorded deliveries to a path so far, in order of arrival.
func (r *Receiver) At(path string) (at []Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.deliveries {
		if d.Path == path {
			at = append(at, d)
		}
	}
	return at
}

// Await waits for the n-th delivery to a path and returns all deliveries to it. After limit it
// ends the test.
func (r *Receiver) Await(t testing.TB, limit time.Duration, path string, n int) []Delivery {
	t.Helper()
	late := time.After(limit)
	for {
		count, news := r.await(path)
		if count >= n {
			return r.At(path)
		}
		select {
		case <-news:
		case <-late:
			if count, _ := r.await(path); count < n { // a delivery in the last moment counts
				t.Fatalf("deliveries to %s within %v = %d, want %d", path, limit, count, n)
			}
		}
	}
}

// await returns the number of recorded deliveries to a path, and a channel that is closed at the next
// record.
func (r *Receiver) await(path string) (count int, news <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.news == nil {
		r.news = make(chan struct{})
	}
	return r.at[path], r.news
}

// Failing answers 500 to the first k deliveries, then 200.
func Failing(k int) Script {
	return func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= k {
			http.Error(w, "not now", http.StatusInternalServerError)
		}
	}
}

// Taking answers 200 after d. It returns earlier, and its answer is lost, if the caller closes
// the connection or the test ends.
func (r *Receiver) Taking(d time.Duration) Script {
	return func(_ int, _ http.ResponseWriter, q *http.Request) {
		select {
		case <-time.After(d):
		case <-q.Context().Done():
		case <-r.closing:
		}
	}
}

// Hanging never answers.
func (r *Receiver) Hanging() Script { return r.Taking(time.Hour) }

// Reset ends the connection of a request without an answer, so that the client sees
// "connection reset by peer".
func Reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the connection is gone
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it, the client would see a regular end
	}
	_ = c.Close()
}
