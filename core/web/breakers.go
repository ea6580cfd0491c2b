package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core/wire"
)

// BreakersOptions are the dependencies of the routes of circuit breakers.
type BreakersOptions struct {
	// Reset closes the breaker of a handler; see Breakers of core/manage.
	Reset func(ctx context.Context, handler string) (bool, error)

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Breakers returns the routes of circuit breakers.
func Breakers(o BreakersOptions) Piece {
	return func(r chi.Router, d *Door) {
		b := &breakerRoutes{d, o}
		r.Post("/api/handlers/{name}/breaker/reset", d.changing(newKeyring(o.Tokens), b.reset))
	}
}

// breakerRoutes serve the operators of circuit breakers.
type breakerRoutes struct {
	*Door
	options BreakersOptions
}

// reset closes the breaker of a handler. It succeeds also if the breaker was closed already.
func (b *breakerRoutes) reset(w http.ResponseWriter, r *http.Request) error {
	if _, err := b.optional(w, r); err != nil {
		return err
	}
	// The name goes to the service as it is: only the service knows the configured handlers.
	was, err := b.options.Reset(r.Context(), segment(r, "name"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.BreakerReset{Reset: was})
	return nil
}
