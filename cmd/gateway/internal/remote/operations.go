package remote

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Operations are the operations of a server.
type Operations struct{ c *Client }

// Operations returns the operations of a server.
func (c *Client) Operations() Operations { return Operations{c} }

// An operationOrder is the body of a request to begin or plan an operation.
type operationOrder struct {
	Action core.Action    `json:"action"`
	Filter map[string]any `json:"filter"`
	To     []string       `json:"to,omitempty"`
	Rate   int            `json:"rate,omitempty"`
	Dry    bool           `json:"dry_run,omitempty"`
}

// operationOrderOf returns the body for an operation. Zero fields are left out.
func operationOrderOf(op core.Operation, dry bool) operationOrder {
	f := op.Filter
	filter := map[string]any{}
	for name, value := range map[string]string{
		"consumer": f.Lane.Consumer(), "status": f.Status, "source": f.Source, "event_type": f.Type,
		"since": core.FormatTime(f.Since), "until": core.FormatTime(f.Until), "error": f.Error, "match": f.Match,
		"delivery_id": f.DeliveryID, "first": string(f.First), "last": string(f.Last),
	} {
		if value != "" {
			filter[name] = value
		}
	}
	order := operationOrder{Action: op.Action, Filter: filter, Rate: op.Rate, Dry: dry}
	for _, l := range op.To {
		order.To = append(order.To, l.Consumer())
	}
	return order
}

// Begin stores an operation, which a worker of the server then does: POST /api/operations.
func (o Operations) Begin(ctx context.Context, op core.Operation) (core.Operation, error) {
	var reply wire.Operation
	err := o.c.post(ctx, &reply, operationOrderOf(op, false), "operations")
	return reply.Core(), err
}

// Plan counts the matches of an operation without doing it: POST /api/operations with dry_run.
func (o Operations) Plan(ctx context.Context, op core.Operation) (manage.Plan, error) {
	var reply wire.OperationPlan
	err := o.c.post(ctx, &reply, operationOrderOf(op, true), "operations")
	return reply.Core(op), err
}

// List reads a page of operations, newest first: GET /api/operations.
func (o Operations) List(ctx context.Context, after core.ID, limit int) (core.Page[core.Operation], error) {
	var page wire.Operations
	err := o.c.get(ctx, &page, parameters("after", string(after), "limit", atMost(limit)), "operations")
	return page.Core(), err
}

// Operation reads one operation: GET /api/operations/{id}.
func (o Operations) Operation(ctx context.Context, id core.ID) (core.Operation, error) {
	var reply wire.Operation
	err := o.c.get(ctx, &reply, nil, "operations", string(id))
	return reply.Core(), err
}

// Cancel ends an operation: POST /api/operations/{id}/cancel.
func (o Operations) Cancel(ctx context.Context, id core.ID) (core.Operation, error) {
	var reply wire.Operation
	err := o.c.post(ctx, &reply, nil, "operations", string(id), "cancel")
	return reply.Core(), err
}
