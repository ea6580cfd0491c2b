package gateway

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/retention"
)

// newPurger deletes what is over as long as the configuration says that it is kept.
func (g *Gateway) newPurger(c *config.Config) *retention.Purger {
	keep := time.Duration(c.Worker.RetentionHours) * time.Hour
	return retention.New(retention.Deps{Upkeep: g.Store, Clock: g.Clock, Observe: g.observe}, keep)
}

// purge deletes what is over, now and then.
func (g *Gateway) purge(ctx context.Context) {
	if err := g.Purger.Tick(ctx, core.Budget{Rest: g.Rest}); err != nil {
		g.Log.Error("deleting old records stopped", "error", err)
	}
}
