package gateway

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/lines"
)

// lineRules translates the lines of a handler or queue for the worker and the consumers.
func lineRules(l config.Lines) core.LineRules {
	return core.LineRules{Limit: l.Limit, StopOnDead: l.StopsAtDead()}
}

// queueRules returns the rules of the queues that have lines, by lane.
func queueRules(c *config.Config) map[core.Lane]core.LineRules {
	rules := map[core.Lane]core.LineRules{}
	for _, q := range c.SortedQueues() {
		if r := lineRules(q.Lines); r.Limit > 0 {
			rules[core.QueueLane(q.Name)] = r
		}
	}
	return rules
}

// newFiller makes the service that fills the lines of handlers and queues. It has the lanes without
// lines too: an earlier configuration may have had lines for them.
func (g *Gateway) newFiller(c *config.Config, bell *core.Bell) *lines.Filler {
	var lanes []lines.Lane
	for _, h := range c.SortedHandlers() {
		lanes = append(lanes, lines.Lane{Lane: core.HandlerLane(h.Name), Limit: h.Lines.Limit})
	}
	for _, q := range c.SortedQueues() {
		lanes = append(lanes, lines.Lane{Lane: core.QueueLane(q.Name), Limit: q.Lines.Limit})
	}
	return lines.New(lines.Deps{Store: g.Store, Bell: bell, Clock: g.Clock, Observe: g.observe}, lanes)
}

// fill fills lines, at the start and at intervals.
func (g *Gateway) fill(ctx context.Context) {
	if err := g.Filler.Tick(ctx, core.Budget{Rest: g.Rest}); err != nil {
		g.Log.Error("filling lines stopped", "error", err)
	}
}
