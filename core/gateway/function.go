package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
)

// A Part assembles what one kind of process needs of a gateway: the program everything,
// each function a part. It is code and not a name, so that what a function does not do is
// not linked either: its environments are made while somebody waits.
type Part func(*Gateway) error

// NewPart assembles a part of a gateway, which does nothing of itself.
func NewPart(c *config.Config, d Deps, part Part) (*Gateway, error) {
	s := newShared()
	s.pulses.rests = 1
	g, err := newPart(c, d, s, part)
	if err != nil {
		return nil, err
	}
	g.hasten() // nobody takes its place
	return g, nil
}

func everything(g *Gateway) error {
	if err := errors.Join(services(g), Schedules(g), Deliveries(g)); err != nil {
		return err
	}
	g.handler = g.newHandler(g.config, g.allPieces(g.config))
	return nil
}

// IntakeRoutes are where events come in and callbacks, and what tells how the gateway is.
func IntakeRoutes(g *Gateway) error {
	if err := g.takeIn(); err != nil {
		return err
	}
	g.handler = g.newHandler(g.config, append(g.intakePieces(g.config), g.opsPieces(g.config)...))
	if g.Metrics != nil {
		g.Breakers = Breakers(g.config, g.Store, g.Clock)
		g.Breakers.Observe = g.observe
		g.Stats = Statistics(g.config, g.Store, g.Clock)
		g.shared.watch(g.Deps, g.Stats.Lanes, func() int { return 0 })
	}
	return nil
}

// APIRoutes are what consumers of queues ask, and operators.
func APIRoutes(g *Gateway) error {
	if err := services(g); err != nil {
		return err
	}
	g.handler = g.newHandler(g.config, g.apiPieces(g.config))
	return nil
}

// Deliveries are the worker, and what deletes what is over.
func Deliveries(g *Gateway) (err error) {
	g.Purger = g.newPurger(g.config)
	g.Worker, err = g.newWorker(g.config, g.shared.bell, g.obituaries.Of)
	return err
}

// Schedules are the cron sources, whose events are taken in like any other.
func Schedules(g *Gateway) (err error) {
	if err := g.takeIn(); err != nil {
		return err
	}
	g.Cron, err = g.newCron(g.config)
	return err
}

// takeIn assembles the intake, unless it is there.
func (g *Gateway) takeIn() (err error) {
	if g.Intake == nil {
		g.Intake, err = g.newIntake(g.config, g.shared.bell)
	}
	return err
}

// services are what consumers and operators ask.
func services(g *Gateway) (err error) {
	bell := g.shared.bell
	g.Puller = g.newPuller(g.config, bell, g.obituaries.Of)
	g.Queues = Queues(g.config, g.Store, g.Clock)
	g.Queues.Bell, g.Queues.Observe = bell, g.observe
	g.Jobs = Jobs(g.config, g.Store, g.Clock)
	g.Jobs.Bell, g.Jobs.Observe = bell, g.observe
	g.Breakers = Breakers(g.config, g.Store, g.Clock)
	g.Breakers.Observe = g.observe
	g.Stats = Statistics(g.config, g.Store, g.Clock)
	g.Runs = manage.NewRuns(g.Store, g.runner)
	g.Runs.Names, g.Runs.Current = names(g.config), g.config.Definition
	g.Events, err = g.newEvents(g.config, bell)
	return err
}

// RestOf is how long a database is left alone in which nothing is known to be due. Each
// look at SQL over HTTP is a request, and Cloudflare's API allows four a second.
func RestOf(db config.Database) time.Duration {
	if db.Driver == "hosted_sql" {
		return 5 * time.Second
	}
	return DefaultRest
}

// Work is a listener that hears of everything a worker is to see to: of all lanes but
// those of queues, whose consumers come by themselves. Call it once, before anything is
// served.
func (g *Gateway) Work() *core.Listener {
	own := slices.DeleteFunc(Lanes(g.config), func(l core.Lane) bool { return l.Queue() != "" })
	l := g.shared.bell.Listen(own...)
	g.shared.bell.Others(l) // runs go on by what they began with, also if it is configured no more
	return l
}

// Quiet returns when nothing runs that no caller waits for, and has alerts stored that
// were only counted and may be told by now. A process that is stopped between two calls
// asks for it after each. It gives up when ctx is done.
func (g *Gateway) Quiet(ctx context.Context) {
	if g.Puller != nil {
		_ = g.Puller.Quiet(ctx) // whatever it was cut short in goes on with the next call
	}
	g.Alerts.Flush(ctx)
	if g.Stats != nil {
		g.Stats.Quiet(ctx) // last: whom it leaves no time is only told late
	}
}
