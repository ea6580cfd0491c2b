package gateway

import (
	"context"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/alert"
)

// assembleHealth assembles the service that raises alerts on health, unless it exists. It stays
// nil if no place wants such alerts.
func (g *Gateway) assembleHealth() {
	if g.Health != nil {
		return
	}
	g.Health = alert.NewHealth(alert.HealthDeps{
		Store:       g.Store,
		IDs:         g.ids(),
		Clock:       g.Clock,
		Bell:        g.shared.bell,
		Observe:     g.observe,
		MaxAttempts: g.config.Delivery.DefaultRetry.Max,
		Places:      places(g.config),
		Lanes:       slices.DeleteFunc(Lanes(g.config), core.Lane.Alert),
		Moves:       g.shared.moves,
	})
}

// watchHealth raises alerts on health, if any place wants them.
func (g *Gateway) watchHealth(ctx context.Context) {
	// Each process of a database runs this. The store gives the turn of a check to one of them.
	if err := g.Health.Tick(ctx, core.Budget{Rest: g.Rest}); err != nil {
		g.Log.Error("checks of health stopped", "error", err)
	}
}
