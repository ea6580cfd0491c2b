package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// AuditOptions are the dependencies of the route of the audit.
type AuditOptions struct {
	// List lists entries; see [manage.Audit].
	List func(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error)

	// Tokens are the tokens of the API; none leaves the route open.
	Tokens []Token
}

// Audit returns the route of the audit.
func Audit(o AuditOptions) Piece {
	return func(r chi.Router, d *Door) {
		a := &auditRoutes{d, o}
		r.Get("/api/audit", d.viewing(newKeyring(o.Tokens), a.charged(listBytes, a.list)))
	}
}

// auditRoutes serve the audit.
type auditRoutes struct {
	*Door
	AuditOptions
}

// list answers with a page of entries.
func (a *auditRoutes) list(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r, "actor", "action", "target", "since", "until", "after", "limit")
	if err != nil {
		return err
	}
	f, err := auditFilter(q)
	if err != nil {
		return err
	}
	page, err := a.List(r.Context(), f)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.AuditPageOf(page))
	return nil
}

// auditFilter reads the parameters of a listing.
func auditFilter(q query) (f core.AuditFilter, err error) {
	if f.Actor, err = q.name("actor", "the name of an actor"); err != nil {
		return f, err
	}
	if f.Target, err = q.name("target", "a target"); err != nil {
		return f, err
	}
	action, given, err := q.text("action")
	if err == nil && given {
		f.Action, err = core.ParseAuditAction(action)
	}
	if err == nil {
		f.Since, err = q.time("since")
	}
	if err == nil {
		f.Until, err = q.time("until")
	}
	if err == nil {
		f.After, err = q.id("after")
	}
	if err == nil {
		f.Limit, err = q.number("limit", core.DefaultPage, 1, core.MaxPage)
	}
	return f, err
}
