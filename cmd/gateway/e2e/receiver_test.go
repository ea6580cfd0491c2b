//go:build linux

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A delivery is a request that a handler got, recorded before its answer.
type delivery struct {
	path   string
	query  string
	header http.Header
	body   string
	at     time.Time
}

func (d delivery) event() string { return d.header.Get("X-Gateway-Event-Id") }
func (d delivery) job() string   { return d.header.Get("X-Gateway-Job-Id") }
func (d delivery) attempt() int  { return d.number("X-Gateway-Attempt") }

// life returns the number of the gateway's start that made the delivery, if the configuration
// sends it.
func (d delivery) life() int { return d.number("X-Life") }

func (d delivery) number(header string) int {
	n, _ := strconv.Atoi(d.header.Get(header)) // the tests fail with 0
	return n
}

// A script answers the n-th delivery to a path, counted from 1.
type script func(n int, w http.ResponseWriter, r *http.Request)

// A receiver plays all handlers: one server that answers 200, unless a path has a script.
type receiver struct {
	server  *httptest.Server
	closing chan struct{}

	mu         sync.Mutex
	scripts    map[string]script
	counts     map[string]int
	deliveries []delivery
	onDelivery func(delivery) // called instead of keeping the delivery
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{closing: make(chan struct{}), scripts: map[string]script{}, counts: map[string]int{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		close(r.closing) // ends hanging handlers
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

func (r *receiver) url() string { return r.server.URL }

// on sets the script of a path; nil means 200. The count starts again.
func (r *receiver) on(path string, s script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[path] = s
	r.counts[path] = 0
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // half a request is no delivery
	}
	s, n := r.note(delivery{req.URL.Path, req.URL.RawQuery, req.Header, string(body), time.Now()})
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
func (r *receiver) at(path string) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var at []delivery
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
	if !within(limit, func() bool { return len(r.at(path)) >= n }) {
		t.Fatalf("deliveries to %s within %v = %d, want %d", path, limit, len(r.at(path)), n)
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
func (r *receiver) taking(d time.Duration) script {
	return func(_ int, _ http.ResponseWriter, req *http.Request) {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
		case <-r.closing:
		}
	}
}

// hanging never answers.
func (r *receiver) hanging() script { return r.taking(time.Hour) }

func TestReceiver(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.on("/a", failing(1))
	for i, want := range []int{500, 200, 200} {
		a, err := fetch(pooled, request{method: "POST", url: r.url() + "/a", body: strconv.Itoa(i), headers: []string{"X-Gateway-Attempt", "7"}})
		if err != nil || a.status != want {
			t.Errorf("answer %d = %d, %v, want %d", i, a.status, err, want)
		}
	}
	if ds := r.at("/a"); len(ds) != 3 || ds[1].body != "1" || ds[2].attempt() != 7 {
		t.Errorf("deliveries = %+v, want three", ds)
	}
	if ds := r.at("/b"); len(ds) != 0 {
		t.Errorf("deliveries to another path = %+v, want none", ds)
	}
}
