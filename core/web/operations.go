package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// An OperationManager serves the operators of bulk work; see [manage.Operations].
type OperationManager interface {
	Begin(ctx context.Context, op core.Operation) (core.Operation, error)
	Plan(ctx context.Context, op core.Operation) (manage.Plan, error)
	List(ctx context.Context, after core.ID, limit int) (core.Page[core.Operation], error)
	Operation(ctx context.Context, id core.ID) (core.Operation, error)
	Cancel(ctx context.Context, id core.ID) (core.Operation, error)
}

// OperationsOptions are the dependencies of the routes of operations.
type OperationsOptions struct {
	Manager OperationManager

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Operations returns the routes of operations.
func Operations(o OperationsOptions) Piece {
	return func(r chi.Router, d *Door) {
		token := newKeyring(o.Tokens)
		h := &operationRoutes{d, o.Manager, token}
		r.Get("/api/operations", d.viewing(token, h.charged(listBytes, h.list)))
		r.Post("/api/operations", d.changing(token, h.begin))
		r.Get("/api/operations/{id}", d.viewing(token, bare(h.show)))
		r.Post("/api/operations/{id}/cancel", d.changing(token, h.cancel))
	}
}

// operationRoutes serve the operators of bulk work.
type operationRoutes struct {
	*Door
	manager OperationManager
	token   *keyring
}

// begin begins an operation, or plans it.
func (h *operationRoutes) begin(w http.ResponseWriter, r *http.Request) error {
	body, err := h.optional(w, r, "action", "filter", "to", "rate", "dry_run")
	if err != nil {
		return err
	}
	op, err := operationIn(body)
	if err != nil {
		return err
	}
	dry, err := body.flag("dry_run")
	if err != nil {
		return err
	}
	if dry {
		plan, err := h.manager.Plan(r.Context(), op)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, wire.OperationPlanOf(plan))
		return nil
	}
	if token, ok := h.token.named(r); ok {
		op.By = token.Name
	}
	op, err = h.manager.Begin(r.Context(), op)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.OperationOf(op))
	return nil
}

// maxTo is how many consumers a replay may name.
const maxTo = 100

// operationIn reads an operation from the fields of a body.
func operationIn(body fields) (op core.Operation, err error) {
	action, _, err := body.text("action")
	if err == nil {
		op.Action, err = core.ParseAction(action)
	}
	if err == nil {
		op.Rate, err = body.number("rate", core.DefaultRate, 1, core.MaxRate)
	}
	if err != nil {
		return op, err
	}
	if op.To, err = receiversIn(body); err != nil {
		return op, err
	}
	if filter, given := body["filter"]; given {
		op.Filter, err = filterIn(filter)
	}
	return op, err
}

// receiversIn reads the only consumers of a replay from the field to.
func receiversIn(body fields) (to []core.Lane, err error) {
	if body["to"] == nil {
		return nil, nil
	}
	names, err := body.texts("to", maxTo)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		lane, ok := wire.ParseTarget(name)
		if !ok {
			return nil, core.Refuse(core.Invalid, "to must have names of handlers, or queue/ or workflow/ and the name of one; not %s", quote(name))
		}
		to = append(to, lane)
	}
	return to, nil
}

// filterIn reads the filter of an operation.
func filterIn(text json.RawMessage) (f core.OperationFilter, err error) {
	of, err := fieldsOf(text, "consumer", "status", "source", "event_type", "since", "until", "error", "match", "delivery_id", "first", "last")
	if err != nil {
		return f, err
	}
	consumer, given, err := of.text("consumer")
	if err != nil {
		return f, err
	}
	if given {
		lane, ok := wire.ParseConsumer(consumer)
		if !ok {
			return f, core.Refuse(core.Invalid, "consumer must be the name of a handler, or queue/ or workflow/ and the name of one; not %s", quote(consumer))
		}
		f.Lane = lane
	}
	for _, field := range []struct {
		name string
		to   *string
	}{{"status", &f.Status}, {"source", &f.Source}, {"event_type", &f.Type}, {"error", &f.Error}, {"match", &f.Match}, {"delivery_id", &f.DeliveryID}} {
		if *field.to, _, err = of.text(field.name); err != nil {
			return f, err
		}
	}
	if f.Since, err = of.time("since"); err == nil {
		f.Until, err = of.time("until")
	}
	if err == nil {
		f.First, err = of.id("first")
	}
	if err == nil {
		f.Last, err = of.id("last")
	}
	return f, err
}

// list answers with a page of operations.
func (h *operationRoutes) list(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r, "after", "limit")
	if err != nil {
		return err
	}
	after, err := q.id("after")
	if err != nil {
		return err
	}
	limit, err := q.number("limit", core.DefaultPage, 1, core.MaxPage)
	if err != nil {
		return err
	}
	page, err := h.manager.List(r.Context(), after, limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.OperationsOf(page))
	return nil
}

// show answers with one operation.
func (h *operationRoutes) show(w http.ResponseWriter, r *http.Request) error {
	return h.answer(w, r, h.manager.Operation)
}

// cancel ends an operation, and answers with it.
func (h *operationRoutes) cancel(w http.ResponseWriter, r *http.Request) error {
	if _, err := h.optional(w, r); err != nil {
		return err
	}
	return h.answer(w, r, h.manager.Cancel)
}

// answer answers with the operation of the path.
func (h *operationRoutes) answer(w http.ResponseWriter, r *http.Request, of func(context.Context, core.ID) (core.Operation, error)) error {
	id, err := parseID("id", chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	op, err := of(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.OperationOf(op))
	return nil
}
