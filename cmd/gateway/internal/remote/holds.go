package remote

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// Holds are the holds of a server.
type Holds struct{ c *Client }

// Holds returns the holds of a server.
func (c *Client) Holds() Holds { return Holds{c} }

// List reads the holds that have not ended: GET /api/holds.
func (h Holds) List(ctx context.Context) ([]core.Hold, error) {
	var reply wire.Holds
	err := h.c.get(ctx, &reply, nil, "holds")
	return wire.List(reply.Holds, wire.Hold.Core), err
}

// Hold holds a lane; a zero until is no end: POST /api/holds.
func (h Holds) Hold(ctx context.Context, lane core.Lane, until time.Time, reason string) (core.Hold, error) {
	body := map[string]string{"target": lane.Consumer()}
	if !until.IsZero() {
		body["until"] = core.FormatTime(until)
	}
	if reason != "" {
		body["reason"] = reason
	}
	var reply wire.Hold
	err := h.c.post(ctx, &reply, body, "holds")
	return reply.Core(), err
}

// Release ends the hold of a lane. It reports whether the lane was held: DELETE /api/holds.
func (h Holds) Release(ctx context.Context, lane core.Lane) (bool, error) {
	var reply wire.Released
	query := url.Values{"target": {lane.Consumer()}}
	err := h.c.call(ctx, http.MethodDelete, []string{"holds"}, query, nil, &reply)
	return reply.Released, err
}
