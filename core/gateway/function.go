package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/series"
)

// A Part assembles the services of one kind of process: the program has all of them, and
// each function some. It is a function and not a name, so that unused services are not
// linked: a larger function starts more slowly, and a caller waits for that.
type Part func(*Gateway) error

// NewPart assembles a part of a gateway. It starts nothing.
func NewPart(c *config.Config, d Deps, part Part) (*Gateway, error) {
	s := newShared()
	// Other environments of the function may have met failures since this one was last called, so
	// a success proves little after a rest.
	s.pulses.rests = 1
	g, err := newPart(c, d, s, part)
	if err != nil {
		return nil, err
	}
	g.startDrain() // no other gateway replaces it
	return g, nil
}

// everything is the [Part] of the program: all services and all routes.
func everything(g *Gateway) error {
	if err := errors.Join(services(g), Schedules(g), Deliveries(g)); err != nil {
		return err
	}
	g.handler = g.newHandler(g.config, g.console(g.config, true), g.allPieces(g.config))
	return nil
}

// IntakeRoutes serve events, callbacks and the state of the gateway.
func IntakeRoutes(g *Gateway) error {
	if err := g.assembleIntake(); err != nil {
		return err
	}
	// The routes are served also if the database is away: then /health reports it.
	g.handler = g.newHandler(g.config, nil, append(g.intakePieces(g.config), g.opsPieces(g.config)...))
	// Only a scrape needs these services. A function without metrics does not link them.
	if g.Metrics != nil {
		g.Breakers = Breakers(g.config, g.Store, g.Clock)
		g.Breakers.Observe = g.observe
		g.Stats = Statistics(g.config, g.Store, g.Clock)
		g.shared.watch(g.Deps, g.Stats.Lanes, func() int { return 0 })
	}
	return nil
}

// APIRoutes serve the consumers of queues, and operators.
func APIRoutes(g *Gateway) error {
	if err := services(g); err != nil {
		return err
	}
	g.Series.Delay = series.CensusDelay // before that, the worker's function may not have counted the events
	g.handler = g.newHandler(g.config, g.console(g.config, false), g.apiPieces(g.config))
	return nil
}

// Deliveries are the worker, the deletion of old records, and the filling of lines.
// A function has no other routes beside them.
func Deliveries(g *Gateway) (err error) {
	g.assembleMinutes()
	g.Purger = g.newPurger(g.config)
	g.Filler = g.newFiller(g.config, g.shared.bell)
	g.Worker, err = g.newWorker(g.config, g.shared.bell, g.obituaries.Of)
	return err
}

// Schedules are the cron sources, and the checks of health. Their events pass through intake
// like all others.
func Schedules(g *Gateway) error {
	if err := g.assembleIntake(); err != nil {
		return err
	}
	g.Cron = g.newCron(g.config)
	g.assembleHealth()
	return nil
}

// assembleIntake assembles the intake, unless it exists.
func (g *Gateway) assembleIntake() (err error) {
	if g.Intake == nil {
		g.Intake, err = g.newIntake(g.config, g.shared.bell)
	}
	return err
}

// services assembles the services of consumers and operators.
func services(g *Gateway) (err error) {
	bell := g.shared.bell
	g.assembleMinutes()
	g.assembleHealth() // a breaker that an operator resets causes an alert
	g.Puller = g.newPuller(g.config, bell, g.obituaries.Of)
	g.Queues = Queues(g.config, g.Store, g.Clock)
	// The command line makes these services without a bell and an observer. In this process a
	// change rings for the worker at once, and the observer gets a fact about it.
	g.Queues.Bell, g.Queues.Observe = bell, g.observe
	g.Jobs = Jobs(g.config, g.Store, g.Clock)
	g.Jobs.Bell, g.Jobs.Observe = bell, g.observe
	g.Breakers = Breakers(g.config, g.Store, g.Clock)
	g.Breakers.Observe = g.observe
	g.Holds = Holds(g.config, g.Store, g.Clock)
	g.Holds.Bell, g.Holds.Observe = bell, g.observe
	g.Lines = Lines(g.config, g.Store, g.Clock)
	g.Lines.Bell, g.Lines.Observe = bell, g.observe
	g.Stats = Statistics(g.config, g.Store, g.Clock)
	g.Series = Series(g.config, g.Store, g.Clock)
	g.Series.Unwritten, g.Series.Delay = g.shared.minutes.Unwritten, 0
	// Operators, the worker and callbacks share one runner. So all changes of one run queue up in
	// one place of the process.
	g.Runs = manage.NewRuns(g.Store, g.runner)
	g.Runs.Names, g.Runs.Current, g.Runs.Draw = names(g.config), g.config.Definition, g.runner.Diagram
	if g.Operations, err = g.newOperations(g.config, bell); err != nil {
		return err
	}
	g.Jobs.Bulk, g.Queues.Bulk = g.Operations, g.Operations
	if g.Schedules, err = g.newSchedules(g.config, bell); err != nil {
		return err
	}
	g.Events, err = g.newEvents(g.config, bell)
	return err
}

// RestOf returns for how long an idle database gets no query. Each look at SQL over HTTP is
// a request, and Cloudflare's API allows four a second.
func RestOf(db config.Database) time.Duration {
	if db.Driver == "hosted_sql" {
		return 5 * time.Second
	}
	return DefaultRest
}

// Work returns a listener for all lanes of a worker: all lanes except those of queues,
// whose consumers take for themselves. Call it once, before anything is served.
func (g *Gateway) Work() *core.Listener {
	// A function that serves requests has no worker. It listens so that it can wake the function
	// that has one.
	own := append(slices.DeleteFunc(Lanes(g.config), func(l core.Lane) bool { return l.Queue() != "" }), core.OperationLane)
	l := g.shared.bell.Listen(own...)
	g.shared.bell.Others(l) // runs continue under their own definition, also if their workflow was removed
	return l
}

// Quiet returns when no work without a caller is running. Before that it stores the alerts
// that were only counted and may be sent now. A process that is stopped between two calls
// calls it after each. It gives up when ctx is done.
func (g *Gateway) Quiet(ctx context.Context) {
	if g.Puller != nil {
		_ = g.Puller.Quiet(ctx) // the next call continues any interrupted work
	}
	g.Alerts.Flush(ctx)
	g.Health.Flush(ctx)
	if g.Stats != nil {
		g.Stats.Quiet(ctx) // last: it only delays later answers
	}
	if g.Series != nil {
		g.Series.Quiet(ctx)
	}
	if g.Jobs != nil {
		g.Jobs.Quiet(ctx)
	}
}
