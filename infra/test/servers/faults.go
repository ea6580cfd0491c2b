package servers

import (
	"bytes"
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A Fault is a way in which a call can go wrong.
type Fault struct {
	kind   faultKind
	status int
	body   string
	stall  time.Duration
}

type faultKind int

const (
	none faultKind = iota
	before
	after
	stalled
)

// Before answers with a status and a body and forwards nothing: the call has no effect and the
// client knows it. Answers 429 and 503 have Retry-After: 1.
func Before(status int, body string) Fault { return Fault{kind: before, status: status, body: body} }

// After forwards the call and closes the connection instead of answering: the call took effect
// and the client cannot know.
func After() Fault { return Fault{kind: after} }

// Stall holds the call for d and then forwards it, even if the client has given up: the call
// takes effect late, after the client's next calls.
func Stall(d time.Duration) Fault { return Fault{kind: stalled, stall: d} }

// Overloaded is the body of a D1 answer that says to come back later.
const Overloaded = `{"success":false,"errors":[{"code":7500,"message":"D1 DB is overloaded. Requests queued for too long."}],` +
	`"messages":[],"result":null}`

// Counts are the numbers of calls and faults. Each call is counted in at most one of Before,
// After and Stalled.
type Counts struct{ Calls, Before, After, Stalled int }

// A Faults is an HTTP proxy that forwards every call, except for its faults. If its target
// cannot be reached, it closes the connection.
type Faults struct {
	URL string // replaces the target's base URL

	forward *httputil.ReverseProxy
	ended   chan struct{}

	mu      sync.Mutex
	counts  Counts
	once    []Fault
	chances []chance
	random  *rand.Rand
}

type chance struct {
	below float64 // of a number in [0, 1)
	fault Fault
}

// NewFaults starts a proxy in front of a base URL, such as [Hosted].API or
// Endpoint. It goes with the test; calls it is holding then are not forwarded.
func NewFaults(t testing.TB, target string) *Faults {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	f := &Faults{ended: make(chan struct{})}
	f.Seed(1)
	// By default two idle connections are kept: with more clients than that,
	// nearly every call would dial.
	pool := &http.Transport{MaxIdleConnsPerHost: 100}
	f.forward = &httputil.ReverseProxy{
		Transport:    pool,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host}) },
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.ended)
		server.CloseClientConnections()
		server.Close()
		pool.CloseIdleConnections()
	})
	f.URL = server.URL + u.Path
	return f
}

// Seed sets the seed of the chances. With the same seed, the same faults hit the first call,
// the second and so on. The first seed is 1.
func (f *Faults) Seed(seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.random = rand.New(rand.NewPCG(seed, 0))
}

// Chance makes this fault happen to calls with probability p, in [0, 1], in addition to
// earlier faults. The sum of all probabilities is at most 1.
func (f *Faults) Chance(p float64, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := p
	if n := len(f.chances); n > 0 {
		sum += f.chances[n-1].below
	}
	f.chances = append(f.chances, chance{sum, fault})
}

// Once makes these faults happen to the next calls, one each, before any chances.
func (f *Faults) Once(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.once = append(f.once, faults...)
}

// Clear removes all faults that have not happened. The counts stay.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.once, f.chances = nil, nil
}

// Counts returns the numbers so far. A call is counted when it arrives.
func (f *Faults) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

func (f *Faults) next() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault, draw := Fault{}, f.random.Float64()
	if len(f.once) > 0 {
		fault, f.once = f.once[0], f.once[1:]
	} else {
		for _, c := range f.chances {
			if draw < c.below {
				fault = c.fault
				break
			}
		}
	}
	f.counts.Calls++
	switch fault.kind {
	case before:
		f.counts.Before++
	case after:
		f.counts.After++
	case stalled:
		f.counts.Stalled++
	}
	return fault
}

// ServeHTTP forwards one call or makes its fault.
func (f *Faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Read before the fault: a client that gave up sends no more.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault := f.next()
	switch fault.kind {
	case before:
		w.Header().Set("Content-Type", "application/json")
		if fault.status == http.StatusTooManyRequests || fault.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(fault.status)
		_, _ = io.WriteString(w, fault.body)
		return
	case after:
		f.forwardAnyway(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case stalled:
		select {
		case <-time.After(fault.stall):
		case <-f.ended:
			panic(http.ErrAbortHandler)
		}
		f.forwardAnyway(w, r)
	default:
		f.forward.ServeHTTP(w, r)
	}
}

// forwardAnyway forwards the call also if the client has gone. The context can be
// cancelled, though it is not before the end, because the proxy watches the
// client's connection itself when it gets one that cannot.
func (f *Faults) forwardAnyway(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	f.forward.ServeHTTP(w, r.WithContext(ctx))
}
