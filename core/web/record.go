package web

import (
	"fmt"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// A Route is one of those that a handler serves: a method, and a pattern as the router
// spells it, such as /webhooks/{source}.
type Route struct{ Method, Pattern string }

// Routes are those of a handler that [Handler] made.
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

// A record is a response writer that knows the status of its reply.
type record struct {
	http.ResponseWriter
	status int // 0 until there is one
}

// record wraps the writer of a request until served is called. Records are used again:
// nobody keeps a writer longer than its request.
func (d *Door) record(w http.ResponseWriter) *record {
	rec, ok := d.records.Get().(*record)
	if !ok {
		rec = new(record)
	}
	rec.ResponseWriter, rec.status = w, 0
	return rec
}

// served tells of a request that was answered.
func (d *Door) served(rec *record, r *http.Request) {
	status := rec.status
	if status == 0 {
		status = http.StatusOK // what net/http sends for those who say nothing
	}
	rec.ResponseWriter = nil
	d.records.Put(rec)
	d.Served(r.Pattern, r.Method, status)
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
