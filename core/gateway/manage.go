package gateway

import (
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/manage"
)

// The services of operators. The command line, which works beside a running gateway,
// asks for them too.

// Events are the stored events, which are replayed to those who are configured.
func Events(c *config.Config, store manage.EventStore, clock core.Clock) (*manage.Events, error) {
	return eventsOf(c, store, clock, core.NewIDs(clock))
}

// Waits tell what jobs wait for.
func Waits(c *config.Config, store manage.LaneStore, clock core.Clock) *manage.Waits {
	return manage.NewWaits(store, clock, Lanes(c))
}

// Statistics tell how all that is configured stands.
func Statistics(c *config.Config, store manage.StatsStore, clock core.Clock) *manage.Statistics {
	return manage.NewStatistics(store, clock, Lanes(c))
}

// Lanes are those of handlers, queues, workflows and alerts, each by name.
func Lanes(c *config.Config) []core.Lane {
	var all []core.Lane
	for _, h := range c.SortedHandlers() {
		all = append(all, core.HandlerLane(h.Name))
	}
	all = append(all, queueLanes(c)...)
	for _, w := range c.SortedWorkflows() {
		all = append(all, core.WorkflowLane(w.Name))
	}
	var told []core.Lane
	for _, p := range places(c) {
		told = append(told, p.Lane)
	}
	slices.Sort(told)
	return append(all, told...)
}

func (g *Gateway) newEvents(c *config.Config, bell *core.Bell) (*manage.Events, error) {
	events, err := eventsOf(c, g.Store, g.Clock, g.ids())
	if err != nil {
		return nil, err
	}
	events.Bell, events.Observe, events.Waits = bell, g.observe, g.Jobs.Waits
	return events, nil
}

func eventsOf(c *config.Config, store manage.EventStore, clock core.Clock, ids *core.IDs) (*manage.Events, error) {
	consumers, err := Consumers(c)
	if err != nil {
		return nil, err
	}
	return manage.NewEvents(store, clock, intake.Rematch(consumers, ids)), nil
}
