//go:build linux

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A delivery is a request that a handler got, recorded before its answer.
type delivery struct {
	path   string
	header http.Header
	body   string
	at     time.Time
}

func (d delivery) job() string { return d.header.Get("X-Gateway-Job-Id") }

func (d delivery) attempt() int {
	n, _ := strconv.Atoi(d.header.Get("X-Gateway-Attempt")) // the tests fail with attempt 0
	return n
}

// copy returns the number of the copy that made the delivery. The handler's configuration must
// have the header "x-copy: ${AWS_LAMBDA_LOG_STREAM_NAME}".
func (d delivery) copy() int {
	name := d.header.Get("X-Copy")
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, ']')+1:])
	return n
}

// A script answers the n-th delivery to a path, counted from 1.
type script func(n int, w http.ResponseWriter, r *http.Request)

// A receiver plays all handlers: one server that answers 200, unless a path has a script.
type receiver struct {
	server *httptest.Server

	mu         sync.Mutex
	scripts    map[string]script
	counts     map[string]int
	deliveries []delivery
	onDelivery func(delivery) // called instead of keeping the delivery
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{scripts: map[string]script{}, counts: map[string]int{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// on sets the script of a path.
func (r *receiver) on(path string, s script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[path] = s
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // half a request is no delivery
	}
	s, n := r.note(delivery{req.URL.Path, req.Header, string(body), time.Now()})
	req.Body = io.NopCloser(bytes.NewReader(body)) // for the script
	if s != nil {
		s(n, w, req)
	}
}

func (r *receiver) note(d delivery) (script, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.onDelivery != nil {
		r.onDelivery(d)
	} else {
		r.deliveries = append(r.deliveries, d)
	}
	r.counts[d.path]++
	return r.scripts[d.path], r.counts[d.path]
}

// at returns the deliveries to a path so far, in order of arrival.
func (r *receiver) at(path string) (at []delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.deliveries {
		if d.path == path {
			at = append(at, d)
		}
	}
	return at
}

// await waits for the n-th delivery to a path and returns all deliveries to it.
func (r *receiver) await(t testing.TB, limit time.Duration, path string, n int) []delivery {
	t.Helper()
	for end := time.Now().Add(limit); len(r.at(path)) < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("deliveries to %s within %v = %d, want %d", path, limit, len(r.at(path)), n)
		}
	}
	return r.at(path)
}

// failing answers 500 to the first k deliveries.
func failing(k int) script {
	return func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= k {
			http.Error(w, "not now", http.StatusInternalServerError)
		}
	}
}

// taking answers after d, unless the caller closes the connection before.
func taking(d time.Duration) script {
	return func(_ int, _ http.ResponseWriter, req *http.Request) {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
		}
	}
}
