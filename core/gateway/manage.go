package gateway

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/series"
)

// The services of operators. The command line, which works beside a running gateway, uses
// them too.

// Events returns the service of stored events, which a replay matches with the configured
// consumers.
func Events(c *config.Config, store core.Store, clock core.Clock) (*manage.Events, error) {
	events, err := eventsOf(c, store, clock, core.NewIDs(clock))
	if err != nil {
		return nil, err
	}
	if events.Bulk, err = replays(c, store, clock); err != nil {
		return nil, err
	}
	events.Runs = quietRunner(c, store, clock)
	return events, nil
}

// Waits returns the service that says why jobs wait.
func Waits(c *config.Config, store manage.LaneStore, clock core.Clock) *manage.Waits {
	return manage.NewWaits(store, clock, Lanes(c))
}

// Jobs returns the service of stored jobs.
func Jobs(c *config.Config, store core.Store, clock core.Clock) *manage.Jobs {
	jobs := manage.NewJobs(store, clock)
	jobs.Waits, jobs.Names, jobs.Bulk = Waits(c, store, clock), names(c), retries(c, store, clock)
	return jobs
}

// names returns the names of all configured entries.
func names(c *config.Config) *manage.Names {
	// A request with an unknown name is refused, since a misspelt name would list nothing.
	n := &manage.Names{Unknown: config.Unknown, Places: shown(c)}
	for _, s := range c.SortedSources() {
		n.Sources = append(n.Sources, s.Name)
	}
	for _, h := range c.SortedHandlers() {
		n.Handlers = append(n.Handlers, h.Name)
	}
	for _, q := range c.SortedQueues() {
		n.Queues = append(n.Queues, q.Name)
	}
	for _, w := range c.SortedWorkflows() {
		n.Workflows = append(n.Workflows, w.Name)
	}
	return n
}

// Breakers returns the service of the configured handlers' circuit breakers.
func Breakers(c *config.Config, store manage.BreakerStore, clock core.Clock) *manage.Breakers {
	return manage.NewBreakers(store, clock, Lanes(c))
}

// Holds returns the service of the holds of configured entries.
func Holds(c *config.Config, store manage.HoldStore, clock core.Clock) *manage.Holds {
	return manage.NewHolds(store, clock, names(c))
}

// Lines returns the service of the lines of handlers and queues.
func Lines(c *config.Config, store core.Store, clock core.Clock) *manage.Lines {
	lines := manage.NewLines(store, clock, names(c), Lined(c))
	lines.Waits = Waits(c, store, clock)
	return lines
}

// Audit returns the service that lists the entries of the audit.
func Audit(store manage.AuditStore) *manage.Audit { return manage.NewAudit(store) }

// Lined returns the lanes that have lines, handlers first.
func Lined(c *config.Config) (lanes []core.Lane) {
	for _, h := range c.SortedHandlers() {
		if h.Lines.Limit > 0 {
			lanes = append(lanes, core.HandlerLane(h.Name))
		}
	}
	for _, q := range c.SortedQueues() {
		if q.Lines.Limit > 0 {
			lanes = append(lanes, core.QueueLane(q.Name))
		}
	}
	return lanes
}

// Statistics returns the service of the state of all configured entries.
func Statistics(c *config.Config, store manage.StatsStore, clock core.Clock) *manage.Statistics {
	lanes := Lanes(c)
	for _, s := range c.SortedSources() {
		lanes = append(lanes, core.SourceLane(s.Name))
	}
	return manage.NewStatistics(store, clock, lanes, shown(c))
}

// Series returns the service of the curves of all configured entries.
func Series(c *config.Config, store manage.SeriesStore, clock core.Clock) *manage.Series {
	s := manage.NewSeries(store, clock, names(c))
	s.Delay = series.WriteDelay
	return s
}

// Tail returns the service of news in the store.
func Tail(c *config.Config, store manage.TailStore, clock core.Clock) *manage.Tail {
	tail := manage.NewTail(store, clock)
	tail.Names = names(c)
	return tail
}

// Lanes returns the lanes of handlers, queues and workflows, each by name, and of alerts,
// in the order of the configuration.
func Lanes(c *config.Config) []core.Lane {
	var all []core.Lane
	for _, h := range c.SortedHandlers() {
		all = append(all, core.HandlerLane(h.Name))
	}
	all = append(all, queueLanes(c)...)
	for _, w := range c.SortedWorkflows() {
		all = append(all, core.WorkflowLane(w.Name))
	}
	// Places of alerts have no name of their own, so they stand last, in the order of the file.
	for _, p := range places(c) {
		all = append(all, p.Lane)
	}
	return all
}

// newEvents makes the same service for this process, where a replay wakes the worker at once.
func (g *Gateway) newEvents(c *config.Config, bell *core.Bell) (*manage.Events, error) {
	events, err := eventsOf(c, g.Store, g.Clock, g.ids())
	if err != nil {
		return nil, err
	}
	events.Bell, events.Observe, events.Bulk, events.Waits, events.Runs = bell, g.observe, g.Operations, g.Jobs.Waits, g.runner
	return events, nil
}

// eventsOf makes the service with a given source of ids. The process passes its own, so that its
// ids only grow.
func eventsOf(c *config.Config, store manage.EventStore, clock core.Clock, ids *core.IDs) (*manage.Events, error) {
	consumers, err := Consumers(c)
	if err != nil {
		return nil, err
	}
	// A replay chooses consumers as intake does, so a replayed event gets the jobs that it would
	// get today.
	events := manage.NewEvents(store, clock, intake.Rematch(consumers, ids))
	events.Names, events.Decline, events.Select = names(c), intake.Decline(consumers), intake.Select
	return events, nil
}
