package web

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// A HoldManager serves the operators of holds; see [manage.Holds].
type HoldManager interface {
	List(ctx context.Context) ([]core.Hold, error)
	Hold(ctx context.Context, lane core.Lane, until time.Time, reason string) (core.Hold, error)
	Release(ctx context.Context, lane core.Lane) (bool, error)
}

// HoldsOptions are the dependencies of the routes of holds.
type HoldsOptions struct {
	Manager HoldManager

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Holds returns the routes of holds.
func Holds(o HoldsOptions) Piece {
	return func(r chi.Router, d *Door) {
		h, token := &holdRoutes{d, o.Manager}, newKeyring(o.Tokens)
		r.Get("/api/holds", d.viewing(token, h.charged(listBytes, bare(h.list))))
		r.Post("/api/holds", d.changing(token, h.hold))
		r.Delete("/api/holds", d.changing(token, h.release))
	}
}

// holdRoutes serve the operators of holds.
type holdRoutes struct {
	*Door
	manager HoldManager
}

// list answers with all holds that have not ended.
func (h *holdRoutes) list(w http.ResponseWriter, r *http.Request) error {
	all, err := h.manager.List(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.Holds{Holds: wire.List(all, wire.HoldOf)})
	return nil
}

// hold holds a target, and answers with the hold.
func (h *holdRoutes) hold(w http.ResponseWriter, r *http.Request) error {
	body, err := h.optional(w, r, "target", "until", "reason")
	if err != nil {
		return err
	}
	target, _, err := body.text("target")
	if err != nil {
		return err
	}
	lane, err := heldLane(target)
	if err != nil {
		return err
	}
	until, err := body.time("until")
	if err != nil {
		return err
	}
	reason, _, err := body.text("reason")
	if err != nil {
		return err
	}
	hold, err := h.manager.Hold(r.Context(), lane, until, reason)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.HoldOf(hold))
	return nil
}

// release ends the hold of a target. It succeeds also if the target was not held.
func (h *holdRoutes) release(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "target")
	if err != nil {
		return err
	}
	target, _, err := query.text("target")
	if err != nil {
		return err
	}
	lane, err := heldLane(target)
	if err != nil {
		return err
	}
	if body, err := h.body(w, r); err != nil {
		return err
	} else if len(body) > 0 {
		// The target is a parameter; a field would be ignored.
		if _, err := fieldsOf(body); err != nil {
			return err
		}
	}
	released, err := h.manager.Release(r.Context(), lane)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.Released{Released: released})
	return nil
}

// heldLane returns the lane of a target.
func heldLane(target string) (core.Lane, error) {
	if lane, ok := wire.ParseTarget(target); ok {
		return lane, nil
	}
	return "", core.Refuse(core.Invalid, "target must be the name of a handler, or queue/, workflow/ or source/ and the name of one; not %s", quote(target))
}
