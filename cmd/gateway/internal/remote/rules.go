package remote

import (
	"context"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
)

// Rules reads the rules of the configuration that the server serves: GET /api/config.
func (c *Client) Rules(ctx context.Context) (config.Rules, error) {
	var rules wire.Rules
	err := c.get(ctx, &rules, nil, "config")
	return rules.Core(), err
}
