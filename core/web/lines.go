package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// A LineManager serves the operators of lines; see [manage.Lines].
type LineManager interface {
	List(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error)
	Inspect(ctx context.Context, lane core.Lane, key string) (manage.LineStory, error)
	Skip(ctx context.Context, id core.ID) error
}

// LinesOptions are the dependencies of the routes of lines.
type LinesOptions struct {
	Manager LineManager

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Lines returns the routes of lines.
func Lines(o LinesOptions) Piece {
	return func(r chi.Router, d *Door) {
		l, token := &lineRoutes{d, o.Manager}, newKeyring(o.Tokens)
		r.Get("/api/lines", d.viewing(token, l.charged(listBytes, l.list)))
		r.Get("/api/lines/inspect", d.viewing(token, l.charged(listBytes, l.inspect)))
		r.Post("/api/jobs/{id}/skip", d.changing(token, l.skip))
	}
}

// lineRoutes serve the operators of lines.
type lineRoutes struct {
	*Door
	manager LineManager
}

// list answers with a page of the lines of a consumer, by key.
func (l *lineRoutes) list(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "consumer", "after", "limit")
	if err != nil {
		return err
	}
	lane, err := linedLane(query)
	if err != nil {
		return err
	}
	after, err := query.name("after", "the key of a line")
	if err != nil {
		return err
	}
	limit, err := query.number("limit", core.DefaultPage, 1, core.MaxPage)
	if err != nil {
		return err
	}
	page, err := l.manager.List(r.Context(), lane, after, limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.LinesOf(page))
	return nil
}

// inspect answers with a line and its jobs. The key is a parameter, since it may have any
// characters.
func (l *lineRoutes) inspect(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "consumer", "key")
	if err != nil {
		return err
	}
	lane, err := linedLane(query)
	if err != nil {
		return err
	}
	key, given, err := query.text("key")
	if err == nil && (!given || !named(key)) {
		err = core.Refuse(core.Invalid, "key must be the key of a line")
	}
	if err != nil {
		return err
	}
	story, err := l.manager.Inspect(r.Context(), lane, key)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.StoryOfLine(story))
	return nil
}

// skip lets the line of a dead job go on.
func (l *lineRoutes) skip(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	if _, err := l.optional(w, r); err != nil {
		return err
	}
	if err := l.manager.Skip(r.Context(), id); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.Skipped{Skipped: true})
	return nil
}

// linedLane returns the lane of the consumer in a query.
func linedLane(q query) (core.Lane, error) {
	consumer, _, err := q.text("consumer")
	if err != nil {
		return "", err
	}
	lane, ok := wire.ParseConsumer(consumer)
	if !ok || lane.Handler() == "" && lane.Queue() == "" {
		return "", core.Refuse(core.Invalid, "consumer must be the name of a handler, or queue/ and the name of a queue; not %s", quote(consumer))
	}
	return lane, nil
}
