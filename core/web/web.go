// Package web is everything that enters over HTTP: routes, the guards before
// them, and one place that turns errors into replies.
//
// The one idea to know: a request costs nothing until it has earned it. Each
// step ends what it refuses, and the cheap ones come first:
//
//	security headers, panics ─▶ rate of the client ─▶ no browser for a page elsewhere
//	  ─▶ length, where no body belongs
//	  ─▶ route known, method ─▶ token ─▶ source known, address allowed
//	  ─▶ encoding, length ─▶ the body arrives ─▶ a free slot ─▶ the service decides
//
// No client can keep others out by being slow. It has a share of the connections
// (connections.go), its small bodies take no slot until they are there and its large ones
// take a share of the slots (body.go, counts.go), and of requests that wait for a slot each
// client gets one in turn (slots.go).
//
// Routes come in pieces, [Intake], [Callback], [Queues], [Events], [Jobs], [Runs],
// [Overview], [Ops] and [Echo], that a binary serves together and a function alone;
// [Handler] puts the guards before any choice of them. What routes take and answer is
// described in openapi.yaml, which tests hold to the transcripts. Handlers return errors;
// [Door.fail] in respond.go is the only code that answers one.
//
// The guards are few and hand-made rather than a chain of middleware, since each
// link of a chain copies the request or wraps the writer. Here the router copies it
// once, and one record, used again and again, wraps the writer: from net/http to the
// service a request costs 17 allocations, half of them the router's (BenchmarkIntake).
//
// In a function, package lambda takes the place of net/http's server.
//
// web may import core, the services it shows and their records in wire, config for how a
// duration is spelt, chi, httprate and yaml; never a store.
package web

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/httprate"

	"github.com/eventgateway/gateway/core"
)

// Settings are the bounds every request stays within.
type Settings struct {
	// MaxBodySize is the bytes a request body may have; more is 413.
	MaxBodySize int64

	// MaxInbound is how many requests are served at once. Others wait for a second, and
	// then get 503. One whose body is larger than 16 KiB counts while it sends it, since
	// its body takes memory; those are half of all at most, and a fourth for one client.
	// Callbacks have half as many slots of their own.
	MaxInbound int

	// IPRateLimit is how many requests a client address may send a second, over
	// all routes; more is 429. IPv6 addresses count by /64. Zero is no limit.
	IPRateLimit int

	Clients Clients
	Log     *slog.Logger // nil logs nothing

	// Counts are what the limits are held against. Nil counts for this handler alone.
	Counts *Counts

	// Refused is told why a request is refused that finds the gateway too busy. May be nil.
	Refused func(reason string)

	// Served is told of every request that was answered: the pattern of its route, ""
	// if none took it, its method as it was sent, and the status. May be nil.
	Served func(pattern, method string, status int)
}

// A Piece is a group of routes.
type Piece func(chi.Router, *Door)

// A Door is what all routes of a handler share.
type Door struct {
	Settings
	limiter *httprate.RateLimiter // nil without a limit
	budgets budgets
	records sync.Pool // of *record
}

// Handler serves the pieces behind the guards.
func Handler(s Settings, pieces ...Piece) http.Handler {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Counts == nil {
		s.Counts = &Counts{}
	}
	d := &Door{Settings: s, limiter: s.Counts.limit(s.IPRateLimit), budgets: newBudgets(s.Counts, s.MaxInbound)}
	router := chi.NewRouter()
	router.Use(d.guard)
	router.NotFound(d.unrouted(router))
	router.MethodNotAllowed(d.unrouted(router))
	for _, piece := range pieces {
		piece(router, d)
	}
	return router
}

// guard is what every request passes first, also one that no route takes.
func (d *Door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := d.record(w, r)
		defer d.served(rec, r) // after rescue has answered
		w = rec
		setAlways(w.Header())
		defer d.rescue(w, r)
		if d.limiter != nil && d.tooMany(w, r) {
			d.fail(w, r, errTooMany)
			return
		}
		if forProbes(r) && !probing(r) {
			w.Header()["Connection"] = []string{"close"}
			d.fail(w, r, errBusy)
			return
		}
		if crossSite(r) {
			d.fail(w, r, errCrossSite)
			return
		}
		if bodiless(r.Method) && r.ContentLength > d.MaxBodySize {
			d.fail(w, r, errTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// probing reports whether a request is one that is always answered.
func probing(r *http.Request) bool { return r.URL.Path == "/health" || r.URL.Path == "/metrics" }

// bodiless reports whether the routes of a method do not read bodies. The others hold
// theirs to the limit when they read it.
func bodiless(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// rescue answers for a handler that panicked. It must be deferred itself.
func (d *Door) rescue(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v) // asks net/http to cut the connection
	}
	d.Log.Error("panic while serving a request", "method", r.Method, "route", r.Pattern, "panic", v, "stack", string(debug.Stack()))
	d.fail(w, r, errInternal)
}

// newLimiter counts requests in a window that slides over two seconds, so its
// memory is what the server can answer in two seconds: about 24 bytes an address.
func newLimiter(perSecond int) *httprate.RateLimiter {
	if perSecond == 0 {
		return nil
	}
	return httprate.NewRateLimiter(perSecond, time.Second,
		httprate.WithResponseHeaders(httprate.ResponseHeaders{RetryAfter: "Retry-After"}))
}

// tooMany counts the request. Requests without a known address share one count.
func (d *Door) tooMany(w http.ResponseWriter, r *http.Request) bool {
	return d.limiter.OnLimit(w, r, core.ClientOf(recordOf(w).client).String())
}

// route is a handler whose errors are answered for it.
type route func(http.ResponseWriter, *http.Request) error

// receiving serves a route whose requests have a body, which [Door.body] reads: only when
// the body is there does the request take a slot.
func (d *Door) receiving(b *budget, serve route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recordOf(w).budget = b
		if err := serve(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}

// slotted is a route whose requests have no body, and take their slots at once.
func slotted(serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		rec := recordOf(w)
		if err := rec.enter(r.Context(), rec.budget.serving...); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// viewing serves an operator's route that changes nothing, and has no body.
func (d *Door) viewing(token *bearer, serve route) http.HandlerFunc {
	return d.receiving(&d.budgets.operators, token.only(slotted(serve)))
}

// changing serves an operator's route that changes something, and may have a body.
func (d *Door) changing(token *bearer, serve route) http.HandlerFunc {
	return d.receiving(&d.budgets.operators, token.only(serve))
}

// unrouted answers a request no route takes: 405 if another method would have
// been taken, else 404.
func (d *Door) unrouted(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		allowed := allowedMethods(routes, r)
		if len(allowed) == 0 {
			d.fail(w, r, errNoRoute)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		d.fail(w, r, errNoMethod)
	}
}

func allowedMethods(routes chi.Routes, r *http.Request) []string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allowed []string
	for _, m := range []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"} {
		if routes.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
	}
	return allowed
}
