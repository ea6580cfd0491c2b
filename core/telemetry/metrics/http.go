package metrics

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

// requests counts requests by route, method and status.
//
// Served reads the map without a lock, for each request. Expect copies it under the mutex expect,
// a few times at a start or a reload. The counters of a route are made by its first request or the
// first scrape: those of all routes would be a thirtieth of the time of a start.
type requests struct {
	family   *prometheus.CounterVec
	expect   sync.Mutex
	routed   atomic.Pointer[map[route]func() *replies] // never changes: a larger map replaces it
	unrouted known[*replies]                           // by method, requests without a route
}

// A route is a pattern of the router with a method.
type route struct{ pattern, method string }

// replies counts the replies of one route, by status.
type replies struct {
	byStatus map[int]prometheus.Counter
	other    prometheus.Counter
}

// methods have their own label for requests without a route. All other methods share one.
var methods = []string{
	http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch, http.MethodPost, http.MethodPut,
}

// Statuses of replies. All others share a counter.
var (
	answered = []int{200, 400, 401, 403, 404, 500, 503}
	bodied   = []int{202, 408, 413, 415} // also for routes that read a body
	unfound  = []int{404, 405, 429, 500} // for requests without a route, or refused before the routes
)

// newRequests makes the counters of requests without a route. [Metrics.Expect] adds routes.
func newRequests(f factory) *requests {
	r := &requests{
		family: f.counter("http_requests_total", "Requests that were answered, by the pattern of their route.", "route", "method", "status"),
	}
	r.routed.Store(&map[route]func() *replies{})
	r.unrouted = knowing(methods, func(method string) *replies { return r.replies(telemetry.Other, method, unfound) })
	return r
}

// replies makes the counters of a route for these statuses, and one for all others.
func (r *requests) replies(pattern, method string, statuses []int) *replies {
	all := &replies{byStatus: map[int]prometheus.Counter{}, other: r.family.WithLabelValues(pattern, method, telemetry.Other)}
	for _, s := range statuses {
		all.byStatus[s] = r.family.WithLabelValues(pattern, method, strconv.Itoa(s))
	}
	return all
}

// makeAll makes the counters of all routes.
func (r *requests) makeAll() {
	for _, counters := range *r.routed.Load() {
		counters()
	}
}

// Expect gives a route its series, unless it has them. A scrape shows them from then on, also without
// a request. The pattern is as the router writes it. The caller calls Expect before the route serves
// its first request.
func (m *Metrics) Expect(method, pattern string) {
	m.requests.expect.Lock()
	defer m.requests.expect.Unlock()
	all, r := *m.requests.routed.Load(), route{pattern, method}
	if all[r] != nil {
		return
	}
	statuses := answered
	if method != http.MethodGet && method != http.MethodHead {
		statuses = append(bodied[:len(bodied):len(bodied)], answered...)
	}
	// Readers may hold the old map, so it stays as it is.
	more := maps.Clone(all)
	more[r] = sync.OnceValue(func() *replies { return m.requests.replies(pattern, method, statuses) })
	m.requests.routed.Store(&more)
}

// Served counts a request that was answered, by the pattern of its route. The pattern is empty
// if no route matched.
func (m *Metrics) Served(pattern, method string, status int) {
	var all *replies
	if counters := (*m.requests.routed.Load())[route{pattern, method}]; counters != nil {
		all = counters()
	} else {
		// The path of such a request is no label: its sender chose it.
		all = m.requests.unrouted.of(method)
	}
	c, ok := all.byStatus[status]
	if !ok {
		c = all.other
	}
	c.Inc()
}

// newClosed counts connections that were closed because too many were open.
func newClosed(f factory) words {
	family := f.counter("connections_closed_total", "Connections that were closed because too many were open: idle for longest, or refused.", "reason")
	return wording(family, []core.ClosedFor{core.ClosedIdle, core.ClosedRefused})
}
