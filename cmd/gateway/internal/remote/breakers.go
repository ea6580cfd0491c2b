package remote

import (
	"context"

	"github.com/eventgateway/gateway/core/wire"
)

// Breakers are the circuit breakers of the handlers of a server.
type Breakers struct{ c *Client }

// Breakers returns the circuit breakers of the server's handlers.
func (c *Client) Breakers() Breakers { return Breakers{c} }

// Reset closes the circuit breaker of a handler. It reports whether the breaker was open.
func (b Breakers) Reset(ctx context.Context, handler string) (bool, error) {
	var reply wire.BreakerReset
	err := b.c.post(ctx, &reply, nil, "handlers", handler, "breaker", "reset")
	return reply.Reset, err
}
