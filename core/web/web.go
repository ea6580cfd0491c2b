// Package web serves HTTP: the routes, the guards before them, and one place that turns
// errors into replies.
//
// The one idea to know: a request costs little until it has passed the checks. Each check
// ends the requests that it refuses, and the cheap checks come first:
//
//	security headers, panics ─▶ rate of the client ─▶ no browser for a page elsewhere
//	  ─▶ length, where no body belongs
//	  ─▶ route known, method ─▶ token and its role ─▶ source known, address allowed
//	  ─▶ encoding, length ─▶ the body arrives ─▶ a free slot ─▶ the service decides
//
// No client can keep other clients out by being slow. It has a share of the connections
// (connections.go). Its small bodies take no slot until they are there, and its large bodies
// take a share of the slots (body.go, counts.go). Waiting requests get slots in the turn of
// their clients (slots.go). Consumers that wait for messages share a budget of their own
// (polls.go). All replies together have a bounded number of unwritten bytes, and each chunk of
// a reply has a deadline (outflow.go, reply.go). Requests that a browser makes for a page of
// another origin change nothing (crosssite.go). A full house still answers /health and
// /metrics, on connections for probes.
//
// A token of the API opens the routes that its role includes: roles.go lists them.
//
// Routes come in pieces: [Intake], [Callback], [Queues], [Events], [Jobs], [Breakers],
// [Runs], [Overview], [Audit], [Ops] and [Echo]. The binary serves all of them, and a function one
// or two. [Handler] puts the guards before any choice of them. openapi.yaml describes
// requests and replies; tests compare it with transcripts. Handlers return errors, and only
// [Door.fail] in respond.go answers an error.
//
// The guards are one function and not a chain of middleware, since each link of a chain
// copies the request or wraps the writer. Here the router copies the request once, and one
// reused record wraps the writer. From net/http to the service a request costs 17
// allocations, half of them the router's (BenchmarkIntake).
//
// In a function, package lambda takes the place of net/http's server.
//
// web may import core, the services that it serves and their records in wire, config for
// the spelling of durations, chi and yaml; never a store.
package web

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
)

// Settings are the bounds of every request.
type Settings struct {
	// MaxBodySize is the largest request body, in bytes. A larger body gets 413.
	MaxBodySize int64

	// MaxInbound is how many requests are served at once. Other requests wait for a second,
	// and then get 503. A request whose body is larger than 16 KiB counts while its body
	// arrives, since the body takes memory. Such requests have at most half of the slots,
	// and one client's a fourth. Callbacks have half as many slots of their own.
	MaxInbound int

	// IPRateLimit is how many requests a client address may send a second, over all routes.
	// A further request gets 429. IPv6 addresses count by /64, and requests without a known
	// address together. Zero is no limit.
	IPRateLimit int

	Clients Clients
	Log     *slog.Logger // nil logs nothing

	// Console serves the operator console beside the pieces; nil serves none.
	Console *ConsoleOptions

	// Counts are the counts to which the limits apply. Nil counts for this handler alone.
	Counts *Counts

	// Changed is called when a request of an operator that may have changed something was
	// served, also if it failed, and before a short reply is sent. It may be nil.
	Changed func()

	// Refused is called with the reason when the gateway is too busy for a request, or when
	// the role of a token does not open its route. It may be nil.
	Refused func(reason string)

	// Served is called for every answered request, with the pattern of its route, its
	// method as it was sent, and the status. The pattern is "" if no route matched. It may
	// be nil.
	Served func(pattern, method string, status int)
}

// A Piece is a group of routes.
type Piece func(chi.Router, *Door)

// A Door has the state that all routes of a handler share.
type Door struct {
	Settings
	limiter *rate // nil without a limit
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
	if s.Console != nil {
		sessions := newSessions(*s.Console)
		router.Use(sessions.through)
		pieces = append(slices.Clone(pieces), consolePiece(sessions, *s.Console))
	}
	// The guards run before the router looks for a route, so a request for an unknown path counts
	// against the rate of its client too.
	router.Use(d.guard)
	router.NotFound(d.unrouted(router))
	router.MethodNotAllowed(d.unrouted(router))
	for _, piece := range pieces {
		piece(router, d)
	}
	return router
}

// guard has the checks that every request passes first, also one without a route.
func (d *Door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := d.record(w, r)
		// The order of the deferred calls: rescue answers for a panic, and then served reports the
		// status of that answer.
		defer d.served(rec, r) // after rescue has answered
		w = rec
		setAlways(w.Header())
		defer d.rescue(w, r)
		// From here on the checks stand in the order of their cost: see the package comment.
		if d.limiter != nil && !d.limiter.pass(recordOf(w).network) {
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
		if formOfConsole(r) {
			d.fail(w, r, errNotJSON)
			return
		}
		if bodiless(r.Method) && r.ContentLength > d.MaxBodySize {
			d.fail(w, r, errTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// probing reports whether a request is always answered.
func probing(r *http.Request) bool { return r.URL.Path == "/health" || r.URL.Path == "/metrics" }

// bodiless reports whether the routes of a method do not read bodies. The other routes
// apply the limit when they read the body.
func bodiless(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// rescue answers for a handler that panicked. It must be deferred directly.
func (d *Door) rescue(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v) // makes net/http cut the connection
	}
	// The reply may have begun. Then its status stays, and only the log shows the panic.
	d.Log.Error("panic while serving a request", "method", r.Method, "route", r.Pattern, "panic", v, "stack", string(debug.Stack()))
	d.fail(w, r, errInternal)
}

// A route is a handler whose errors are answered by its caller.
//
// A method of this type reads the request strictly (queryOf, optional or body), calls one method
// of a service, and writes the result (writeJSON, writePieces or received). It returns the errors
// of all three unchanged. To add a route: write such a method, register it in a [Piece] with
// receiving, viewing, changing or polling, give it a role in roles.go, describe it in
// openapi.yaml, and add a transcript.
type route func(http.ResponseWriter, *http.Request) error

// receiving serves a route whose requests have a body, which [Door.body] reads. A request
// with a small body takes its slot only when the body is there.
func (d *Door) receiving(b *budget, serve route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recordOf(w).budget = b
		if err := serve(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}

// polling serves a route on which clients wait. The route counts its polls itself.
func (d *Door) polling(serve route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}

// slotted serves a route whose requests have no body, and take their slots at once.
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
func (d *Door) viewing(token *keyring, serve route) http.HandlerFunc {
	return d.receiving(&d.budgets.operators, token.only(slotted(serve)))
}

// changing serves an operator's route that changes something, and may have a body. The context of
// the request has the actor.
func (d *Door) changing(token *keyring, serve route) http.HandlerFunc {
	return d.receiving(&d.budgets.operators, token.acting(d.noting(serve)))
}

// noting serves a route, and then calls Changed.
func (d *Door) noting(serve route) route {
	if d.Changed == nil {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		defer d.Changed()
		return serve(w, r)
	}
}

// unrouted answers a request without a route: 405 if another method has one, else 404.
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

// allowedMethods returns the methods of a path. OPTIONS is left out: it is for handshakes
// only, and gets 405 otherwise.
func allowedMethods(routes chi.Routes, r *http.Request) []string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allowed []string
	for _, m := range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
		if routes.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
	}
	return allowed
}
