package remote

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Series reads the curves of a window, of all names or of one consumer and one source:
// GET /api/series.
func (c *Client) Series(ctx context.Context, w manage.Window, lanes ...core.Lane) (series wire.Series, err error) {
	var consumer, source string
	for _, lane := range lanes {
		if name := lane.Source(); name != "" {
			source = name
		} else {
			consumer = lane.Consumer()
		}
	}
	err = c.get(ctx, &series, parameters("window", string(w), "consumer", consumer, "source", source), "series")
	return series, err
}
