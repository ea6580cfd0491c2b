package gateway

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/retention"
)

// newPurger returns the service that deletes finished records after the configured time.
func (g *Gateway) newPurger(c *config.Config) *retention.Purger {
	// Records that are not finished stay, however old they are.
	keep := time.Duration(c.Worker.RetentionHours) * time.Hour
	audit := time.Duration(c.Worker.AuditRetentionDays) * 24 * time.Hour
	return retention.New(retention.Deps{Upkeep: g.Store, Clock: g.Clock, Observe: g.observe}, keep, audit)
}

// purge deletes old records, at intervals.
func (g *Gateway) purge(ctx context.Context) {
	// Each process of a database runs this. The store gives the turn to one of them.
	if err := g.Purger.Tick(ctx, core.Budget{Rest: g.Rest}); err != nil {
		g.Log.Error("deleting old records stopped", "error", err)
	}
}
