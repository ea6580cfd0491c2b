package gateway

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/telemetry"
)

// CronSources returns the service that fires sources of type cron. A worker of a running gateway finds
// the jobs at its next look.
func CronSources(c *config.Config, store core.Store, clock core.Clock) (*manage.Schedules, error) {
	return cronService(c, intake.Deps{Inbox: store, Events: store, IDs: core.NewIDs(clock), Clock: clock}, store)
}

// newSchedules makes the service for this process, which rings for the jobs and states facts.
func (g *Gateway) newSchedules(c *config.Config, bell *core.Bell) (*manage.Schedules, error) {
	d := intake.Deps{Inbox: g.Store, Events: g.Store, IDs: g.ids(), Clock: g.Clock, Bell: bell, Observe: g.observe, Log: g.Log.With(telemetry.Target, "intake")}
	if g.Traces != nil {
		d.Trace = g.Traces.Begin
	}
	return cronService(c, d, g.Store)
}

// cronService makes the service with an intake of its own. It has the sources of type cron alone: the
// function with the API does not link what verifies senders.
func cronService(c *config.Config, d intake.Deps, store core.Store) (_ *manage.Schedules, err error) {
	s := &manage.Schedules{Names: names(c), Holding: store.Holding, Clock: d.Clock}
	for _, source := range c.SortedSources() {
		if source.Type == "cron" {
			s.Cron = append(s.Cron, source.Name)
			d.Sources = append(d.Sources, intake.Source{Name: source.Name, Kind: intake.Tick, Schedule: source.Schedule.Text})
		}
	}
	if d.Consumers, err = Consumers(c); err != nil {
		return nil, err
	}
	s.FireNow = intake.New(d).FireNow
	return s, nil
}
