package remote

import (
	"context"

	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Schedules are the sources of type cron of a server.
type Schedules struct{ c *Client }

// Schedules returns the sources of type cron of the server.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Fire stores an event of a source now: POST /api/schedules/{source}/fire.
func (s Schedules) Fire(ctx context.Context, source string) (manage.Fired, error) {
	var reply wire.Fired
	err := s.c.post(ctx, &reply, nil, "schedules", source, "fire")
	return reply.Core(), err
}
