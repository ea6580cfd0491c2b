package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// SchedulesOptions are the dependencies of the routes of schedules.
type SchedulesOptions struct {
	// Fire stores an event of a source of type cron now; see [manage.Schedules].
	Fire func(ctx context.Context, source string) (manage.Fired, error)

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Schedules returns the routes of schedules.
func Schedules(o SchedulesOptions) Piece {
	return func(r chi.Router, d *Door) {
		s := &scheduleRoutes{d, o}
		r.Post("/api/schedules/{source}/fire", d.changing(newKeyring(o.Tokens), s.fire))
	}
}

// scheduleRoutes serve the operators of schedules.
type scheduleRoutes struct {
	*Door
	SchedulesOptions
}

// fire stores an event of a source now.
func (s *scheduleRoutes) fire(w http.ResponseWriter, r *http.Request) error {
	if _, err := queryOf(r); err != nil {
		return err
	}
	if _, err := s.optional(w, r); err != nil {
		return err
	}
	fired, err := s.Fire(r.Context(), segment(r, "source"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.FiredOf(fired))
	return nil
}
