package web

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// An EventManager serves the operators of events; see [manage.Events].
type EventManager interface {
	List(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
	Search(ctx context.Context, f core.EventFilter, filter string) (manage.Found, error)
	Inspect(ctx context.Context, id core.ID) (manage.Told, error)
	Jobs(ctx context.Context, id core.ID) ([]core.Job, error)
	Cancel(ctx context.Context, id core.ID) (manage.Canceled, error)
	ReplayOne(ctx context.Context, id core.ID, to ...core.Lane) (manage.Replayed, error)
	Replay(ctx context.Context, f core.EventFilter, s manage.Span, dry bool) (manage.Replayed, error)
	Export(ctx context.Context, f core.EventFilter, n int, bare bool) iter.Seq2[manage.Told, error]
}

// EventsOptions are the dependencies of the routes of events.
type EventsOptions struct {
	Manager EventManager

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Events returns the routes of events.
func Events(o EventsOptions) Piece {
	return func(r chi.Router, d *Door) {
		e, token := &eventRoutes{d, o.Manager}, newKeyring(o.Tokens)
		r.Get("/api/events", d.viewing(token, e.events))
		r.Get("/api/events/{id}", d.viewing(token, e.charged(d.recordBytes(), bare(e.inspect))))
		r.Get("/api/events/{id}/jobs", d.viewing(token, e.charged(listBytes, bare(e.jobs))))
		r.Post("/api/events/{id}/cancel", d.changing(token, e.cancel))
		r.Post("/api/events/{id}/replay", d.changing(token, e.replayOne))
		r.Post("/api/events/replay", d.changing(token, e.replay))
		r.Get("/api/export/events", d.viewing(token, e.charged(d.pageBytes(), e.export)))
	}
}

// eventRoutes serve the operators of events.
type eventRoutes struct {
	*Door
	manager EventManager
}

// events answers with a page of events. A search reads payloads, so it needs more bytes than a
// listing.
func (e *eventRoutes) events(w http.ResponseWriter, r *http.Request) error {
	bytes := listBytes
	if r.URL.Query().Has("match") {
		bytes = max(bytes, e.pageBytes())
	}
	return e.charged(bytes, e.list)(w, r)
}

// list answers with a page of events, the newest first.
func (e *eventRoutes) list(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "source", "event_type", "delivery_id", "match", "since", "until", "limit", "after")
	if err != nil {
		return err
	}
	filter, err := eventFilter(query)
	if err != nil {
		return err
	}
	if filter.After, err = query.id("after"); err != nil {
		return err
	}
	if filter.Limit, err = query.number("limit", core.DefaultPage, 1, core.MaxPage); err != nil {
		return err
	}
	match, given, err := query.text("match")
	switch {
	case err != nil:
		return err
	case given:
		return e.search(w, r, filter, match)
	}
	page, err := e.manager.List(r.Context(), filter)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.EventsOf(page))
	return nil
}

// search answers with the matches among the next events.
func (e *eventRoutes) search(w http.ResponseWriter, r *http.Request, f core.EventFilter, match string) error {
	found, err := e.manager.Search(r.Context(), f, match)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.FoundOf(found))
	return nil
}

// selectors are the parameters of a query, or the fields of a body, that select events.
type selectors interface {
	name(name, what string) (string, error)
	time(name string) (time.Time, error)
}

// eventFilter returns the selection of events that a listing, a replay and an export have in
// common.
func eventFilter(s selectors) (f core.EventFilter, err error) {
	if f.Source, err = s.name("source", "the name of one"); err != nil {
		return f, err
	}
	if f.Type, err = s.name("event_type", "the type of an event"); err != nil {
		return f, err
	}
	if f.DeliveryID, err = s.name("delivery_id", "the sender's id of a delivery"); err != nil {
		return f, err
	}
	f.Since, f.Until, err = timesOf(s)
	return f, err
}

// timesOf returns the times of since and until; a zero time is no bound.
func timesOf(s interface {
	time(name string) (time.Time, error)
}) (since, until time.Time, err error) {
	if since, err = s.time("since"); err != nil {
		return since, until, err
	}
	if until, err = s.time("until"); err != nil {
		return since, until, err
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return since, until, errBackwards
	}
	return since, until, nil
}

var errBackwards = core.Refuse(core.Invalid, "since must be before until")

// inspect answers with one event in full. The payload is sent as the gateway received it, byte
// for byte.
func (e *eventRoutes) inspect(w http.ResponseWriter, r *http.Request) error {
	id, err := eventID(r)
	if err != nil {
		return err
	}
	event, err := e.manager.Inspect(r.Context(), id)
	if err != nil {
		return err
	}
	record := wire.EventOf(event)
	writePieces(w, [][]byte{unclosed(record.EventHead), []byte(`,"payload":`), record.Payload, rest(record.EventTail)})
	return nil
}

// eventID returns the event id in a path. For a text that is not an id, no event exists.
func eventID(r *http.Request) (core.ID, error) {
	id, err := core.ParseID(segment(r, "id"))
	if err != nil {
		return "", manage.ErrEvent
	}
	return id, nil
}

// jobs answers with the jobs of one event.
func (e *eventRoutes) jobs(w http.ResponseWriter, r *http.Request) error {
	id, err := eventID(r)
	if err != nil {
		return err
	}
	jobs, err := e.manager.Jobs(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.EventJobs{Jobs: wire.List(jobs, wire.JobOf)})
	return nil
}

// cancel ends the jobs and runs of one event that are not under way.
func (e *eventRoutes) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := eventID(r)
	if err != nil {
		return err
	}
	if _, err := e.optional(w, r); err != nil {
		return err
	}
	canceled, err := e.manager.Cancel(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.CanceledOf(canceled))
	return nil
}

// replayOne makes new jobs for one event, for all that want it or for some consumers.
func (e *eventRoutes) replayOne(w http.ResponseWriter, r *http.Request) error {
	id, err := eventID(r)
	if err != nil {
		return err
	}
	body, err := e.optional(w, r, "to")
	if err != nil {
		return err
	}
	to, err := receiversIn(body)
	if err != nil {
		return err
	}
	replayed, err := e.manager.ReplayOne(r.Context(), id, to...)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.ReplayedOf(replayed))
	return nil
}

// replay replays the selected events, or counts them. If an operation goes on with the replay, the status
// is 202.
func (e *eventRoutes) replay(w http.ResponseWriter, r *http.Request) error {
	body, err := e.optional(w, r, "source", "event_type", "delivery_id", "since", "until", "limit", "first", "last", "dry_run")
	if err != nil {
		return err
	}
	filter, err := eventFilter(body)
	if err != nil {
		return err
	}
	if filter.Limit, err = body.number("limit", 0, 1, manage.MaxReplay); err != nil {
		return err
	}
	span, err := spanOf(body)
	if err != nil {
		return err
	}
	dry, err := body.flag("dry_run")
	if err != nil {
		return err
	}
	unhurried(w)
	replayed, err := e.manager.Replay(r.Context(), filter, span, dry)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if replayed.Going != "" {
		status = http.StatusAccepted
	}
	writeJSON(w, status, wire.ReplayedOf(replayed))
	return nil
}

// spanOf returns the span that a body gives, as that of a dry run; zero fields select the newest events.
func spanOf(body fields) (s manage.Span, err error) {
	if s.First, err = body.id("first"); err != nil {
		return s, err
	}
	s.Last, err = body.id("last")
	return s, err
}
