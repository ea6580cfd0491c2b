package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
)

// A Route is a route of a handler: a method, and a pattern in the router's spelling, such
// as /webhooks/{source}.
type Route struct{ Method, Pattern string }

// Routes returns the routes of a handler that [Handler] made.
func Routes(h http.Handler) (all []Route) {
	err := chi.Walk(h.(chi.Routes), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		all = append(all, Route{method, pattern})
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("routes: %v", err)) // only the function above could fail
	}
	return all
}

// A record is a response writer that knows the status of its reply, and the slots that its
// request holds.
//
// One goroutine uses it, so it has no lock. The route sets budget before it reads the body, and
// enter and leave keep held up to date, so that served gives back exactly the slots that are
// still taken, also after a panic.
type record struct {
	http.ResponseWriter
	status  int        // 0 until it is known
	client  netip.Addr // the address of the request's client
	network netip.Addr // by which shares are counted; see core.ClientOf
	budget  *budget    // of the route
	held    []*slots
}

// record wraps the writer of a request until served is called. Records are reused: no code
// keeps a writer longer than its request.
func (d *Door) record(w http.ResponseWriter, r *http.Request) *record {
	rec, ok := d.records.Get().(*record)
	if !ok {
		rec = new(record)
	}
	client := d.Clients.Address(r)
	*rec = record{ResponseWriter: w, client: client, network: core.ClientOf(client), held: rec.held[:0]}
	return rec
}

// recordOf returns the record, which is the writer of every route.
func recordOf(w http.ResponseWriter) *record { return w.(*record) }

// served gives back the slots of a request, and reports that the request was answered.
func (d *Door) served(rec *record, r *http.Request) {
	for _, s := range rec.held {
		s.leave(rec.network)
	}
	status := rec.status
	if status == 0 {
		status = http.StatusOK // the status that net/http sends if a handler sets none
	}
	// Nothing of the request stays in a reused record, except the memory of the list.
	*rec = record{held: rec.held[:0]}
	d.records.Put(rec)
	if d.Served != nil {
		d.Served(r.Pattern, r.Method, status)
	}
}

// enter takes a slot of each pool until the request ends. It fails if a pool has none.
func (r *record) enter(ctx context.Context, pools ...pool) error {
	for _, p := range pools {
		if !p.slots.enter(ctx, r.network, p.bound) {
			return errBusy
		}
		r.held = append(r.held, p.slots)
	}
	return nil
}

// leave gives slots back before the request ends.
func (r *record) leave(pools ...pool) {
	for _, p := range pools {
		if i := slices.Index(r.held, p.slots); i >= 0 {
			r.held = slices.Delete(r.held, i, i+1)
			p.slots.leave(r.network)
		}
	}
}

// WriteHeader notes the first status that is not provisional.
func (r *record) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write notes the status of a reply that names none.
func (r *record) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// WriteString is Write for a text, which then need not be copied.
func (r *record) WriteString(text string) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return io.WriteString(r.ResponseWriter, text)
}

// Unwrap is for http.ResponseController.
func (r *record) Unwrap() http.ResponseWriter { return r.ResponseWriter }
